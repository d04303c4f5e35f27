"""What a step is, in Markdown, for the asset's page in the UI."""

from collections.abc import Iterable

from promptchain_dagster.chain.chain import Chain
from promptchain_dagster.chain.step import PromptStep, Step


def describe(chain: Chain, step: Step) -> str:
    """What the step reads, does and must meet, and its prompt."""
    number = chain.steps.index(step) + 1
    parts = [
        f"Step {number} of {len(chain.steps)} of the chain `{chain.name}`: {_work(step)}"
        f" from {_names(step.reads)}."
    ]
    if step.accept.criteria:
        criteria = _names(criterion.name for criterion in step.accept.criteria)
        parts.append(f"Passed on only if all are met: {criteria}.{_retries(step)}")
    if step.advise.criteria:
        advice = _names(criterion.name for criterion in step.advise.criteria)
        parts.append(f"Worth a warning if not met: {advice}.")
    if isinstance(step, PromptStep):
        parts.append(fenced(step.prompt.text.strip()))
    return "\n\n".join(parts)


def fenced(text: str, language: str = "") -> str:
    """`text` as a block of code that nothing in it can end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _work(step: Step) -> str:
    if isinstance(step, PromptStep):
        return f"a model call with the prompt `{step.prompt.name}`"
    return f"the function `{getattr(step.function, '__name__', step.name)}`"


def _retries(step: Step) -> str:
    retries = step.max_retries_per_step
    if not retries:
        return ""
    return f" Else it is made again with the errors, up to {retries} time{'s' * (retries > 1)}."


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing"
