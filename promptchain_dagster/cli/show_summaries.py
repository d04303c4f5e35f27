"""What became of the documents, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from promptchain_dagster.cli.show_post import taken
from promptchain_dagster.cli.streams import note, say

if TYPE_CHECKING:
    from promptchain_dagster.cli.summaries import Summaries
    from promptchain_dagster.store import Store


def show_documents(summaries: Summaries, store: Store, *, as_text: bool) -> None:
    """The summaries on standard output if `as_text`; the rest on standard error."""
    documents = summaries.documents
    for document in documents:
        if as_text and document["summary"]:
            if len(documents) > 1:
                say(f"# {document['path']}\n")
            say(document["summary"] + ("\n" if len(documents) > 1 else ""))
    for document in documents:
        note(_told(document))
        if document["status"] == "completed":
            note(f"  {store.url_of('summaries/' + document['document_key'] + '.md')}")
        for warning in document["warnings"]:
            note(f"  warning: {warning}")
    result = summaries.result()
    note(taken(result))
    for run_id in dict.fromkeys(one["run_id"] for one in documents if one["run_id"]):
        note(f"run {run_id}; each call in full: promptchain trace {run_id}")
    if summaries.interrupted:
        note("interrupted; every chunk done is kept: the same command goes on from there")


def _told(document: Mapping[str, Any]) -> str:
    told = f"{document['path']}: {document['status'].replace('_', ' ')}"
    if document["chunks"]:
        told += f", {document['chunks']} chunk{'' if document['chunks'] == 1 else 's'}"
    if document["resumed_from"]:
        told += f", {document['resumed_from']} of them from checkpoints"
    if document["failed_chunk"]:
        told += f", stopped at chunk {document['failed_chunk']}"
    if document["error"]:
        told += f"\n  {document['error']}"
    return told
