"""Turn a function, an address, a mapping or an object into a target."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from proctor.core import imports as importing
from proctor.core.identity import name_of
from proctor.errors import Problem, TargetError, UsageError, suggest_name
from proctor.models.connect import is_model_address, suggest_address, suggest_provider
from proctor.ports import Target, TargetLike
from proctor.records.run import TargetSpec
from proctor.targets.command import CommandTarget
from proctor.targets.http import HttpTarget
from proctor.targets.model import ModelTarget
from proctor.targets.python import PythonTarget, from_execute, from_function, from_runnable
from proctor.targets.recorded import RecordedTarget

# The class for each key of a mapping, and its options; None: the class checks them.
_CLASSES: Mapping[str, tuple[Callable[..., Target], tuple[str, ...] | None]] = {
    "command": (CommandTarget, ("cwd", "env")),
    "http": (HttpTarget, ("headers", "method", "timeout")),
    "model": (ModelTarget, None),
    "recorded": (RecordedTarget, ()),
}
_COMMON_KEYS = ("name", "version")


def as_target(target: TargetLike | None, *, name: str | None = None, version: str | None = None) -> Target:
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
        if target.startswith(("http://", "https://")):
            # Only a model has a # in its address: an endpoint never receives it.
            return _relabel(ModelTarget(target) if "#" in target else HttpTarget(target), name, version)
        if ".py:" not in target and is_model_address(target):
            return _relabel(ModelTarget(target), name, version)
        return _from_address(target, name, version)
    if isinstance(target, Mapping):
        return _from_mapping(target, name, version)
    if isinstance(getattr(target, "spec", None), TargetSpec):
        return _relabel(cast(Target, target), name, version)
    return _relabel(_from_object(target, name), name, version)


def _from_object(target: Any, name: str | None) -> PythonTarget:
    if target is None:
        raise TargetError(
            "there is no target",
            fix="name one; recorded sessions need none, but the dataset must declare them: "
            "--format auto, in an eval file `dataset: {path: …, format: auto}`, in Python a "
            "SessionDataset",
        )
    label = name or name_of(target)
    if inspect.isclass(target):
        raise TargetError(
            "it is a class, and a target must be callable",
            where=label,
            fix=f"pass an instance, such as {label}(), or a function",
        )
    if inspect.isroutine(target) or isinstance(target, functools.partial):
        return from_function(target, label)
    if callable(getattr(target, "execute", None)):
        return from_execute(target, label)
    if any(callable(getattr(target, method, None)) for method in ("ainvoke", "invoke")):
        return from_runnable(target, label)
    if callable(target):
        return from_function(target, label)
    raise TargetError(
        f"{type(target).__name__} cannot be a target: it cannot be called",
        where=name or "",
        fix="pass a function, an object with execute or invoke, an address or a mapping",
    )


def _from_address(address: str, name: str | None, version: str | None) -> Target:
    try:
        target = importing.import_object(address)
    except UsageError as error:
        if ":" not in address:
            raise TargetError(
                f"{address!r} is not the address of a target",
                fix=f"name the function as well: {address}:FUNCTION"
                if address.endswith(".py")
                else f"{suggest_address(address)}; write a Python function as module:attribute or file.py:attribute",
            ) from None
        hint = suggest_provider(address)
        raise TargetError(
            f"the target cannot be used: {error.what}",
            where=error.where or address,
            fix=f"{hint}; or {error.fix}" if hint else error.fix,
        ) from None
    if isinstance(target, str):
        raise TargetError("it is a string, not a callable", where=address)
    if isinstance(getattr(target, "spec", None), TargetSpec):
        return as_target(target, name=name, version=version)
    return as_target(target, name=name or address.rpartition(":")[2], version=version)


def _from_mapping(config: Mapping[str, Any], name: str | None, version: str | None) -> Target:
    kinds = [kind for kind in _CLASSES if kind in config]
    if len(kinds) != 1:
        hints = "; ".join(f"{key}: {suggest_name(str(key), _CLASSES)}" for key in config) or "name one"
        present = " and ".join(kinds or map(str, config)) or "nothing"
        raise TargetError(
            f"a target has exactly one of {', '.join(_CLASSES)}; this one has {present}",
            where=name or "target",
            fix="keep one of them" if kinds else hints,
        )
    (kind,) = kinds
    make, options = _CLASSES[kind]
    if options is None:
        options = tuple(str(key) for key in config if key not in (kind, *_COMMON_KEYS))
    known = (kind, *options, *_COMMON_KEYS)
    unknown = [str(key) for key in config if key not in known]
    if unknown:
        raise TargetError(
            "some keys are unknown",
            where=name or "target",
            problems=[Problem(key, suggest_name(key, known)) for key in unknown],
        )
    target = make(config[kind], **{key: config[key] for key in options if key in config})
    config_name, config_version = (config.get(key) for key in _COMMON_KEYS)
    if version is None and config_version is not None:
        version = str(config_version)
    return _relabel(target, name or config_name, version)


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
