"""Backends of a run: this process, workers behind a mailbox, or a Ray cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proctor.distributed.remote_runner import MailboxBackend
from proctor.engine.peer_trials import LOCAL_RUN_FIX, NEEDS_LOCAL_RUN
from proctor.engine.start import Backend
from proctor.errors import ConfigError, suggest_name
from proctor.models.connect import mailbox
from proctor.ports import Mailbox
from proctor.records.mail import EvalRequest
from proctor.wiring.prepare import Evaluation, build_recipe, build_setup

RAY = "ray"
PATIENCE_SECONDS = 3_600.0


@contextlib.contextmanager
def open_backend(
    evaluation: Evaluation,
    *,
    workers: str | Mailbox[Any] | None = None,
    on: str | None = None,
    patience: float | None = PATIENCE_SECONDS,
    plugins: Sequence[str] = (),
    modules: Sequence[Path] = (),
) -> Iterator[Backend | None]:
    """Open the backend of a run, None for this process, and close it afterwards."""
    if workers is None and on is None:
        yield None
        return
    if workers is not None and on is not None:
        raise ConfigError(
            "a run uses either workers or a cluster, not both",
            fix="leave out workers (--workers) or on (--on)",
        )
    if evaluation.options.get("cache"):
        raise ConfigError("cache works only for runs on this machine", where="cache", fix="leave it out")
    if evaluation.baseline is not None:
        raise ConfigError(NEEDS_LOCAL_RUN, where="baseline", fix=LOCAL_RUN_FIX)
    if on is not None:
        yield _open_cluster(on, build_recipe(evaluation, plugins, modules))
    elif isinstance(workers, str):
        with contextlib.closing(mailbox(workers, EvalRequest)) as requests:
            # Fails here if the server does not answer, before the run is stored.
            requests.approximate_count()
            yield MailboxBackend(requests, patience=patience)
    elif workers is not None:
        yield MailboxBackend(workers, patience=patience)


def _open_cluster(on: str, recipe: bytes) -> Backend:
    from proctor.distributed.ray_backend import RayBackend, import_ray

    if on != RAY and not on.startswith(f"{RAY}://"):
        raise ConfigError(f"there is no cluster {on!r}", fix=suggest_name(on, [RAY, f"{RAY}://HOST"]))
    import_ray()
    return RayBackend(recipe, build_setup, None if on == RAY else on)
