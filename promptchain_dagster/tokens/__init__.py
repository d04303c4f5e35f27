"""Counting tokens as tiktoken does, without a network and on any text."""

from __future__ import annotations

from promptchain_dagster.tokens.encoders import (
    DEFAULT_ENCODING,
    Encoder,
    encoding_for,
    get_encoder,
)

__all__ = ["DEFAULT_ENCODING", "Encoder", "encoding_for", "get_encoder"]
