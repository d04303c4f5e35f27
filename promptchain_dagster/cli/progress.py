"""Progress on standard error: moving on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from promptchain_dagster.cli.events import EndedDocument, FoldedChunk, told_by
from promptchain_dagster.cli.show_post import dollars
from promptchain_dagster.cli.streams import note
from promptchain_dagster.models.base import NO_USAGE, Usage

if TYPE_CHECKING:
    from dagster import DagsterEvent

SECONDS_BETWEEN_LINES = 30.0
"""Where nothing moves, long work says this often how far it is."""


class StepProgress:
    """Says which step of a chain's run is at work, on a terminal alone."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._status = self._console.status("starting …")

    def __enter__(self) -> StepProgress:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._status.stop()

    def on_event(self, event: DagsterEvent, run_id: str) -> None:
        """Name the step that starts."""
        if event.is_step_start:
            self._status.update(f"{event.step_key} …")


class FoldProgress:
    """How far the documents of a run are: documents, chunks, calls, tokens, cost, time left.

    `expected` are the chunks of each document, by its key, as far as they can be estimated; a
    document's first chunk tells how many there are. `clock` gives seconds.
    """

    def __init__(
        self,
        expected: Mapping[str, int],
        *,
        clock: Callable[[], float] = time.monotonic,
        console: Any = None,
    ) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._console = console or Console(stderr=True)
        self._bar = Progress(
            BarColumn(),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=None)
        self._left = dict(expected)
        self._estimated = {key for key, chunks in expected.items() if chunks}
        self._documents, self._ended = len(expected), 0
        self._chunks = self._folded = self._calls = 0
        self._usage = NO_USAGE
        self._under_way: dict[str, int] = {}
        self._clock = clock
        self._spoke_at = self._began = clock()

    def __enter__(self) -> FoldProgress:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def on_event(self, event: DagsterEvent, run_id: str) -> None:
        """Count the chunks that are folded in, and the documents that are done."""
        told = told_by(event)
        if isinstance(told, FoldedChunk):
            self._fold(told)
        elif isinstance(told, EndedDocument):
            self._end(told)
        elif event.is_step_start:
            self._began = self._clock()
        if told is not None:
            self._show()

    def _fold(self, chunk: FoldedChunk) -> None:
        # What checkpoints cover comes without an event.
        self._chunks += 1 if chunk.key in self._under_way else chunk.index
        self._folded += 1
        self._left[chunk.key] = chunk.total - chunk.index
        self._estimated.discard(chunk.key)
        self._under_way[chunk.key] = self._under_way.get(chunk.key, 0) + chunk.model_calls
        self._spend(chunk.model_calls, chunk.usage)

    def _end(self, document: EndedDocument) -> None:
        self._ended += 1
        self._left[document.key] = 0
        self._estimated.discard(document.key)
        calls = self._under_way.pop(document.key, 0)
        # A call that failed comes without a chunk.
        usage = NO_USAGE if calls else document.usage
        self._spend(max(document.model_calls - calls, 0), usage)

    def _spend(self, calls: int, usage: Usage) -> None:
        self._calls += calls
        self._usage += usage

    def _show(self) -> None:
        text = self._text()
        total = self._chunks + sum(self._left.values())
        self._bar.update(self._task, completed=self._chunks, total=total, description=text)
        now = self._clock()
        if not self._console.is_terminal and now - self._spoke_at >= SECONDS_BETWEEN_LINES:
            self._spoke_at = now
            note(text)

    def _text(self) -> str:
        left = sum(self._left.values())
        about = "about " if self._estimated else ""
        tokens = (self._usage.input_tokens or 0) + (self._usage.output_tokens or 0)
        parts = [
            f"chunk {self._chunks:,} of {about}{self._chunks + left:,}",
            f"{self._calls:,} call{'' if self._calls == 1 else 's'}",
            f"{tokens:,} tokens",
            f"cost {dollars(self._usage.cost_usd)}",
        ]
        if self._documents > 1:
            parts.insert(0, f"{self._ended:,} of {self._documents:,} documents done")
        if self._folded:
            seconds = (self._clock() - self._began) / self._folded * left
            parts.append(f"{about}{duration(seconds)} left")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """The time for people: "2 h 5 min", "6 min 10 s", "8 s"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
