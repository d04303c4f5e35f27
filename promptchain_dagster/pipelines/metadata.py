"""The metadata keys of this package, all under `promptchain/`, and the bounds on what they hold.

Metadata, logs and the UI hold counts, hashes, previews and paths; the whole lies under the home
(case f14: one megabyte of metadata grows the event log by four).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from pydantic_core import to_jsonable_python

from promptchain_dagster.models.base import Usage

PREVIEW = 500
"""The longest text in a metadata value or a log line's field, in characters."""

STATUS = "promptchain/status"
RESULT = "promptchain/result"
TRACE = "promptchain/trace"
STEP = "promptchain/step"
ERROR = "promptchain/error"
REASON = "promptchain/reason"
FAILED_CHECKS = "promptchain/failed_checks"
MESSAGES = "promptchain/messages"
REJECTED_OUTPUT = "promptchain/rejected_output"
ATTEMPTS = "promptchain/attempts"
ATTEMPT = "promptchain/attempt"
ATTEMPT_TABLE = "promptchain/attempt_table"
INPUT = "promptchain/input"
PREVIEW_KEY = "promptchain/preview"
GATE = "promptchain/gate"
WARNINGS = "promptchain/warnings"
MODEL = "promptchain/model"
MODEL_CALLS = "promptchain/model_calls"
INPUT_TOKENS = "promptchain/input_tokens"
OUTPUT_TOKENS = "promptchain/output_tokens"
COST_USD = "promptchain/cost_usd"
CALLS_WITHOUT_USAGE = "promptchain/calls_without_usage"
PATH = "promptchain/path"
STATE = "promptchain/state"
STORED_AS = "promptchain/stored_as"
CHAIN = "promptchain/chain"
SECONDS = "promptchain/seconds"
DOCUMENT = "promptchain/document"
DOCUMENT_KEY = "promptchain/document_key"
CONTENT_HASH = "promptchain/content_sha256"
CHARACTERS = "promptchain/characters"
WORDS = "promptchain/words"
CHUNKS = "promptchain/chunks"
INDEX = "promptchain/index"
TOTAL = "promptchain/total"
TOKENS = "promptchain/tokens"
SPAN = "promptchain/span"
COMPRESSED = "promptchain/compressed"
COMPRESSIONS = "promptchain/compressions"
RESUMED_FROM = "promptchain/resumed_from"
FAILED_CHUNK = "promptchain/failed_chunk"
ENDS_RUN = "promptchain/ends_run"
DOCUMENTS = "promptchain/documents"
MISSING = "promptchain/missing"
NO_CONTENT = "promptchain/no_content"

Metadata = dict[str, Any]


def preview(value: object, limit: int = PREVIEW) -> str:
    """`value` in at most `limit` characters: text as it is, anything else as JSON.

    Half characters, as in a path of undecodable bytes, are escaped: no page could be sent with one.
    """
    text = value if isinstance(value, str) else as_text(value)
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def without_images(text: str) -> str:
    """A model's Markdown in which no image begins.

    The UI would load it: a document that has its summary name an image at an address of its own
    would be told who reads it, and whatever else the model was made to put into the address.
    """
    return text.replace("![", "!\\[")


def bounded(value: Any) -> dg.MetadataValue:
    """`value` as JSON metadata where it is short enough, else the beginning of it as text."""
    text = as_text(value)
    if isinstance(value, str) or len(text) > PREVIEW:
        return dg.MetadataValue.text(preview(value))
    return dg.MetadataValue.json(json.loads(text))


def as_text(value: object) -> str:
    """`value` as JSON; what JSON has no type for (enums, dates, models) as pydantic writes it."""
    return json.dumps(to_jsonable_python(value, fallback=repr), ensure_ascii=False)


def lines(texts: Sequence[str]) -> dg.MetadataValue:
    """Messages one to a line, as many as fit."""
    return dg.MetadataValue.text(preview("\n".join(texts)))


def of_usage(usage: Usage, model_calls: int) -> Metadata:
    """Requests, tokens and US dollars; what is unknown is left out, never 0."""
    known: Mapping[str, Any] = {
        MODEL_CALLS: model_calls,
        INPUT_TOKENS: usage.input_tokens,
        OUTPUT_TOKENS: usage.output_tokens,
        COST_USD: usage.cost_usd,
        CALLS_WITHOUT_USAGE: usage.calls_without_usage or None,
    }
    return {key: value for key, value in known.items() if value is not None}
