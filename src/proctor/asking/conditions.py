"""Under which conditions the calls of a run are made."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple

from proctor.asking.spending import Spending
from proctor.ports import Kept


class Conditions(NamedTuple):
    """A run's budget, and where the answers that its judges get are kept."""

    spending: Spending | None = None
    kept: Kept | None = None


conditions: ContextVar[Conditions] = ContextVar("proctor_conditions", default=Conditions())  # noqa: B039 - a tuple
