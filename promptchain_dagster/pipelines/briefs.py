"""The partitions `briefs`, one for each brief file, and what registers them."""

from dataclasses import dataclass

import dagster as dg

from promptchain_dagster.errors import InvalidInput
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.pipelines.brief_files import BriefFolder
from promptchain_dagster.pipelines.executor import in_process_by_default

briefs = dg.DynamicPartitionsDefinition(name="briefs")


@dataclass(frozen=True, slots=True)
class Registered:
    """The keys of briefs that were not known before, and why others are none, a message each."""

    added: tuple[str, ...]
    refused: tuple[str, ...]


def register_briefs(instance: dg.DagsterInstance, folder: str | None = None) -> Registered:
    """Make a partition of each valid brief in `folder`, by default `PROMPTCHAIN_BRIEFS`.

    None is ever removed. Raises `InvalidInput` where there is no such folder.
    """
    known = set(instance.get_dynamic_partitions("briefs"))
    source = BriefFolder(folder)
    added: list[str] = []
    refused: list[str] = []
    for key, path in source.keys().items():
        try:
            source.read(path)
        except InvalidInput as error:
            refused.append(str(error))
        else:
            if key not in known:
                added.append(key)
    instance.add_dynamic_partitions("briefs", added)
    return Registered(tuple(added), tuple(refused))


@dg.op(out=dg.Out(dg.Nothing))
def register_brief_files(context: dg.OpExecutionContext) -> None:
    """Each brief file becomes a partition; one that is not valid fails the run, after the rest."""
    try:
        registered = register_briefs(context.instance)
    except InvalidInput as error:
        raise dg.Failure(str(error), allow_retries=False) from None
    for key in registered.added:
        context.log.info(f"new: {key}")
    for message in registered.refused:
        context.log.warning(md.preview(message))
    told = {md.MESSAGES: md.lines(registered.refused), md.TOTAL: len(registered.added)}
    if count := len(registered.refused):
        text = f"{count} brief{'s are' if count > 1 else ' is'} not valid: {registered.refused[0]}"
        raise dg.Failure(md.preview(text), told, allow_retries=False)
    context.add_output_metadata(told)


@dg.job(name="register_briefs", executor_def=in_process_by_default)
def register_briefs_job() -> None:
    """Make a partition of each brief in PROMPTCHAIN_BRIEFS."""
    register_brief_files()
