"""Form and rules: JSON, JSON Schema, numeric answers, and checkable instructions (IFEval).

IFEval's instructions are written as names and parameters of Proctor's evaluators, as in an eval file, and
built by the registry. The figures are close to the published ones but not equal, because Proctor's rules
differ on purpose: a word with a hyphen or an apostrophe is one word, sentences are split by nupunkt and not
by nltk, a line of dashes is not a bullet, quotation marks around a repeated prompt are ignored, and checks
of letter case do not require that English is detected.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.quality.figure import Figure
from benchmarks.quality.intervals import rate
from proctor.evaluators.numeric.numbers import numeric_answer
from proctor.evaluators.structural import json_validity, schema_match
from proctor.records.score import Score
from proctor.wiring.registry import Registry

Rule = Mapping[str, Any]
Judge = Callable[[str], Score]
PUBLISHED = {
    "prompts, strict": 0.7689,
    "instructions, strict": 0.8357,
    "prompts, loose": 0.7930,
    "instructions, loose": 0.8537,
}
# Answers to "yes, no or maybe" as IFEval words them.
CHOICES = ["My answer is yes.", "My answer is no.", "My answer is maybe."]
SUITE_ADDRESS = "http://localhost:1234/"
ANNOTATIONS = "format.json"


def measure(data: Path) -> Iterator[Figure]:
    """Return every figure of this subject."""
    yield json_suite(data / "09_json" / "JSONTestSuite" / "test_parsing")
    schemas = data / "09_json" / "JSON-Schema-Test-Suite"
    yield from schema_suite(schemas, "7")
    yield from schema_suite(schemas, "2020-12")
    yield gsm8k(data / "01_qa_reference" / "gsm8k" / "example_model_solutions.jsonl")
    yield from ifeval(data / "02_ifeval", Registry.standard())


def json_suite(folder: Path) -> Figure:
    """Return the number of files that json_validity misjudges."""
    judged = [path for path in _files(folder, "*.json") if path.name[0] in "yn"]
    wrong = sum(json_validity(path.read_bytes()).passed is not (path.name[0] == "y") for path in judged)
    return Figure(
        "json_validity, files judged wrong", "JSONTestSuite", wrong, f"json.loads: 5 of {len(judged)}", "0", wrong == 0
    )


def schema_suite(folder: Path, draft: str) -> Iterator[Figure]:
    """Return how many invalid values schema_match accepts by default, and how many valid values it rejects.

    Remote schemas are passed in. The file format.json tests formats as annotations, which is not the default.
    """
    schemas = _remotes(folder / "remotes", draft)
    accepted: list[bool] = []
    rejected: list[bool] = []
    for path in _files(folder / "tests" / f"draft{draft}", "**/*.json"):
        formats = path.name != ANNOTATIONS
        for group in json.loads(path.read_text(encoding="utf-8")):
            match = schema_match(group["schema"], draft=draft, formats=formats, schemas=schemas)  # type: ignore[arg-type]
            for test in group["tests"]:
                passed = match(json.dumps(test["data"])).passed is True
                (rejected if test["valid"] else accepted).append(passed is not test["valid"])
    for what, wrong in (("invalid values accepted", accepted), ("valid values rejected", rejected)):
        value, interval = rate(wrong)
        data = f"JSON-Schema-Test-Suite, draft {draft}"
        note = "with the optional tests"
        yield Figure(what, data, value, "", "<= 0.008", value <= 0.008, note, "schema_match", interval)


def _remotes(folder: Path, draft: str) -> dict[str, Any]:
    """Return the schemas that the suite expects on a server, for the supported drafts."""
    by_name = {}
    for path in _files(folder, "**/*.json"):
        under = path.relative_to(folder)
        if under.parts[0] in ("draft3", "v1"):
            continue
        schema = json.loads(path.read_text(encoding="utf-8"))
        of_draft = under.parts[0].removeprefix("draft") if under.parts[0].startswith("draft") else draft
        if isinstance(schema, dict):
            schema = {"$schema": _META_SCHEMAS[of_draft]} | schema
        by_name[SUITE_ADDRESS + under.as_posix()] = schema
    return by_name


_META_SCHEMAS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def gsm8k(path: Path) -> Figure:
    """Return the number of recorded verdicts that numeric_answer reproduces."""
    count = same = 0
    for row in rows(path):
        for solution in row.values():
            if isinstance(solution, dict):
                count += 1
                score = numeric_answer(solution["solution"], row["ground_truth"])
                same += score.passed is solution["is_correct"]
    return Figure(
        "numeric_answer, verdicts reproduced", "GSM8K, 4 models", same, f"of {count}", f"{count}", same == count
    )


def ifeval(folder: Path, registry: Registry) -> Iterator[Figure]:
    """Return IFEval's accuracies with Proctor's rules."""
    # Match by order, because the two files word one prompt differently.
    answers = [row["response"] for row in rows(folder / RESPONSES)]
    prompts = list(rows(folder / "input_data.jsonl"))
    languages = importlib.util.find_spec("py3langid") is not None
    by_name: dict[str, list[bool]] = {name: [] for name in PUBLISHED}
    left_out = 0
    for row, answer in zip(prompts, answers, strict=True):
        judges = [
            registry.build(rule_for(name, options))
            for name, options in zip(row["instruction_id_list"], row["kwargs"], strict=True)
            if languages or name != "language:response_language"
        ]
        left_out += len(row["kwargs"]) - len(judges)
        for way, variants in (("strict", [answer]), ("loose", loosened(answer))):
            values = [_follows(judge, variants) for judge in judges]
            by_name[f"instructions, {way}"] += values
            # If an instruction of a prompt cannot be judged, the others decide.
            by_name[f"prompts, {way}"] += [all(values)] * bool(values)
    note = f"{left_out} on languages left out: py3langid is not installed" if left_out else ""
    for name, published in PUBLISHED.items():
        value = sum(by_name[name]) / len(by_name[name])
        yield Figure(f"rules, {name}", "IFEval, GPT-4", value, f"{published:.4f}", note=note)


RESPONSES = "input_response_data_gpt4_20231107_145030.jsonl"


def _follows(judge: Callable[..., Any], variants: Sequence[str]) -> bool:
    return any(text.strip() and judge(text).passed for text in variants)


def loosened(text: str) -> list[str]:
    """Return the answer with and without its first line, its last line, and its asterisks."""
    lines = text.split("\n")
    cuts = ["\n".join(part) for part in (lines, lines[1:], lines[:-1], lines[1:-1])]
    return [*(cut.strip() for cut in cuts), *(cut.strip().replace("*", "") for cut in cuts)]


def rule_for(instruction: str, options: Mapping[str, Any]) -> Rule:
    """Return the rule for an IFEval instruction, as written in an eval file."""
    return RULES[instruction](options)


def _relation(options: Mapping[str, Any], relation: str, number: str) -> dict[str, int]:
    less = options[relation] == "less than"
    return {"at_most": options[number] - 1} if less else {"at_least": options[number]}


def _counted(of: str, relation: str, number: str) -> Callable[[Mapping[str, Any]], Rule]:
    return lambda options: {"text_count": {"of": of, **_relation(options, relation, number)}}


def _paragraphs(count: int, separator: str | None = None, **more: Any) -> Rule:
    return {"text_count": {"of": "paragraphs", "exactly": count, "separator": separator, **more}}


def _postscript(options: Mapping[str, Any]) -> Rule:
    letters = re.findall(r"[A-Za-z]", options["postscript_marker"])
    pattern = r"\s?".join(rf"{letter}\.?" for letter in letters)
    return {"occurrences": {"pattern": rf"^\s*{pattern}|\s{pattern}", "at_least": 1}}


def _sections(options: Mapping[str, Any]) -> Rule:
    word = re.escape(options["section_spliter"])
    return {"occurrences": {"pattern": rf"{word}\s?\d+", "case_sensitive": True, "at_least": options["num_sections"]}}


def _first_word(options: Mapping[str, Any]) -> Rule:
    return {
        "all_of": [
            _paragraphs(options["num_paragraphs"]),
            {"starts_with": {"phrases": options["first_word"], "paragraph": options["nth_paragraph"]}},
        ]
    }


RULES: dict[str, Callable[[Mapping[str, Any]], Rule]] = {
    "change_case:capital_word_frequency": _counted("capital_words", "capital_relation", "capital_frequency"),
    "change_case:english_capital": lambda _: {"letter_case": {"case": "upper"}},
    "change_case:english_lowercase": lambda _: {"letter_case": {"case": "lower"}},
    "combination:repeat_prompt": lambda o: {"starts_with": {"phrases": o["prompt_to_repeat"]}},
    "combination:two_responses": lambda _: _paragraphs(2, "******", distinct=True),
    "detectable_content:number_placeholders": lambda o: {
        "text_count": {"of": "placeholders", "at_least": o["num_placeholders"]}
    },
    "detectable_content:postscript": _postscript,
    "detectable_format:constrained_response": lambda _: {
        "keywords": {"include": CHOICES, "need": "any", "case_sensitive": True}
    },
    "detectable_format:json_format": lambda _: {"json_validity": {"allow_fences": True}},
    "detectable_format:multiple_sections": _sections,
    "detectable_format:number_bullet_lists": lambda o: {"text_count": {"of": "bullets", "exactly": o["num_bullets"]}},
    "detectable_format:number_highlighted_sections": lambda o: {
        "text_count": {"of": "highlights", "at_least": o["num_highlights"]}
    },
    "detectable_format:title": lambda _: {"occurrences": {"pattern": r"<<[^\n]+>>", "at_least": 1}},
    "keywords:existence": lambda o: {"keywords": {"include": o["keywords"], "whole_words": False}},
    "keywords:forbidden_words": lambda o: {"keywords": {"exclude": o["forbidden_words"]}},
    "keywords:frequency": lambda o: {
        "occurrences": {"text": o["keyword"], "whole_words": False, **_relation(o, "relation", "frequency")}
    },
    "keywords:letter_frequency": lambda o: {
        "occurrences": {"text": o["letter"], "whole_words": False, **_relation(o, "let_relation", "let_frequency")}
    },
    "language:response_language": lambda o: {"output_language": {"language": o["language"]}},
    "length_constraints:nth_paragraph_first_word": _first_word,
    "length_constraints:number_paragraphs": lambda o: _paragraphs(o["num_paragraphs"], "***"),
    "length_constraints:number_sentences": _counted("sentences", "relation", "num_sentences"),
    "length_constraints:number_words": _counted("words", "relation", "num_words"),
    "punctuation:no_comma": lambda _: {"keywords": {"exclude": [","]}},
    "startend:end_checker": lambda o: {"ends_with": {"phrases": o["end_phrase"]}},
    "startend:quotation": lambda _: {"all_of": [{"starts_with": {"phrases": '"'}}, {"ends_with": {"phrases": '"'}}]},
}


def _files(folder: Path, pattern: str) -> list[Path]:
    if not folder.is_dir():
        raise FileNotFoundError(2, "there is no such folder", str(folder))
    return sorted(folder.glob(pattern))


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read the rows of a JSONL file."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
