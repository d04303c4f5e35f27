"""What can be known to fail is found here, before a run is made or a model called."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from promptchain_dagster.models.settings import ModelSettings


@dataclass(frozen=True)
class KnownModel:
    """The model that will answer: its name, and its context in tokens where that is known."""

    name: str
    context_tokens: int | None
    max_output_tokens: int | None


def known_model(settings: ModelSettings) -> KnownModel:
    """Connect without a call; raises `InvalidInput` where no such model can be had."""
    from promptchain_dagster.models import connect

    async def look() -> KnownModel:
        async with connect(settings) as model:
            return KnownModel(model.name, model.context_tokens, model.max_output_tokens)

    return asyncio.run(look())
