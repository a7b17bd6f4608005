"""The custom evaluators of the field specification's examples."""

from __future__ import annotations

import re
from typing import Any

from proctor import FieldContext


class CitationGrounding:
    """Passes if every citation, such as [1], is in the knowledge base."""

    evaluator_name = "citation_grounding"

    def evaluate(self, field_context: FieldContext, **options: Any) -> dict[str, Any]:
        known = options["knowledge_base"]
        citations = self.citations_in(field_context.value)
        verified = [one for one in citations if one in known]
        unverified = [one for one in citations if one not in known]
        return {
            "passed": not unverified,
            # Where nothing is cited there is nothing to divide by, and nothing is wrong.
            "score": len(verified) / len(citations) if citations else 1.0,
            "details": {
                "field_evaluated": field_context.field_name,
                "total_citations": len(citations),
                "unverified": unverified,
                "context": {
                    "model": field_context.configuration.get("model"),
                    "tokens": field_context["usage.total_tokens"],
                },
            },
            "message": f"{len(verified)}/{len(citations)} citations grounded in {field_context.field_name}",
        }

    def citations_in(self, text: Any) -> list[str]:
        return re.findall(r"\[(\d+)\]", text) if isinstance(text, str) else []


class TokenEfficiency:
    """Passes if the tokens grew by at most a given percentage."""

    evaluator_name = "own_token_efficiency"

    def evaluate(self, field_context: FieldContext, **options: Any) -> dict[str, Any] | None:
        most = options.get("max_increase_pct", 10)
        delta = field_context.delta
        if delta is None or delta.percentage is None:
            # The spec passes here; without a baseline there is no verdict.
            return None
        passed = delta.percentage <= most
        return {
            "passed": passed,
            "score": 1.0 if passed else max(0.0, 1.0 - delta.percentage / 100),
            "details": {"delta": delta["absolute"], "threshold": most},
            "message": f"tokens changed by {delta['percentage']:.1f}% (at most {most}%)",
        }


class SmartQuality:
    """Judges one field by the values of other fields."""

    evaluator_name = "smart_quality"

    def evaluate(self, field_context: FieldContext, **options: Any) -> dict[str, Any]:
        tokens = field_context["usage"]["total_tokens"]
        model = field_context["configuration"]["model"]
        quality = 0.85 * (1.1 if model == "gpt-3.5-turbo" else 1.0)
        penalty = 0.1 if tokens > 1000 and len(field_context.value) < 200 else 0.0
        value = max(0.0, min(1.0, quality - penalty))
        return {
            "passed": value >= 0.7,
            "score": value,
            "details": {"penalty": penalty, "latency": field_context.latency_ms},
            "message": f"quality {value:.0%} (model {model}, {tokens} tokens)",
        }
