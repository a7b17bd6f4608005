"""The budget of a run, less what its earlier sittings used."""

from __future__ import annotations

from collections.abc import Iterable

from proctor.asking.spending import Spending
from proctor.records.run import RunMetadata, Spent
from proctor.records.session import ModelCall, Session, Usage
from proctor.records.trial import EvalResult


def spending_of(run: RunMetadata, earlier: Iterable[EvalResult] = ()) -> Spending | None:
    """What keeps a run's budget, if it has one; `earlier` are the results it has already.

    A sitting that came to its end left its sum with the run, failed attempts included. One that
    was killed left only its results, so the greater of both counts.
    """
    budget = run.options.budget
    if budget is None:
        return None
    told, kept = spent_in(earlier), run.spent or Spent()
    return Spending(
        budget,
        Spent(
            max(told.calls, kept.calls), max(told.tokens, kept.tokens), max(told.cost, kept.cost)
        ),
    )


def spent_in(results: Iterable[EvalResult]) -> Spent:
    """What the model calls behind some results used."""
    calls, used = 0, Usage()
    for result in results:
        trial = result.trial
        if not trial.cached:
            # The usage is that of all attempts, the session that of the last.
            used += trial.usage or Usage()
            calls += _calls(trial.session)
        used += result.judging or Usage()
        calls += sum(map(_calls, result.sessions.values()))
    return Spent(calls, used.total_tokens or 0, used.cost or 0.0)


def _calls(session: Session | None) -> int:
    """The model calls that were made; what came from a cache was made before."""
    if session is None:
        return 0
    return sum(not call.details.get("cached") for call in session[ModelCall])
