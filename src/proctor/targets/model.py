"""A model as a target: the prompt contains the sample's input, the answer is the output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from proctor.errors import ModelError, Problem, TargetError, suggest_name
from proctor.models.connect import provider
from proctor.models.http.errors import to_short_line
from proctor.models.model_calls import AskOptions, aask
from proctor.models.prompts import MarkdownSection, Prompt, PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records import codec
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.session import Message
from proctor.records.validation import explain

INPUT = "input"
MAX_QUOTE = 100


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The settings of a model target; a configuration may override each of them."""

    model: Any = None
    prompt: str | None = None
    system: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None


class ModelTarget:
    """Asks a model about each sample: `ModelTarget("openai:gpt-4o-mini", prompt="Answer: $input")`.

    A string input becomes the prompt, or replaces `$input` in it; the keys of a mapping fill placeholders with the same
    names; a list of {role, content} is a conversation. `prompt` is a string or a Markdown file with front matter. A
    configuration may override model, prompt, system, temperature, max_tokens and seed. All other options belong to the
    provider, such as `base_url`.

    >>> def capital(prompt: str) -> str:
    ...     return "Paris"
    >>> ModelTarget(capital, prompt="Answer in one word: $input").spec.kind
    'model'
    """

    blocking = False

    def __init__(self, model: Any, *, name: str | None = None, **settings: Any) -> None:
        setting_names = Settings.__struct_fields__
        others = {key: value for key, value in settings.items() if key not in setting_names}
        hints = {key: suggest_name(key, setting_names) for key in others}
        typos = [Problem(key, hint) for key, hint in hints.items() if hint.startswith("did you mean")]
        if typos:
            raise TargetError("some keys are unknown", where=name or "", problems=typos, fix="correct these keys")
        if others:
            model = {**(model if isinstance(model, Mapping) else {"model": model}), **others}
        own_settings = {key: value for key, value in settings.items() if key in setting_names}
        self._settings = _override({"model": model, **own_settings}, Settings())
        self._adapters: dict[str, ProviderAdapter] = {}
        self._templates: dict[str, PromptTemplate[Any]] = {}
        adapter, template = self._adapter(self._settings), self._template(self._settings)
        identity = [
            adapter.model,
            str(getattr(adapter, "identity", "")),
            None if template is None else template.version,
            msgspec.structs.replace(self._settings, model=None, prompt=None),
        ]
        self.spec = TargetSpec(name or adapter.model, "model", codec.digest(identity)[:16])

    def __repr__(self) -> str:
        return f"ModelTarget({self.spec.name!r})"

    def check_options(self, options: Mapping[str, Any]) -> list[str]:
        """Return the problems with a configuration, including its model and its prompt."""
        model = options.get("model")
        if isinstance(model, Mapping) and "api_key" in model:
            return ["a configuration is stored with the run, so use api_key_env instead of api_key"]
        try:
            settings = _override(options, self._settings)
            self._adapter(settings)
            self._template(settings)
        except (TargetError, ModelError) as error:
            return [str(error)]
        return []

    async def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> str:
        """Ask the model; a refusal counts as its output."""
        settings = _override(options, self._settings) if options else self._settings
        names = ("temperature", "max_tokens", "seed")
        ask_options = {name: value for name in names if (value := getattr(settings, name)) is not None}
        messages = self._messages(sample.input, settings)
        response = await aask(self._adapter(settings), messages, **cast("AskOptions", ask_options))
        return response.text if response.refusal is None else response.refusal

    async def close(self) -> None:
        """Do nothing: connections belong to the run."""

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
            if text.endswith(".md") and "\n" not in text:
                template = PromptTemplate.load(Path(text))
            else:
                section: MarkdownSection[Any] = MarkdownSection("", text, "prompt")
                template = PromptTemplate("targets", "prompt", [section])
            if not template.parameters:
                raise TargetError(
                    "the prompt has no placeholder for the input: it would be the same for all samples",
                    where=to_short_line(text, MAX_QUOTE),
                    fix="write $input where it belongs; a prompt in a file ends in .md",
                )
            self._templates[text] = template
        return self._templates[text]

    def _messages(self, sample_input: Any, settings: Settings) -> list[Message]:
        system = [] if settings.system is None else [Message("system", settings.system)]
        template = self._template(settings)
        if template is not None:
            return [*system, *Prompt(template).bind(**_placeholder_values(sample_input, template)).messages()]
        if isinstance(sample_input, list | tuple):
            return [*system, *map(_to_message, sample_input)]
        text = sample_input if isinstance(sample_input, str) else codec.encode_pretty(sample_input).decode()
        return [*system, Message("user", text)]


def _placeholder_values(sample_input: Any, template: PromptTemplate[Any]) -> dict[str, Any]:
    names = list(template.parameters)
    if INPUT in names:
        return {INPUT: sample_input}
    if not isinstance(sample_input, Mapping):
        raise TargetError(
            f"the prompt has placeholders for {', '.join(f'${name}' for name in names)}, but the input "
            "is not a mapping with such keys",
            fix=f"write ${INPUT} for the whole input",
        )
    missing = [name for name in names if name not in sample_input]
    if missing:
        raise TargetError(
            f"the prompt has a placeholder for ${missing[0]}, but the input has no such key",
            fix=f"{suggest_name(missing[0], map(str, sample_input))}; ${INPUT} is the whole input",
        )
    return {name: sample_input[name] for name in names}


def _override(options: Mapping[str, Any], defaults: Settings) -> Settings:
    setting_names = Settings.__struct_fields__
    unknown_names = [str(name) for name in options if name not in setting_names]
    if unknown_names:
        raise TargetError(
            f"a model target has no option {unknown_names[0]!r}", fix=suggest_name(unknown_names[0], setting_names)
        )
    try:
        # `model` may be any object, which msgspec would copy.
        changes = {
            name: value if name == "model" else getattr(msgspec.convert({name: value}, Settings), name)
            for name, value in options.items()
        }
    except msgspec.ValidationError as error:
        fix = 'write numbers without quotes, such as {"model": "openai:gpt-4o", "temperature": 0.2}'
        raise TargetError(explain(error), fix=fix) from None
    return msgspec.structs.replace(defaults, **changes)


def _to_message(turn: Any) -> Message:
    if isinstance(turn, Message):
        return turn
    try:
        return msgspec.convert(dict(turn), Message)
    except (msgspec.ValidationError, TypeError, ValueError):
        raise TargetError(
            f"a turn of a conversation must be {{role, content}}, got {turn!r}",
            fix='write {"role": "user", "content": "…"}',
        ) from None
