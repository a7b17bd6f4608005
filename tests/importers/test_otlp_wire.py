"""The OTLP/JSON format: value types, older names, malformed fields."""

from __future__ import annotations

from typing import Any

from proctor.records.session import ModelCall
from proctor.sessions.importers import otlp
from proctor.sessions.importers.otlp_wire import parse_attributes, parse_value
from tests.importers.logs import kinds, only
from tests.importers.traces import CHAT, pairs, span, spans
from tests.tables import each_row


@each_row(
    ("given", "plain"),
    [
        ({"stringValue": "a"}, "a"),
        ({"boolValue": False}, False),
        ({"intValue": "-7"}, -7),
        ({"intValue": 7}, 7),
        ({"int_value": "7"}, 7),
        ({"doubleValue": 0.5}, 0.5),
        ({"doubleValue": "NaN"}, "NaN"),
        ({"bytesValue": "AAEC"}, "AAEC"),
        ({"arrayValue": {}}, []),
        ({"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}}, ["a", 1]),
        ({"kvlistValue": {"values": pairs({"a": {"b": [True]}})}}, {"a": {"b": [True]}}),
        ({"kvlistValue": {"values": ["odd"]}}, {"kvlistValue": {"values": ["odd"]}}),
        ({"arrayValue": "odd"}, {"arrayValue": "odd"}),
        ({"setValue": {"values": []}}, {"setValue": {"values": []}}),
        ({"intValue": "many"}, "many"),
        ({"intValue": "9" * 19}, "9" * 19),
        ({}, None),
        ("bare", "bare"),
    ],
)
def test_values_of_every_kind(given: Any, plain: Any) -> None:
    """As the specification writes them; what it does not know stays as it is."""
    assert parse_value(given) == plain


def test_attributes_may_be_a_mapping_and_may_clash() -> None:
    """The later of two attributes with one name wins, and the earlier is kept."""
    assert parse_attributes({"a": {"intValue": "1"}, "b": "bare"}) == ({"a": 1, "b": "bare"}, [])
    twice = [*pairs({"a": 1}), *pairs({"a": 2}), *pairs({"a": 2})]
    assert parse_attributes(twice) == ({"a": 2}, [{"key": "a", "value": 1}])
    assert parse_attributes("odd") == ({}, ["odd"])


def test_older_names_and_underscores() -> None:
    """Instrumentation libraries became scopes; some writers of JSON do not use camels."""
    chat = {"trace_id": "t", "span_id": "s", "parent_span_id": "0" * 16, "name": "c"}
    older = {"batches": [{"instrumentationLibrarySpans": [{"spans": [{**chat, "attributes": CHAT}]}]}]}
    underscored = {"resource_spans": [{"scope_spans": [{"spans": [{**chat, "attributes": pairs(CHAT)}]}]}]}
    for document in (older, underscored):
        assert otlp.looks_like([document])
        imported = only(otlp, document)
        assert (imported.id, kinds(imported)) == ("t", ["ModelCall small"])


def test_other_documents_are_counted() -> None:
    """Metrics, documents of other kinds, and spans without a trace."""
    metrics: dict[str, Any] = {"resourceMetrics": [{"scopeMetrics": []}]}
    nameless = spans({"name": "chat", "attributes": pairs(CHAT), "kind": 3})
    imported = only(otlp, metrics, nameless, 7, {"resourceSpans": [3, {"scopeSpans": [4, {"spans": [5]}]}]})
    assert imported.id == "chat:2"
    assert imported.unknown_parts == {"metrics": 1, "document": 1, "resource": 2}
    assert otlp.looks_like([metrics])
    assert not otlp.looks_like([{"spans": []}, [], 7])


def test_resource_and_scope_fields_with_the_same_name_are_all_kept() -> None:
    """Fields around a resource, in it, and among its attributes."""
    item = spans(span("chat", 0, CHAT))["resourceSpans"][0]
    item["resource"] = {"attributes": pairs({"schemaUrl": "a"}), "schemaUrl": "b"}
    item["scopeSpans"][0] |= {"name": "c", "scope": {"name": "d"}}
    imported = only(otlp, {"resourceSpans": [item]})
    (resource,) = imported.recorded["resources"]
    assert resource == {"schemaUrl": "a", "imported schemaUrl": "b"}
    assert imported.recorded["spans"][0]["scope"] == {"name": "d", "imported name": "c"}


def test_malformed_fields_are_kept_and_counted() -> None:
    """Times, names, events and attributes in no shape that OTLP has."""
    odd = span("chat", 0, CHAT, events=["odd", {"name": 7}], startTimeUnixNano="noon")
    odd["attributes"].append({"key": 3})
    document = spans(odd, {**span("x", 1, CHAT), "name": ["a"], "events": "odd", "spanId": 5})
    document["resourceSpans"][0]["resource"]["attributes"].append("odd")
    document["resourceSpans"][0]["scopeSpans"][0]["scope"] = "bare"
    imported = only(otlp, document)
    assert len(imported.session[ModelCall]) == 2
    assert imported.unknown_parts == {
        "malformed field": 7, "event: 7": 1, "resource attribute": 1,
    }  # fmt: skip
    first, second = imported.recorded["spans"]
    assert first["odd"] == ["odd", {"startTimeUnixNano": "noon"}, {"key": 3}]
    assert first["events"] == [{"name": "7", "odd": [{"eventName": 7}]}]
    assert second["odd"] == ["odd", {"spanId": 5}, {"name": ["a"]}]
    assert first["scope"] == {"scope": "bare"}
    far = only(otlp, spans(span("chat", 0, CHAT, startTimeUnixNano=10**30)))
    assert far.unknown_parts == {"malformed field": 1}
    assert far.session[ModelCall][0].latency_ms is None
