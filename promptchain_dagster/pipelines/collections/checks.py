"""The checks on `document_summary`: each summary held to `refine.quality`, told and not barred."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData as Target,
)

from promptchain_dagster.chain.accept import Judgement, Verdict
from promptchain_dagster.pipelines import metadata as md
from promptchain_dagster.refine.quality import (
    EVERY_CHUNK_FOLDED,
    NAMES_AND_NUMBERS_KEPT,
    NO_HEAVY_REPETITION,
    NO_SUDDEN_SHRINKING,
    WITHIN_CAP,
)

_DESCRIPTIONS = {
    WITHIN_CAP.name: "The summary has no more words than the cap.",
    EVERY_CHUNK_FOLDED.name: "Every chunk of the document is in the summary.",
    NO_SUDDEN_SHRINKING.name: "From one chunk to the next, and from the summary that was stored"
    " before, no more than half of the words are lost, unless by a compression.",
    NO_HEAVY_REPETITION.name: "Hardly a phrase of 5 words occurs twice.",
    NAMES_AND_NUMBERS_KEPT.name: "The numbers and capitalised names in the summary are in the"
    " document too, word for word.",
}


def summary_checks(
    asset: dg.AssetKey, partitions: dg.PartitionsDefinition[str]
) -> list[dg.AssetCheckSpec]:
    """A check for each; none of them blocks."""
    return [
        dg.AssetCheckSpec(name, asset=asset, description=text, partitions_def=partitions)
        for name, text in _DESCRIPTIONS.items()
    ]


@dataclass(frozen=True)
class Evaluations:
    """The events of the checks `names` of one partition; those not selected in a run give none."""

    asset: dg.AssetKey
    names: Collection[str]

    def of(
        self, partition: str, verdict: Verdict, made: dg.EventLogRecord | None
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """What `verdict` says of the summary whose materialization is `made`."""
        target = (
            Target(storage_id=made.storage_id, run_id=made.run_id, timestamp=made.timestamp)
            if made
            else None
        )
        for judgement in verdict.judgements:
            if judgement.check in self.names:
                yield self._event(partition, judgement, {}, target)

    def of_failure(
        self, partition: str, reason: str, told: md.Metadata
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """A document whose last chunk was not reached; no more can be said of it."""
        if EVERY_CHUNK_FOLDED.name in self.names:
            yield self._event(partition, Judgement(EVERY_CHUNK_FOLDED.name, (reason,)), told, None)

    def _event(
        self, partition: str, judgement: Judgement, told: dict[str, Any], target: Target | None
    ) -> dg.AssetCheckEvaluation:
        # Only a summary that lacks something is wrong; the others are reasons to look.
        wrong = judgement.check == EVERY_CHUNK_FOLDED.name
        messages = {md.MESSAGES: md.lines(judgement.messages)} if judgement.messages else {}
        return dg.AssetCheckEvaluation(
            asset_key=self.asset,
            check_name=judgement.check,
            passed=judgement.met,
            description=md.preview("\n".join(judgement.messages)) or None,
            metadata={**messages, **told},
            severity=dg.AssetCheckSeverity.ERROR if wrong else dg.AssetCheckSeverity.WARN,
            target_materialization_data=target,
            partition=partition,
            blocking=False,
        )
