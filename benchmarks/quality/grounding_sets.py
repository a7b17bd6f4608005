"""The five data sets of grounding, and the near misses written for this benchmark, as claims with a context."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

BEGIN = "03_grounding/begin_wow_dev"
AUDIT = "03_grounding/faithdial_audit"
CLAIMS = {
    "FEVER symmetric dev": "03_grounding/fever_symmetric_dev/fever_symmetric_dev.jsonl",
    "Fool Me Twice dev": "03_grounding/fool_me_twice_dev/fool_me_twice_dev.jsonl",
    "WiCE dev": "03_grounding/wice_dev/wice_dev.jsonl",
}
NEAR_MISSES = Path(__file__).with_name("grounding_near_misses.yaml")


class Reply(NamedTuple):
    """A reply, its context, and whether people call it grounded."""

    context: Any
    text: str
    grounded: bool


def read_sets(data: Path) -> dict[str, list[Reply]]:
    """Return all sets; partially supported claims of WiCE are left out."""
    dialogues = {"BEGIN dev": list(begin_replies(data)), "FaithDial audit": list(audit_replies(data))}
    return dialogues | {name: list(read_claims(data / path)) for name, path in CLAIMS.items()}


def begin_replies(data: Path) -> Iterator[Reply]:
    """Read the replies of BEGIN's development set."""
    with (data / BEGIN / "begin_dev_wow.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            label = row["begin_label"].strip()
            yield Reply(row["knowledge"], row["response"], label == "Fully attributable")


def audit_replies(data: Path) -> Iterator[Reply]:
    """Read the replies of the audit that contain a claim, with whether they are fully entailed."""
    for name in ("ctrl", "doha", "gpt2", "wow"):
        is_people = name == "wow"
        path = data / AUDIT / ("wow.csv" if is_people else f"{name}_processed_wow.csv")
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                label = row["BEGIN" if is_people else "begin_label"].lower()
                if "entailment" in label or "hallucination" in label:
                    context = row["evidence" if is_people else "knowledge"]
                    text = row["response" if is_people else name]
                    yield Reply(context, text, "hallucination" not in label)


def read_claims(path: Path) -> Iterator[Reply]:
    """Read claims with evidence that are supported or refuted."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        label = row["label"].casefold()
        if not label.startswith("partially"):
            yield Reply(row["evidence"], row["claim"], label.startswith("support"))


def token_precision(reply: Reply) -> float:
    """Return the share of a reply's words that its context contains, as the baseline to beat."""
    there = set(re.findall(r"\w+", reply.context.lower()))
    text = re.findall(r"\w+", reply.text.lower())
    return sum(word in there for word in text) / max(1, len(text))


def near_misses(others: int = 0) -> tuple[list[Reply], list[tuple[str, Reply]]]:
    """Return grounded claims and paraphrases, and the claims with one changed fact, by the kind of change.

    Each context is put among this many contexts of the other claims.
    """
    rows = yaml.safe_load(NEAR_MISSES.read_text(encoding="utf-8"))
    contexts = [row["context"] for row in rows]
    around = [[contexts[(place + step) % len(rows)] for step in range(1, others + 1)] for place in range(len(rows))]
    before = (others + 1) // 2
    contexts = [
        "\n".join((*near[:before], context, *near[before:])) for near, context in zip(around, contexts, strict=True)
    ]
    pairs = list(zip(rows, contexts, strict=True))
    grounded = [Reply(context, row[key], True) for row, context in pairs for key in ("claim", "paraphrase")]
    changed = [
        (kind, Reply(context, row["claim"].replace(*change.split(" > "), 1), False))
        for row, context in pairs
        for kind, change in row["changes"].items()
    ]
    return grounded, changed
