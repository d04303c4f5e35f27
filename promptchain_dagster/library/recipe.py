"""What makes a summary out of date: another text, or another way of making it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from promptchain_dagster.refine.checkpoints import FORMAT
from promptchain_dagster.refine.settings import RefineSettings
from promptchain_dagster.refine.steps import shapes_of


def recipe(
    settings: RefineSettings, model_name: str, parameters: Mapping[str, Any], encoding: str
) -> str:
    """A hash (SHA-256, hex) over the prompts and all else that shapes a summary, its text aside.

    `encoding` is the name of the token encoding: with `chunk_tokens` it decides where chunks end.
    """
    shapes = [
        FORMAT,
        *shapes_of(settings.refine),
        model_name,
        dict(parameters),
        settings.document_type,
        settings.chunk_tokens,
        settings.max_words,
        encoding,
    ]
    return hashlib.sha256(json.dumps(shapes, sort_keys=True).encode()).hexdigest()


WITHOUT_TEXT = f"{'0' * 16}-{'0' * 16}"
"""In place of the digest of what was never read; no recipe changes that."""


def digest_of(content_hash: str, recipe: str) -> str:
    """What a document's summary is the summary of: `<16 hex>-<16 hex>`, its text and the recipe."""
    return f"{content_hash[:16]}-{recipe[:16]}"
