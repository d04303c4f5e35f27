"""Progress on standard error: moving on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from promptchain_dagster.cli.events import folded_chunk
from promptchain_dagster.cli.streams import note

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
    """How far the documents are: chunks, documents, calls, tokens, time left.

    `clock` gives seconds.
    """

    def __init__(
        self,
        documents: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        console: Any = None,
    ) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._console = console or Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[told]}", markup=False),
            console=self._console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, told="")
        self._documents, self._done = documents, 0
        self._clock = clock
        self._calls, self._tokens = 0, 0
        self._spoke_at = self._began = clock()
        self._first = 0

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

    def begin(self, document: str) -> None:
        """The next document's turn."""
        self._began, self._first = self._clock(), 0
        name = document if len(document) <= 40 else "…" + document[-39:]
        self._bar.reset(self._task, total=None, description=name, told=self._documents_told())

    def end(self) -> None:
        """One document more is done."""
        self._done += 1

    def on_event(self, event: DagsterEvent) -> None:
        """Count each chunk that the run materializes as `running_summary`."""
        chunk = folded_chunk(event)
        if chunk is None:
            return
        self._calls += chunk.model_calls
        self._tokens += (chunk.usage.input_tokens or 0) + (chunk.usage.output_tokens or 0)
        self._show(chunk.index, chunk.total)

    def _show(self, index: int, total: int) -> None:
        now = self._clock()
        self._first = self._first or index
        folded = index - self._first + 1
        left = (now - self._began) / folded * (total - index)
        text = (
            f"chunk {index} of {total}{self._documents_told()},"
            f" {self._calls:,} calls, {self._tokens:,} tokens, {_duration(left)} left"
        )
        self._bar.update(self._task, completed=index, total=total, told=text)
        if not self._console.is_terminal and now - self._spoke_at >= SECONDS_BETWEEN_LINES:
            self._spoke_at = now
            note(text)

    def _documents_told(self) -> str:
        if self._documents == 1:
            return ""
        return f", {self._done} of {self._documents} documents done"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
