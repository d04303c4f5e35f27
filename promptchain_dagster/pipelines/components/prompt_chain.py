"""`PromptChainComponent`: a chain of one's own, written in YAML, as a job."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component
from pydantic import BaseModel, Field, create_model

from promptchain_dagster import criteria
from promptchain_dagster.chain.accept import AcceptSpec, Bar, Criterion
from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.step import PromptStep, Step, ToolStep
from promptchain_dagster.errors import ChainDefinitionError
from promptchain_dagster.importing import imported
from promptchain_dagster.pipelines.chain_job import chain_job
from promptchain_dagster.prompts import PromptTemplate

_TYPES: Mapping[str, type] = {"str": str, "int": int, "float": float, "bool": bool}


class StepModel(dg.Model, dg.Resolvable):
    """One step: a prompt, or a function."""

    name: str = Field(description="The step's name, and that of the field it passes on.")
    # The slots are the prompt's own, and not for dg to fill in.
    prompt: Annotated[str | None, dg.Resolver.passthrough()] = Field(
        default=None, description="The prompt; its slots {{ field }} are what the step reads."
    )
    prompt_file: str | None = Field(
        default=None, description="A file with the prompt, relative to the component's folder."
    )
    function: str | None = Field(
        default=None, description="In place of a prompt: a function's import path."
    )
    output_type: str = Field(default="str", description="str, or a type's import path.")
    accept: list[str | dict[str, Any]] = Field(
        default_factory=list,
        description="Criteria: a ready-made one's name, alone or with its parameters, or the import"
        " path of a Criterion.",
    )
    max_retries_per_step: int = Field(
        default=0, description="Re-attempts after a rejected output, 0 to 3."
    )


class PromptChainScaffolder(dg.Scaffolder[Any]):
    """Writes a chain of one step that loads as it is."""

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        step = {"name": "summary", "prompt": "Sum up:\n<text>{{ text }}</text>"}
        step_list = [{**step, "accept": ["no_refusal"], "max_retries_per_step": 1}]
        name = request.target_path.name
        scaffold_component(request, {"name": name, "inputs": {"text": "str"}, "steps": step_list})


@dg.scaffold_with(PromptChainScaffolder)
class PromptChainComponent(dg.Component, dg.Model, dg.Resolvable):
    """A fixed chain of model calls and functions, as a job with a gate after every step."""

    name: str = Field(description="The name of the chain and of its job.")
    inputs: str | dict[str, str] = Field(
        description="What the chain is given: the import path of a pydantic model, or fields with"
        " their types (str, int, float, bool)."
    )
    steps: list[StepModel] = Field(description="The steps, in order.")

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Raises `ChainDefinitionError` that names the component's folder, the step, the field."""
        try:
            return dg.Definitions(jobs=[chain_job(self._chain(context.path), first_op="inputs")])
        except ChainDefinitionError as error:
            raise ChainDefinitionError(f"{context.path}: {error}") from None

    def _chain(self, folder: Path) -> Chain:
        inputs = _inputs(self.inputs)
        known: dict[str, Any] = {name: one.annotation for name, one in inputs.model_fields.items()}
        steps: list[Step] = []
        for one in self.steps:
            steps.append(_step(one, known, folder))
            known[one.name] = steps[-1].output_type
        return Chain(self.name, inputs=inputs, steps=steps)


def _inputs(given: str | dict[str, str]) -> type[BaseModel]:
    if isinstance(given, str):
        model = imported(given, "inputs")
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise ChainDefinitionError(f"inputs: {given!r} is no pydantic model")
        return model
    if wrong := [f"{name}: {kind}" for name, kind in given.items() if kind not in _TYPES]:
        raise ChainDefinitionError(f"inputs: {', '.join(wrong)}; a type is one of {list(_TYPES)}")
    fields: dict[str, Any] = {name: (_TYPES[kind], ...) for name, kind in given.items()}
    return create_model("Inputs", **fields)


def _step(given: StepModel, known: Mapping[str, Any], folder: Path) -> Step:
    where = f"step {given.name!r}"
    sources = [given.prompt, given.prompt_file, given.function]
    if sum(one is not None for one in sources) != 1:
        raise ChainDefinitionError(f"{where}: give one of prompt, prompt_file, function")
    shared: dict[str, Any] = {
        "name": given.name,
        "accept": AcceptSpec(*[_criterion(one, where) for one in given.accept]),
        "max_retries_per_step": given.max_retries_per_step,
    }
    if given.function is not None:
        return ToolStep(function=imported(given.function, f"{where}: function"), **shared)
    if given.prompt_file is not None:
        prompt = PromptTemplate.from_file(folder / given.prompt_file)
    else:
        prompt = PromptTemplate(given.prompt or "", given.name)
    kind = _TYPES.get(given.output_type) or imported(given.output_type, f"{where}: output_type")
    # A slot that nothing fills is told of by the chain, with what there is.
    reads = {name: known.get(name, str) for name in prompt.variables}
    return PromptStep(prompt=prompt, reads=reads, output_type=kind, **shared)


def _criterion(given: str | dict[str, Any], where: str) -> Criterion:
    if isinstance(given, str) and "." in given:
        found = imported(given, f"{where}: accept")
        if not isinstance(found, Criterion):
            raise ChainDefinitionError(f"{where}: accept: {given!r} is no Criterion")
        return found
    named: dict[str, Any] = {given: {}} if isinstance(given, str) else given
    name, parameters = next(iter(named.items())) if len(named) == 1 else ("", None)
    if name not in criteria.__all__ or not isinstance(parameters, dict):
        raise ChainDefinitionError(
            f"{where}: accept: {given!r} is no criterion; there are {', '.join(criteria.__all__)}"
        )
    try:
        if "bar" in parameters:
            parameters = {**parameters, "bar": Bar(parameters["bar"])}
        return getattr(criteria, name)(**parameters)
    except (TypeError, ValueError, ChainDefinitionError) as error:
        raise ChainDefinitionError(f"{where}: accept: {name}: {error}") from None
