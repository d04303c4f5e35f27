"""Dagster's event log in SQLite, at less than half of what an event costs there.

Dagster's own class makes an engine for each use, so that SQLAlchemy compiles every statement anew
and every connection is opened anew: most of the 9 ms of CPU that an event takes. Files and format
are the same: a `DAGSTER_HOME` can go from one class to the other at any time, and both may be at
it at once.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import dagster as dg
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import NullPool, StaticPool

from promptchain_dagster.errors import InvalidInput

ENGINES = 32
"""Runs whose engine is kept; one is some 100 KB, and no open file."""


class KeptEngines(SqliteEventLogStorage):
    """`SqliteEventLogStorage`, its engines kept from one event to the next.

    In `dagster.yaml`; without `base_dir` the files are where Dagster's own class has them by
    default, in `history/runs` of `DAGSTER_HOME`:

        event_log_storage:
          module: promptchain_dagster.pipelines.event_log
          class: KeptEngines
    """

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: OrderedDict[str, tuple[Engine, int]] = OrderedDict()
        self._one_at_a_time = threading.Lock()
        self._tables: set[str] = set()
        super().__init__(base_dir, inst_data)

    @classmethod
    def config_type(cls) -> Any:
        return {"base_dir": dg.Field(dg.StringSource, is_required=False)}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Any
    ) -> "KeptEngines":
        base_dir = config_value.get("base_dir")
        if base_dir is None:
            home = os.environ.get("DAGSTER_HOME")
            if not home:
                raise InvalidInput("event_log_storage has no base_dir, and DAGSTER_HOME is not set")
            base_dir = os.path.join(os.path.expanduser(home), "history", "runs")
        return cls(base_dir, inst_data)

    def run_connection(self, run_id: str | None = None) -> Any:
        return self._connection(str(run_id), super().run_connection(run_id))

    def index_connection(self) -> AbstractContextManager[Connection]:
        return self._connection(INDEX_SHARD_NAME, super().index_connection())

    def has_table(self, table_name: str) -> bool:
        # Asked for every event, from within a transaction; a table that is there stays.
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    def wipe(self) -> None:
        self._drop_all()
        super().wipe()

    def dispose(self) -> None:
        self._drop_all()
        super().dispose()

    @contextmanager
    def _connection(
        self, shard: str, first: AbstractContextManager[Connection]
    ) -> Iterator[Connection]:
        """A transaction; the first one in a process is Dagster's own, which makes the tables."""
        with self._one_at_a_time:
            engine = self._engine(shard)
            if engine is None:
                with first as connection:
                    yield connection
                self._keep(shard)
            else:
                with engine.begin() as connection:
                    yield connection

    def _engine(self, shard: str) -> Engine | None:
        if shard not in self._engines:
            return None
        engine, file = self._engines[shard]
        if self._file(shard) != file:
            # The file was deleted, or another put in its place: what is open leads nowhere.
            self._drop(shard)
            self._initialized_dbs.discard(shard)
            return None
        self._engines.move_to_end(shard)
        return engine

    def _keep(self, shard: str) -> None:
        file = self._file(shard)
        if file is None:
            return
        # A run's connection is closed each time, as before: that writes its file, which is what
        # tells the UI of new events. Nobody watches the index.
        engine = create_engine(
            self.conn_string_for_shard(shard),
            poolclass=StaticPool if shard == INDEX_SHARD_NAME else NullPool,
            connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
        )
        self._engines[shard] = engine, file
        if len(self._engines) > ENGINES:
            self._drop(next(name for name in self._engines if name != INDEX_SHARD_NAME))

    def _drop_all(self) -> None:
        with self._one_at_a_time:
            while self._engines:
                self._drop(next(iter(self._engines)))
            self._tables.clear()

    def _drop(self, shard: str) -> None:
        self._engines.pop(shard)[0].dispose()

    def _file(self, shard: str) -> int | None:
        try:
            return os.stat(self.path_for_shard(shard)).st_ino
        except FileNotFoundError:
            return None
