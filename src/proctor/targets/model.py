"""A model as a target: the sample's input is put into a prompt, the answer is the output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from proctor import codec
from proctor.asking.ask import AskOptions, aask
from proctor.connections import provider
from proctor.errors import ModelError, TargetError, nearest
from proctor.ports import ProviderAdapter
from proctor.prompts import MarkdownSection, Prompt, PromptTemplate
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.session import Message

INPUT = "input"
PROMPT_FILE = ".md"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a model is asked as a target; a configuration may set each of them anew."""

    model: Any = None
    prompt: str | None = None
    system: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None


class ModelTarget:
    """Asks a model for each sample: `ModelTarget("openai:gpt-4o-mini", prompt="Answer: $input")`.

    An input that is text is asked as it is, or put into the prompt at `$input`; the keys of an
    input that is a mapping fill placeholders of their own; a list of {role, content} is a
    conversation. `prompt` is the text itself or a Markdown file with a head. The options of a
    configuration set model, prompt, system, temperature, max_tokens and seed anew.

    >>> def capital(prompt: str) -> str:
    ...     return "Paris"
    >>> ModelTarget(capital, prompt="Answer in one word: $input").spec.kind
    'model'
    """

    blocking = False

    def __init__(self, model: Any, *, name: str | None = None, **settings: Any) -> None:
        self._settings = _settings({"model": model, **settings}, Settings())
        self._adapters: dict[str, ProviderAdapter] = {}
        adapter = self._adapter(self._settings)
        self._templates: dict[str, PromptTemplate[Any]] = {}
        template = self._template(self._settings)
        asked = [
            adapter.model,
            None if template is None else template.version,
            msgspec.structs.replace(self._settings, model=None, prompt=None),
        ]
        self.spec = TargetSpec(name or adapter.model, "model", codec.digest(asked)[:16])

    def __repr__(self) -> str:
        return f"ModelTarget({self.spec.name!r})"

    def check_options(self, options: Mapping[str, Any]) -> list[str]:
        """What is wrong with a configuration, its model and its prompt included."""
        try:
            settings = _settings(options, self._settings)
            self._adapter(settings)
            self._template(settings)
        except (TargetError, ModelError) as error:
            return [str(error)]
        return []

    async def call(
        self, sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0
    ) -> str:
        """Ask the model; what it refused to say is what it said."""
        settings = _settings(options, self._settings) if options else self._settings
        asked = cast(
            "AskOptions",
            {
                name: value
                for name in ("temperature", "max_tokens", "seed")
                if (value := getattr(settings, name)) is not None
            },
        )
        messages = self._messages(sample.input, settings)
        response = await aask(self._adapter(settings), messages, **asked)
        return response.text if response.refusal is None else response.refusal

    async def close(self) -> None:
        """Nothing is held: connections belong to the run."""

    def _adapter(self, settings: Settings) -> ProviderAdapter:
        key = settings.model if isinstance(settings.model, str) else repr(settings.model)
        if key not in self._adapters:
            self._adapters[key] = provider(settings.model)
        return self._adapters[key]

    def _template(self, settings: Settings) -> PromptTemplate[Any] | None:
        text = settings.prompt
        if text is None:
            return None
        if text not in self._templates:
            if text.endswith(PROMPT_FILE) and "\n" not in text:
                self._templates[text] = PromptTemplate.load(Path(text))
            else:
                section: MarkdownSection[Any] = MarkdownSection("", text, "prompt")
                self._templates[text] = PromptTemplate("targets", "prompt", [section])
        return self._templates[text]

    def _messages(self, given: Any, settings: Settings) -> list[Message]:
        system = [] if settings.system is None else [Message("system", settings.system)]
        template = self._template(settings)
        if template is not None:
            values = given if _fills(given, template) else {INPUT: given}
            wanted = {name: values[name] for name in template.parameters if name in values}
            return [*system, *Prompt(template).bind(**wanted).messages()]
        if isinstance(given, list | tuple):
            return [*system, *(_message(each) for each in given)]
        text = given if isinstance(given, str) else codec.encode_pretty(given).decode()
        return [*system, Message("user", text)]


def _fills(given: Any, template: PromptTemplate[Any]) -> bool:
    """True if the input is a mapping whose keys are what the prompt asks for."""
    return isinstance(given, Mapping) and INPUT not in template.parameters


def _settings(given: Mapping[str, Any], above: Settings) -> Settings:
    known = Settings.__struct_fields__
    unknown = [str(name) for name in given if name not in known]
    if unknown:
        raise TargetError(f"a model takes no option {unknown[0]!r}", fix=nearest(unknown[0], known))
    try:
        fitted = {
            name: msgspec.convert({name: value}, Settings) if name != "model" else None
            for name, value in given.items()
        }
    except msgspec.ValidationError as error:
        raise TargetError(f"an option does not fit: {error}") from None
    changes = {
        name: given[name] if made is None else getattr(made, name) for name, made in fitted.items()
    }
    return msgspec.structs.replace(above, **changes)


def _message(given: Any) -> Message:
    """One turn of a conversation, as OpenAI's format writes it."""
    if isinstance(given, Message):
        return given
    try:
        return msgspec.convert(dict(given), Message)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise TargetError(
            f"a turn of a conversation is {{role, content}}, got {given!r} ({error})"
        ) from None
