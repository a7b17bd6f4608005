"""The parameters of a prompt: which fields a user's type has, and whether a value fits."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_type_hints

import msgspec

from proctor import codec, extras
from proctor.errors import ModelError

# The words for types in the head of a prompt file.
TYPES: Mapping[str, Any] = {
    "str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict, "any": Any,
}  # fmt: skip


def fields_of(params_type: Any) -> dict[str, Any]:
    """The fields of a dataclass, struct or pydantic model, with their types.

    >>> @dataclasses.dataclass
    ... class Params:
    ...     question: str
    >>> list(fields_of(Params))
    ['question']
    """
    if extras.is_pydantic_model(params_type):
        return {name: field.annotation for name, field in params_type.model_fields.items()}
    if dataclasses.is_dataclass(params_type):
        names = [field.name for field in dataclasses.fields(params_type)]
    elif isinstance(params_type, type) and issubclass(params_type, msgspec.Struct):
        names = list(params_type.__struct_fields__)
    else:
        raise ModelError(
            f"{params_type!r} has no fields",
            fix="use a dataclass, a struct or a pydantic model for parameters",
        )
    try:
        hints = get_type_hints(params_type)
    except NameError:
        # Names imported for type checkers only cannot be resolved: then types are not checked.
        hints = {}
    return {name: hints.get(name, Any) for name in names}


def values_of(params: Any) -> dict[str, Any]:
    """The values in a parameters object, by name.

    >>> values_of({"question": "Why?"})
    {'question': 'Why?'}
    """
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        return {field.name: getattr(params, field.name) for field in dataclasses.fields(params)}
    if isinstance(params, msgspec.Struct):
        return msgspec.structs.asdict(params)
    if extras.is_pydantic_model(type(params)):
        return {name: getattr(params, name) for name in type(params).model_fields}
    if isinstance(params, Mapping):
        return {str(name): value for name, value in params.items()}
    raise ModelError(
        f"parameters come as a dataclass, struct, model or mapping, got {params!r}",
        fix="or bind them by name",
    )


def fits(value: Any, kind: Any) -> bool:
    """True if a value is of a type; None stands for a parameter that is not there.

    >>> fits(3, float), fits(True, int), fits(["a"], list[str]), fits([1], list[str])
    (True, False, True, False)
    """
    if value is None or kind is Any:
        return True
    if isinstance(kind, type) and isinstance(value, kind):
        return not isinstance(value, bool) or kind in (bool, object)
    try:
        msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError:
        return False
    except TypeError:
        # A union of types that only Python knows: whether it fits cannot be told.
        return True
    return True


def named(kind: Any) -> str:
    """A type as an error message shows it.

    >>> named(str), named(list[int])
    ('str', 'list[int]')
    """
    return kind.__name__ if isinstance(kind, type) else str(kind)


def written(value: Any) -> str:
    """A value as it stands in a prompt: text as it is, everything else as JSON.

    >>> written("as it is"), written({"a": True})
    ('as it is', '{\\n  "a": true\\n}')
    """
    return str.__str__(value) if isinstance(value, str) else codec.encode_pretty(value).decode()
