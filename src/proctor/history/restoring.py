"""A whole run on its way into the history in one transaction, as it was somewhere else."""

from __future__ import annotations

from collections.abc import Mapping

from proctor import codec
from proctor.history.block import RESULTS_A_BLOCK, Packed, packer, rows
from proctor.history.database import Connection
from proctor.history.writer import INSERT
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult


class Restoration:
    """Takes a run's results and metrics; a block at a time is in memory."""

    def __init__(self, connection: Connection, run_key: int, run: RunMetadata) -> None:
        self._connection = connection
        self._run_key = run_key
        self._pack = packer(run)
        self._pending: list[Packed] = []

    def add(self, position: int, result: EvalResult) -> None:
        """Take a result at its place in the plan."""
        self._pending.append(self._pack(position, result, result.verdict()))
        if len(self._pending) >= RESULTS_A_BLOCK:
            self.write()

    def finish(
        self,
        metrics: Mapping[str, MetricValue],
        by_configuration: Mapping[str, Mapping[str, MetricValue]],
    ) -> None:
        """Take what the run amounts to."""
        tables = codec.encode({"metrics": metrics, "by_configuration": by_configuration})
        self._connection.execute(
            "UPDATE runs SET metrics = ? WHERE id = ?", (tables, self._run_key)
        )

    def write(self) -> None:
        """Hand what was taken to the database."""
        self._connection.executemany(INSERT, rows(self._run_key, self._pending))
        self._pending = []
