"""Addresses where no Ray is: told at once, where Ray itself would try for minutes."""

from __future__ import annotations

import contextlib
import os
import signal
from types import ModuleType
from typing import Any

import pytest
import ray

from proctor.distributed import ray_backend as on_ray
from proctor.errors import ConfigError


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nowhere:x"])
def test_a_cluster_that_is_not_there_is_told(address: str) -> None:
    """An address that leads nowhere is named, with what to look at."""
    before = signal.getsignal(signal.SIGTERM)
    with (
        pytest.raises(ConfigError, match="Ray cannot be reached: ") as caught,
        on_ray.connect_ray(ray, address),
    ):
        raise AssertionError("nobody listens there")
    assert caught.value.where == address
    assert "check the address" in caught.value.fix
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_address_in_the_environment_is_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address Ray takes the one of the environment, so that one is meant."""
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


def test_without_an_address_ray_decides_and_is_shut_down_after_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`ray.init(None)` starts Ray on this machine; it ends even if the run fails."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    fake = FakeRay()
    with contextlib.suppress(KeyError), on_ray.connect_ray(fake, None):
        assert fake.calls == [None]
        raise KeyError("the run failed")
    assert fake.calls == [None, "shutdown"]


@pytest.mark.parametrize("before", [None, "mine"])
def test_what_ray_is_told_not_to_print_is_left_as_it_was(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting is made for Ray's import alone, and one that is there already stands."""
    monkeypatch.delenv(on_ray.SKIPPED_LOGS, raising=False)
    if before is not None:
        monkeypatch.setenv(on_ray.SKIPPED_LOGS, before)
    assert on_ray.import_ray() is ray
    assert os.environ.get(on_ray.SKIPPED_LOGS) == before
