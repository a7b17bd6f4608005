"""Whatever is named as a target becomes one: what kind it is gets settled here, once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from proctor.core import imports as importing
from proctor.core.identity import name_of
from proctor.errors import Problem, TargetError, UsageError, nearest
from proctor.models.connect import is_model_address, like_a_provider, suggest_address
from proctor.ports import Target
from proctor.records.run import TargetSpec
from proctor.targets.command import CommandTarget
from proctor.targets.http import HttpTarget
from proctor.targets.model import ModelTarget
from proctor.targets.python import PythonTarget, from_execute, from_function, from_runnable
from proctor.targets.recorded import RecordedTarget

# What makes a target of each kind, and the keys it takes; None: all, it sorts them out itself.
_WRITTEN: Mapping[str, tuple[Callable[..., Target], tuple[str, ...] | None]] = {
    "command": (CommandTarget, ("cwd", "env")),
    "http": (HttpTarget, ("headers", "method", "timeout")),
    "model": (ModelTarget, None),
    "recorded": (RecordedTarget, ()),
}
_EVERY_KIND = ("name", "version")


def as_target(thing: Any, *, name: str | None = None, version: str | None = None) -> Target:
    """Make a target of a function, an agent, a runnable, an address or what an eval file says.

    A string is `module:attribute`, `file.py:attribute`, a URL, or the address of a model such as
    `openai:gpt-4o-mini`; a mapping has one of `command`, `http`, `model` and `recorded`.
    `version` becomes part of what tells this target from another: change it when something
    changed that Proctor cannot see. With one, no run warns of what its identity does not cover.

    >>> as_target(lambda question: "Paris", name="atlas").spec.name
    'atlas'
    >>> as_target({"command": ["cat"]}).spec.kind
    'command'
    """
    if isinstance(thing, str) and not thing.startswith(("http://", "https://")):
        if ".py:" not in thing and is_model_address(thing):
            return _labelled(ModelTarget(thing), name, version)
        return _from_address(thing, name, version)
    if isinstance(thing, Mapping):
        return _from_mapping(thing, name, version)
    if isinstance(thing, str):
        # Only a model is named after a #: an endpoint would never get to see it.
        made = ModelTarget(thing) if "#" in thing else HttpTarget(thing)
        return _labelled(made, name, version)
    if isinstance(getattr(thing, "spec", None), TargetSpec):
        return _labelled(thing, name, version)
    return _labelled(_from_object(thing, name), name, version)


def _from_object(thing: Any, name: str | None) -> PythonTarget:
    if thing is None:
        raise TargetError(
            "there is no target",
            fix="name one; recorded sessions need none, if it is said that the dataset holds such: "
            "--format auto, in an eval file `dataset: {path: …, format: auto}`, in Python a "
            "SessionDataset",
        )
    called = name or name_of(thing)
    if inspect.isclass(thing):
        raise TargetError(
            "it is a class, and a target must be ready to be called",
            where=called,
            fix=f"give an instance, such as {called}(), or a function",
        )
    if inspect.isroutine(thing) or isinstance(thing, functools.partial):
        return from_function(thing, called)
    if callable(getattr(thing, "execute", None)):
        return from_execute(thing, called)
    if any(callable(getattr(thing, method, None)) for method in ("ainvoke", "invoke")):
        return from_runnable(thing, called)
    if callable(thing):
        return from_function(thing, called)
    raise TargetError(
        f"{type(thing).__name__} cannot be a target: it cannot be called",
        where=name or "",
        fix="give a function, an object with execute or invoke, an address or a mapping",
    )


def _from_address(address: str, name: str | None, version: str | None) -> Target:
    try:
        thing = importing.load(address)
    except UsageError as error:
        if ":" not in address:
            raise TargetError(
                f"{address!r} is not the address of a target", fix=_how_to_write(address)
            ) from None
        meant = like_a_provider(address)
        raise TargetError(
            f"the target cannot be used: {error.what}",
            where=error.where or address,
            fix=f"{meant}; or {error.fix}" if meant else error.fix,
        ) from None
    if isinstance(thing, str):
        raise TargetError("it holds a string, and not something to call", where=address)
    if isinstance(getattr(thing, "spec", None), TargetSpec):
        return as_target(thing, name=name, version=version)
    return as_target(thing, name=name or address.rpartition(":")[2], version=version)


def _how_to_write(address: str) -> str:
    if address.endswith(".py"):
        return f"name the function as well: {address}:FUNCTION"
    return f"{suggest_address(address)}; write a Python function as module:attribute or file.py:attribute"


def _from_mapping(given: Mapping[str, Any], name: str | None, version: str | None) -> Target:
    kinds = [kind for kind in _WRITTEN if kind in given]
    if len(kinds) != 1:
        found = " and ".join(kinds or map(str, given)) or "nothing"
        raise TargetError(
            f"a target has exactly one of {', '.join(_WRITTEN)}; this one has {found}",
            where=name or "target",
            fix="keep one of them" if kinds else _meant(given),
        )
    (kind,) = kinds
    make, taken = _WRITTEN[kind]
    if taken is None:
        taken = tuple(str(key) for key in given if key not in (kind, *_EVERY_KIND))
    known = (kind, *taken, *_EVERY_KIND)
    unknown = [key for key in given if key not in known]
    if unknown:
        raise TargetError(
            "some keys mean nothing here",
            where=name or "target",
            problems=[Problem(str(key), nearest(str(key), known)) for key in unknown],
        )
    options = {key: given[key] for key in taken if key in given}
    label, edition = (given.get(key) for key in _EVERY_KIND)
    made = make(given[kind], **options)
    return _labelled(made, name or label, version or (None if edition is None else str(edition)))


def _meant(given: Mapping[str, Any]) -> str:
    return "; ".join(f"{key}: {nearest(str(key), _WRITTEN)}" for key in given) or "name one"


def _labelled(target: Target, name: str | None, version: str | None) -> Target:
    """The target under the name and version that were asked for, if any were.

    Who gives a version answers for what the identity cannot see: nothing is uncovered then.
    """
    spec = target.spec
    if name is not None:
        spec = msgspec.structs.replace(spec, name=name)
    if version is not None:
        spec = msgspec.structs.replace(spec, identity=f"{spec.identity}@{version}", uncovered=())
    return target if spec == target.spec else _Labelled(target, spec)


class _Labelled:
    """A target under another name or version; everything else is the target's own."""

    __slots__ = ("blocking", "call", "check_options", "close", "spec")

    def __init__(self, target: Target, spec: TargetSpec) -> None:
        self.spec = spec
        self.blocking = target.blocking
        self.call = target.call
        self.check_options = target.check_options
        self.close = target.close

    def __repr__(self) -> str:
        return f"{self.spec.kind} target {self.spec.name!r}"
