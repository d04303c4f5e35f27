"""Dagster's event log as the product has it, in a process that ends at the n-th event."""

from contextlib import AbstractContextManager

from dagster import EventLogEntry
from sqlalchemy import Connection

from promptchain_dagster.pipelines.event_log import KeptEngines
from tests.faults.killing import Place, die


class Death:
    """At which event (from 1) this process ends, and how many there were; `place` as in a write:
    half is between the run's own log and the index over all runs."""

    def __init__(self) -> None:
        self.at: int | None = None
        self.place = Place.AFTER
        self.events = 0


DEATH = Death()


class DyingEvents(KeptEngines):
    """Ends the process where `DEATH` says."""

    _half = False

    def store_event(self, event: EventLogEntry) -> None:
        DEATH.events += 1
        last = DEATH.events == DEATH.at
        if last and DEATH.place is Place.BEFORE:
            die()
        self._half = last and DEATH.place is Place.HALF
        super().store_event(event)
        if last:
            die()

    def index_connection(self) -> AbstractContextManager[Connection]:
        if self._half:
            die()
        return super().index_connection()
