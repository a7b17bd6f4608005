"""Both histories keep the contract: the file, and the server."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from proctor.history.postgres import PostgresHistory
from proctor.history.sqlite import SQLiteHistory
from tests.history.history_contract import HistoryContract

numbers = itertools.count()


class TestSQLite(HistoryContract):
    """A file for each test."""

    folder: Path

    @pytest.fixture(autouse=True)
    def _with_a_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make(self) -> SQLiteHistory:
        return SQLiteHistory(self.folder / f"{next(numbers)}.db")

    def reopen(self, history: Any) -> SQLiteHistory:
        return SQLiteHistory(history.path)


class TestPostgres(HistoryContract):
    """On a server, emptied for each test."""

    url: str

    @pytest.fixture(autouse=True)
    def _with_a_server(self, url: str) -> None:
        self.url = url

    def make(self) -> PostgresHistory:
        return PostgresHistory(self.url)

    def reopen(self, history: Any) -> PostgresHistory:
        return PostgresHistory(history.url)
