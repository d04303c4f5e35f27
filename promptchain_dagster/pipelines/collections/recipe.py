"""By what recipe a deployment makes summaries, known without a connection or a tokenizer."""

from typing import Any

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.library.recipe import recipe
from promptchain_dagster.models import ModelSettings
from promptchain_dagster.pipelines.chains.code_versions import model_name
from promptchain_dagster.refine.settings import RefineSettings

CODE_VERSION = 16
"""Characters of the recipe that are the code version, as in a digest."""

_PARAMETERS = ("temperature", "max_output_tokens", "seed")


def summary_recipe(settings: RefineSettings, model: ModelSettings) -> str:
    """The recipe (SHA-256, hex) of summaries by those settings; the one that runs mark documents
    with, the one of the sensor and, in short, the code version.

    The token encoding follows from the model's name, so it is not part of it.
    """
    values: dict[str, Any] = {name: getattr(model, name) for name in _PARAMETERS}
    parameters = {name: value for name, value in values.items() if value is not None}
    return recipe(settings, model_name(model), parameters, encoding="of the model")


def environment_settings() -> ModelSettings:
    """The model that the environment names; what is wrong with it is told by the run that asks."""
    try:
        return ModelSettings.from_environment()
    except InvalidInput:
        return ModelSettings()
