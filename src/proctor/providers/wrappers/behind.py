"""What a wrapper shows of the model behind it."""

from __future__ import annotations

from typing import Any, NamedTuple

from proctor.connections import provider
from proctor.ports import ProviderAdapter


class Behind(NamedTuple):
    """A model that is wrapped, and what its wrapper is known by: the same as the model itself.

    `identity` tells it from another model of the same address, where there is more to tell.
    Whether it fits schemas is asked of the model each time: it may find out that it does not.
    """

    adapter: ProviderAdapter
    model: str
    identity: str


def behind(model: Any) -> Behind:
    """The model that is to be wrapped: an adapter, its address, or whatever the user holds.

    >>> behind(lambda messages: "Paris").model
    'python:<lambda>'
    """
    adapter = provider(model)
    identity = str(getattr(adapter, "identity", ""))
    return Behind(adapter, adapter.model, identity)
