"""Under which conditions the calls of a run are made."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple

from proctor.asking.spending import Spending
from proctor.ports import Kept


def _never() -> bool:
    return False


class Conditions(NamedTuple):
    """A run's budget, where the answers that its judges get are kept, and whether it is stopping.

    Calls that only wait for their turn are not begun once it is.
    """

    spending: Spending | None = None
    kept: Kept | None = None
    is_stopping: Callable[[], bool] = _never


conditions: ContextVar[Conditions] = ContextVar("proctor_conditions", default=Conditions())  # noqa: B039 - a tuple
