"""A model as a target: the sample's input is put into a prompt, the answer is the output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from proctor.errors import ModelError, Problem, TargetError, nearest
from proctor.models.asking import AskOptions, aask
from proctor.models.connect import provider
from proctor.models.prompts import MarkdownSection, Prompt, PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records import codec
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.session import Message

INPUT = "input"
PROMPT_FILE = ".md"
LONGEST_QUOTE = 100


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
    configuration set model, prompt, system, temperature, max_tokens and seed anew. Any other
    option is the provider's, such as `base_url`, or `of` for a wrapper.

    >>> def capital(prompt: str) -> str:
    ...     return "Paris"
    >>> ModelTarget(capital, prompt="Answer in one word: $input").spec.kind
    'model'
    """

    blocking = False

    def __init__(self, model: Any, *, name: str | None = None, **settings: Any) -> None:
        known = Settings.__struct_fields__
        others = {key: value for key, value in settings.items() if key not in known}
        slips = [Problem(key, nearest(key, known)) for key in others]
        slips = [slip for slip in slips if slip.what.startswith("did you mean")]
        if slips:
            raise TargetError("some keys mean nothing here", where=name or "", problems=slips)
        if others:
            model = {**(model if isinstance(model, Mapping) else {"model": model}), **others}
        own = {key: value for key, value in settings.items() if key in known}
        self._settings = _settings({"model": model, **own}, Settings())
        self._adapters: dict[str, ProviderAdapter] = {}
        adapter = self._adapter(self._settings)
        self._templates: dict[str, PromptTemplate[Any]] = {}
        template = self._template(self._settings)
        asked = [
            adapter.model,
            str(getattr(adapter, "identity", "")),
            None if template is None else template.version,
            msgspec.structs.replace(self._settings, model=None, prompt=None),
        ]
        self.spec = TargetSpec(name or adapter.model, "model", codec.digest(asked)[:16])

    def __repr__(self) -> str:
        return f"ModelTarget({self.spec.name!r})"

    def check_options(self, options: Mapping[str, Any]) -> list[str]:
        """What is wrong with a configuration, its model and its prompt included."""
        given = options.get("model")
        if isinstance(given, Mapping) and "api_key" in given:
            return ["a configuration is stored with the run, so it takes no api_key: api_key_env"]
        try:
            settings = _settings(options, self._settings)
            self._adapter(settings)
            self._template(settings)
        except (TargetError, ModelError) as error:
            return [str(error)]
        return []

    async def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> str:
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
                found = PromptTemplate.load(Path(text))
            else:
                section: MarkdownSection[Any] = MarkdownSection("", text, "prompt")
                found = PromptTemplate("targets", "prompt", [section])
            if not found.parameters:
                raise TargetError(
                    "the prompt has no place for the input: all samples would be asked the same",
                    where=text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…",
                    fix="write $input where it belongs; a prompt in a file ends in .md",
                )
            self._templates[text] = found
        return self._templates[text]

    def _messages(self, given: Any, settings: Settings) -> list[Message]:
        system = [] if settings.system is None else [Message("system", settings.system)]
        template = self._template(settings)
        if template is not None:
            return [*system, *Prompt(template).bind(**_values(given, template)).messages()]
        if isinstance(given, list | tuple):
            return [*system, *(_message(each) for each in given)]
        text = given if isinstance(given, str) else codec.encode_pretty(given).decode()
        return [*system, Message("user", text)]


def _values(given: Any, template: PromptTemplate[Any]) -> dict[str, Any]:
    """What fills the prompt: the input as a whole, or the keys of one that is a mapping."""
    names = list(template.parameters)
    if INPUT in names:
        return {INPUT: given}
    if not isinstance(given, Mapping):
        raise TargetError(
            f"the prompt has a place for {', '.join(f'${name}' for name in names)}, but the input "
            "is no mapping with such a key",
            fix=f"write ${INPUT} for the whole input",
        )
    missing = [name for name in names if name not in given]
    if missing:
        raise TargetError(
            f"the prompt has a place for ${missing[0]}, but the input has no such key",
            fix=f"{nearest(missing[0], map(str, given))}; ${INPUT} is the whole input",
        )
    return {name: given[name] for name in names}


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
    changes = {name: given[name] if made is None else getattr(made, name) for name, made in fitted.items()}
    return msgspec.structs.replace(above, **changes)


def _message(given: Any) -> Message:
    """One turn of a conversation, as OpenAI's format writes it."""
    if isinstance(given, Message):
        return given
    try:
        return msgspec.convert(dict(given), Message)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise TargetError(f"a turn of a conversation is {{role, content}}, got {given!r} ({error})") from None
