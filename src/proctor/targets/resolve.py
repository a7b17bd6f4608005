"""Turn a function, an address, a mapping or an object into a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from proctor.core import imports as importing
from proctor.errors import Problem, TargetError, UsageError, suggest_name
from proctor.models.connect import is_model_address, suggest_address
from proctor.ports import Target
from proctor.records.run import TargetSpec
from proctor.targets.command import CommandTarget
from proctor.targets.http import HttpTarget
from proctor.targets.model import ModelTarget
from proctor.targets.python import from_object
from proctor.targets.recorded import RecordedTarget

# The class for each key of a mapping, and its options; None: the class checks them.
_CLASSES: Mapping[str, tuple[Callable[..., Target], tuple[str, ...] | None]] = {
    "command": (CommandTarget, ("cwd", "env")),
    "http": (HttpTarget, ("headers", "method", "timeout")),
    "model": (ModelTarget, None),
    "recorded": (RecordedTarget, ()),
}
_COMMON_KEYS = ("name", "version")


def as_target(target: Any, *, name: str | None = None, version: str | None = None) -> Target:
    """Make a target from a function, an agent, a runnable, an address or a mapping.

    A string is `module:attribute`, `file.py:attribute`, a URL, or the address of a model such as
    `openai:gpt-4o-mini`; a mapping has one of `command`, `http`, `model` and `recorded`. `version` becomes
    part of the target's identity: change it when something changes that Proctor cannot see. With a version,
    runs do not warn about parts that the identity does not cover.

    >>> as_target(lambda question: "Paris", name="atlas").spec.name
    'atlas'
    >>> as_target({"command": ["cat"]}).spec.kind
    'command'
    """
    if isinstance(target, str):
        return _from_address(target, name, version)
    if isinstance(target, Mapping):
        return _from_mapping(target, name, version)
    if not isinstance(getattr(target, "spec", None), TargetSpec):
        target = from_object(target, name)
    return _relabel(target, name, version)


def _from_address(address: str, name: str | None, version: str | None) -> Target:
    if address.startswith(("http://", "https://")):
        # Only a model has a # in its address: an endpoint never receives it.
        return _from_mapping({"model" if "#" in address else "http": address}, name, version)
    if ".py:" not in address and is_model_address(address):
        return _from_mapping({"model": address}, name, version)
    try:
        target = importing.import_object(address)
    except UsageError as error:
        hint = suggest_address(address)
        if ":" not in address:
            raise TargetError(
                f"{address!r} is not the address of a target",
                fix=f"name the function as well: {address}:FUNCTION"
                if address.endswith(".py")
                else f"{hint}; write a Python function as module:attribute or file.py:attribute",
            ) from None
        raise TargetError(
            f"the target cannot be used: {error.what}",
            where=error.where or address,
            fix=f"{hint}; or {error.fix}" if hint else error.fix,
        ) from None
    if isinstance(target, str):
        raise TargetError("it is a string, not a callable", where=address)
    if not isinstance(getattr(target, "spec", None), TargetSpec):
        name = name or address.rpartition(":")[2]
    return as_target(target, name=name, version=version)


def _from_mapping(target: Mapping[str, Any], name: str | None, version: str | None) -> Target:
    kinds = [kind for kind in _CLASSES if kind in target]
    if len(kinds) != 1:
        hints = "; ".join(f"{key}: {suggest_name(str(key), _CLASSES)}" for key in target) or "name one"
        present = " and ".join(kinds or map(str, target)) or "nothing"
        raise TargetError(
            f"a target has exactly one of {', '.join(_CLASSES)}; this one has {present}",
            where=name or "target",
            fix="keep one of them" if kinds else hints,
        )
    (kind,) = kinds
    make, known = _CLASSES[kind]
    options = {str(key): target[key] for key in target if key not in (kind, *_COMMON_KEYS)}
    unknown = [] if known is None else [key for key in options if key not in known]
    if unknown:
        names = (kind, *(known or ()), *_COMMON_KEYS)
        raise TargetError(
            "some keys are unknown",
            where=name or "target",
            problems=[Problem(key, suggest_name(key, names)) for key in unknown],
        )
    if version is None and target.get("version") is not None:
        version = str(target["version"])
    return _relabel(make(target[kind], **options), name or target.get("name"), version)


def _relabel(target: Target, name: str | None, version: str | None) -> Target:
    """Give the target a name and a version; with a version, its identity covers everything."""
    spec = target.spec
    if name is not None:
        spec = msgspec.structs.replace(spec, name=name)
    if version is not None:
        spec = msgspec.structs.replace(spec, identity=f"{spec.identity}@{version}", uncovered=())
    return target if spec == target.spec else _RelabelledTarget(target, spec)


class _RelabelledTarget:
    """A target with another name or version."""

    __slots__ = ("blocking", "call", "check_options", "close", "spec")

    def __init__(self, target: Target, spec: TargetSpec) -> None:
        self.spec = spec
        self.blocking = target.blocking
        self.call = target.call
        self.check_options = target.check_options
        self.close = target.close

    def __repr__(self) -> str:
        return f"{self.spec.kind} target {self.spec.name!r}"
