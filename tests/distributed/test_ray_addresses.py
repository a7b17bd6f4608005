"""Connecting to Ray: wrong addresses fail at once, although Ray itself would try for minutes."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
from types import ModuleType
from typing import Any

import pytest

from proctor.distributed import ray_backend as on_ray
from proctor.errors import ConfigError


@pytest.fixture
def ray() -> ModuleType:
    """Ray, imported by the tests that use it: every process of a test run imports this file."""
    return importlib.import_module("ray")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nowhere:x"])
def test_an_unreachable_cluster_is_an_error(address: str, ray: ModuleType) -> None:
    """It names the address and what to check."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ConfigError, match="Ray cannot be reached: ") as caught, on_ray.connect_ray(ray, address):
        raise AssertionError("nobody listens there")
    assert caught.value.where == address
    assert "check the address" in caught.value.fix
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_address_in_the_environment_is_checked_too(monkeypatch: pytest.MonkeyPatch, ray: ModuleType) -> None:
    """Ray uses it if no other is passed."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(ConfigError, match="Connection refused"), on_ray.connect_ray(ray, None):
        raise AssertionError("nobody listens there")


class FakeRay(ModuleType):
    """Counts connections instead of starting a cluster."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.calls: list[Any] = []

    def is_initialized(self) -> bool:
        return False

    def init(self, address: str | None, **_: Any) -> None:
        self.calls.append(address)

    def shutdown(self) -> None:
        self.calls.append("shutdown")


def test_without_an_address_ray_decides_and_is_shut_down_after_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ray.init(None)` starts Ray on this machine; it ends even if the run fails."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    fake = FakeRay()
    with contextlib.suppress(KeyError), on_ray.connect_ray(fake, None):
        assert fake.calls == [None]
        raise KeyError("the run failed")
    assert fake.calls == [None, "shutdown"]


@pytest.mark.parametrize("before", [None, "mine"])
def test_the_log_filter_of_ray_is_restored(
    before: str | None, monkeypatch: pytest.MonkeyPatch, ray: ModuleType
) -> None:
    """It is set only while Ray is imported; an existing value is used."""
    monkeypatch.delenv(on_ray.SKIPPED_LOGS, raising=False)
    if before is not None:
        monkeypatch.setenv(on_ray.SKIPPED_LOGS, before)
    assert on_ray.import_ray() is ray
    assert os.environ.get(on_ray.SKIPPED_LOGS) == before
