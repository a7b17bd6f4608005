"""Backends of a run: this process, workers behind a mailbox, or a Ray cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proctor.distributed.remote_runner import Workers
from proctor.engine.beside import NOT_ELSEWHERE, RUN_HERE
from proctor.engine.start import Place
from proctor.errors import ConfigError, nearest
from proctor.models.connect import mailbox
from proctor.ports import Mailbox
from proctor.records.mail import EvalRequest
from proctor.wiring.prepare import Evaluation, recipe_of, setup_from

RAY = "ray"
PATIENCE_SECONDS = 3_600.0


@contextlib.contextmanager
def chosen(
    evaluation: Evaluation,
    *,
    workers: str | Mailbox[Any] | None = None,
    on: str | None = None,
    patience: float | None = PATIENCE_SECONDS,
    plugins: Sequence[str] = (),
    modules: Sequence[Path] = (),
) -> Iterator[Place | None]:
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
        raise ConfigError(NOT_ELSEWHERE, where="baseline", fix=RUN_HERE)
    if on is not None:
        yield _open_cluster(on, recipe_of(evaluation, plugins, modules))
    elif isinstance(workers, str):
        with contextlib.closing(mailbox(workers, EvalRequest)) as requests:
            # Fails here if the server does not answer, before the run is stored.
            requests.approximate_count()
            yield Workers(requests, patience=patience)
    elif workers is not None:
        yield Workers(workers, patience=patience)


def _open_cluster(on: str, recipe: bytes) -> Place:
    from proctor.distributed.ray import OnRay, quiet_ray

    if on != RAY and not on.startswith(f"{RAY}://"):
        raise ConfigError(f"there is no cluster {on!r}", fix=nearest(on, [RAY, f"{RAY}://HOST"]))
    quiet_ray()
    return OnRay(recipe, setup_from, None if on == RAY else on)
