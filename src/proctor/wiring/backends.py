"""Where the trials of a run are carried out: here, by workers behind a mailbox, or on Ray."""

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
    """The place that is meant; None is here. What was opened for it is closed afterwards."""
    if workers is not None and on is not None:
        raise ConfigError("a run is carried out either by workers or on a cluster, not by both")
    if (workers is not None or on is not None) and evaluation.options.get("cache"):
        raise ConfigError(
            "outputs are reused only by runs on this machine", where="cache", fix="leave it out"
        )
    if (workers is not None or on is not None) and evaluation.baseline is not None:
        raise ConfigError(NOT_ELSEWHERE, where="baseline", fix=RUN_HERE)
    if workers is not None:
        with _opened(workers) as requests:
            yield Workers(requests, patience=patience)
    elif on is not None:
        yield _cluster(on, recipe_of(evaluation, plugins, modules))
    else:
        yield None


@contextlib.contextmanager
def _opened(workers: str | Mailbox[Any]) -> Iterator[Mailbox[Any]]:
    if not isinstance(workers, str):
        yield workers
        return
    requests = mailbox(workers, EvalRequest)
    # Before a run is opened that could not begin.
    requests.approximate_count()
    try:
        yield requests
    finally:
        requests.close()


def _cluster(on: str, recipe: bytes) -> Place:
    from proctor.distributed.ray import OnRay, quiet_ray

    if on != RAY and not on.startswith(f"{RAY}://"):
        raise ConfigError(f"there is no cluster {on!r}", fix=nearest(on, [RAY, f"{RAY}://HOST"]))
    quiet_ray()
    return OnRay(recipe, setup_from, None if on == RAY else on)
