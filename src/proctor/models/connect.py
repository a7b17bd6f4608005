"""Connect the addresses of models, embedders and mailboxes; the scheme selects the plugin.

All plugins, including the built-in ones, are entry points (`proctor.providers`, `proctor.embedders`,
`proctor.mailboxes`), so judges, targets and workers do not depend on any of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proctor.core import imports as plugins
from proctor.core.aliases import use_common_names
from proctor.errors import ConfigError, ModelError, UsageError, suggest_name
from proctor.ports import Embedder, Mailbox, ProviderAdapter

# The plugin name for functions, chat models and clients that users pass in.
PYTHON = "python"
HF = "hf"
HF_FIX = (
    "pass a model that writes text, such as openai:gpt-4o; hf: models fit "
    'semantic_similarity(embedder="hf:…") and relevance(model="hf:…")'
)
# The user and password of an address, even of a malformed address.
_CREDENTIALS = re.compile(r"^(\w*:?/*).*@", re.DOTALL)
# The names of each provider's models.
_MODEL_NAMES = {
    "openai": re.compile(r"(?:gpt|chatgpt|o\d)(?:-|$)"),
    "anthropic": re.compile(r"claude-"),
    "gemini": re.compile(r"gemini-"),
}
# Options of a request, not of a connection.
_REQUEST_OPTIONS = frozenset({"temperature", "max_tokens", "seed", "top_logprobs"})


def provider(model: Any, **options: Any) -> ProviderAdapter:
    """Connect a model: an address, a mapping {model, …options}, or a Python object.

    `openai:gpt-4o-mini`, `anthropic:…`, `gemini:…`, `http://host/v1#model`, `local:smollm2`, `replay:FILE`,
    `module:attribute`; functions, LangChain chat models and SDK clients.

    >>> provider(lambda messages: "Paris").model
    'python:<lambda>'
    """
    adapter: ProviderAdapter = _connect(model, options, plugins.PROVIDERS, "model", ("complete", "model"))
    return adapter


def embedder(model: Any, **options: Any) -> Embedder:
    """Connect an embedder: an address, a mapping {model, …options}, or a Python object.

    `local:minilm`, `openai:text-embedding-3-small`, `http://host/v1#model`, `lexical`, `module:attribute`;
    functions and LangChain embeddings.
    """
    connected: Embedder = _connect(model, options, plugins.EMBEDDERS, "embedder", ("embed", "name"))
    return connected


def mailbox(address: str, body_type: type[Any], **options: Any) -> Mailbox[Any]:
    """Connect a mailbox for messages of one type.

    `redis://host:6379/0/NAME` (or `rediss://`), `sqs://NAME`, `memory://NAME`.
    """
    scheme, colon, _ = address.partition(":")
    connect = plugins.load_plugin(plugins.MAILBOXES, scheme) if colon else None
    if connect is None:
        known_schemes = plugins.plugin_names(plugins.MAILBOXES)
        hint = "" if scheme in known_schemes else suggest_name(scheme, known_schemes)
        raise ConfigError(
            f"{hide_credentials(address)!r} is not a mailbox address",
            fix=hint if hint.startswith("did you mean") else "write it as redis://host:6379/0/NAME or sqs://NAME",
        )
    parameters = inspect.signature(connect).parameters
    unknown_options = sorted(options.keys() - parameters.keys())
    if unknown_options and not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        raise ConfigError(
            f"unknown options: {', '.join(map(repr, unknown_options))}",
            where=hide_credentials(address),
            fix=f"use {', '.join(list(parameters)[2:])}",
        )
    connected: Mailbox[Any] = connect(address, body_type, **options)
    return connected


def hide_credentials(address: str) -> str:
    """Remove user, password and options from an address."""
    return _CREDENTIALS.sub(r"\1", address).partition("?")[0]


def display_name(model: str) -> str:
    """Return the name of a model for messages; for a function, without the enclosing functions.

    >>> display_name("python:test_tone.<locals>.judge")
    'python:judge'
    """
    scheme, colon, name = model.partition(":")
    return scheme + colon + name.rpartition("<locals>.")[2]


def is_model_address(address: str) -> bool:
    """Return True if a string is the address of a model, not of a Python object, judging by its scheme."""
    scheme, colon, _ = address.partition(":")
    return bool(colon) and scheme != PYTHON and scheme in plugins.plugin_names(plugins.PROVIDERS)


def suggest_address(address: str) -> str:
    """Suggest the address of a model; return "" if the scheme resembles no provider."""
    scheme, colon, _ = address.partition(":")
    if colon:
        hint = suggest_name(scheme, (name for name in plugins.plugin_names(plugins.PROVIDERS) if name != PYTHON))
        return hint if hint.startswith("did you mean") else ""
    scheme = next((scheme for scheme, pattern in _MODEL_NAMES.items() if pattern.match(address)), "")
    example = f"{scheme}:{address}" if scheme else "openai:gpt-4o-mini"
    return f"write a model as PROVIDER:NAME, for example {example}"


def _connect(model: Any, options: Mapping[str, Any], group: str, noun: str, port: tuple[str, str]) -> Any:
    """Connect with the plugins of a group; `port` names the method and attribute of the result."""
    if isinstance(model, Mapping):
        config = {str(key): value for key, value in model.items()}
        if "model" not in config:
            example = "openai:gpt-4o-mini" if noun == "model" else "local:minilm"
            fix = f'write {{"model": "{example}", …}}, or pass the address alone'
            raise ModelError(f"the mapping has no 'model' key for the {noun}", fix=fix)
        return _connect(config.pop("model"), {**config, **options}, group, noun, port)
    if isinstance(model, str):
        return _connect_address(model, options, group, noun, port)
    method, attribute = port
    if callable(getattr(model, method, None)) and isinstance(getattr(model, attribute, None), str):
        if options:
            raise ModelError(
                f"{_with_article(noun)} that is already connected takes no options: {', '.join(options)}",
                where=getattr(model, attribute),
                fix="set them where you create it",
            )
        return model
    return _call_plugin(plugins.load_plugin(group, PYTHON), model, options, repr(type(model).__name__))


def _connect_address(address: str, options: Mapping[str, Any], group: str, noun: str, port: tuple[str, str]) -> Any:
    scheme, colon, rest = address.partition(":")
    if scheme != PYTHON:
        connect = plugins.load_plugin(group, scheme)
        if connect is not None:
            return _call_plugin(connect, address, options, address)
    known_schemes = [name for name in plugins.plugin_names(group) if name != PYTHON]
    if not colon:
        hint = suggest_address(address) if noun == "model" else f"write {_with_article(noun)} as PROVIDER:NAME"
        raise ModelError(
            f"{address!r} is not {_with_article(noun)} address",
            fix=f"{hint}, or a Python object as module:attribute; providers: {', '.join(known_schemes)}",
        )
    try:
        target = plugins.import_object(rest if scheme == PYTHON else address)
    except UsageError as error:
        fix = suggest_name(scheme, known_schemes)
        if not fix.startswith("did you mean"):
            fix = f"correct the address: PROVIDER:NAME (providers: {', '.join(known_schemes)}) or module:attribute"
        if scheme == HF and noun == "model":
            raise ModelError(
                "hf: models classify and embed, but do not write text", where=address, fix=HF_FIX
            ) from None
        raise ModelError(f"unknown provider {scheme!r}, and {error.what}", where=address, fix=fix) from None
    if isinstance(target, str) and target == address:
        raise ModelError("the address refers to itself", where=address)
    return _connect(target, options, group, noun, port)


def unknown_options_error(options: Iterable[str], known_options: Sequence[str], where: str) -> ModelError | None:
    """Return the error for unknown options, or None if all are known."""
    unknown_options = [name for name in options if name not in known_options]
    if not unknown_options:
        return None
    fix = suggest_name(unknown_options[0], known_options) if known_options else "leave out all options"
    if misplaced := [name for name in unknown_options if name in _REQUEST_OPTIONS]:
        fix = f"set {' and '.join(misplaced)} in the judge or target that uses the model"
    nouns = "options" if len(unknown_options) > 1 else "option"
    return ModelError(f"unknown {nouns} {', '.join(map(repr, unknown_options))}", where=where, fix=fix)


def _call_plugin(connect: Any, model: Any, options: Mapping[str, Any], where: str) -> Any:
    signature = inspect.signature(connect)
    known_options = list(signature.parameters)[1:]
    arguments = use_common_names(options, known_options)
    if "of" in arguments and "source_model" in known_options:
        # An earlier name of the option.
        arguments["source_model"] = arguments.pop("of")
    takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    if not takes_any and (error := unknown_options_error(arguments, known_options, where)):
        raise error
    try:
        signature.bind(model, **arguments)
    except TypeError as error:
        fix = f"choose from the options {', '.join(known_options)}"
        raise ModelError(f"its options are invalid: {error}", where=where, fix=fix) from None
    try:
        return connect(model, **arguments)
    except TypeError as error:
        if not arguments:
            raise  # a bug in the plugin, not wrong options
        raise ModelError(f"its options are invalid: {error}", where=where) from error


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
