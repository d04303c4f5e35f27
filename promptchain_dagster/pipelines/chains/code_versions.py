"""What shapes the output of each step of a chain, in a hash: a change makes it out of date."""

import hashlib
import json

from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.models import ModelSettings, is_embedded
from promptchain_dagster.models.settings import DEFAULT_OPENAI_MODEL


def code_versions(chain: Chain, settings: ModelSettings) -> dict[str, str]:
    """A hash (16 hex) for each output: the prompts, types and gates up to its step, the model and
    its parameters.

    Where the endpoint lies and how long a request may take shape nothing.
    """
    shared = [
        model_name(settings),
        settings.temperature,
        settings.max_output_tokens,
        settings.seed,
        settings.use_schema,
    ]
    versions: dict[str, str] = {}
    for number, step in enumerate(chain.steps, 1):
        so_far = Chain(chain.name, inputs=chain.inputs, steps=chain.steps[:number])
        text = json.dumps([so_far.fingerprint, *shared])
        versions[step.output] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return versions


def model_name(settings: ModelSettings) -> str:
    """The model that `settings` and the environment come to."""
    if settings.model:
        return settings.model
    return "embedded" if is_embedded(settings) else DEFAULT_OPENAI_MODEL
