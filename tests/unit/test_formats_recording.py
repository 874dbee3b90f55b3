"""OTLP/JSON, OTLP protobuf and recorded files: what goes in comes out again, and what is foreign is named."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from conformance import check_request
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData
from recordings import profiles, recording, traces

from otel_asyncprof.errors import UnreadableRecording
from otel_asyncprof.formats.choice import FORMATS, for_file
from otel_asyncprof.formats.otlp import delimited, messages_of, to_otlp
from otel_asyncprof.formats.otlp_json import json_line, read_json, to_otlp_json
from otel_asyncprof.formats.process_profile import process_profiles
from otel_asyncprof.formats.recording import read_recording, to_recording
from otel_asyncprof.formats.stack_sample import stack_samples
from otel_asyncprof.formats.subset import only_running


def test_a_recording_comes_back_from_json_as_it_was() -> None:
    """Every field of every message, profiles and traces."""
    original = recording()
    assert read_recording(to_recording(original)) == original


def test_profiles_come_back_from_protobuf_as_they_were() -> None:
    """Messages behind their lengths."""
    original = [*profiles(), *profiles(service="other", pid=2)]
    assert [ProfilesData.FromString(message) for message in messages_of(to_otlp(original))] == original
    assert read_recording(to_otlp(original)).profiles == original


def test_ids_are_hexadecimal_and_enumerations_numbers() -> None:
    """As OTLP/JSON demands, and as a Collector reads it."""
    (span, query) = json.loads(json_line(traces()))["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert (span["traceId"], span["spanId"], span["kind"]) == ("0102030405060708090a0b0c0d0e0f10", "0a" * 8, 2)
    assert query["parentSpanId"] == span["spanId"]
    assert query["startTimeUnixNano"] == "1005000000"
    document = json.loads(to_otlp_json(profiles()))
    profile = document["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]
    assert re.fullmatch("[0-9a-f]{32}", profile["profileId"])
    links = document["dictionary"]["linkTable"]
    assert links[0] == {}
    assert {link["spanId"] for link in links[1:]} == {"0a" * 8, "0b" * 8}


def test_ids_in_the_base64_of_protobufs_own_json_are_read_too() -> None:
    """Not OTLP/JSON, but what MessageToJson makes of a message."""
    from google.protobuf.json_format import MessageToDict

    (original,) = profiles()
    read = ProfilesData()
    read_json(MessageToDict(original), read)
    assert read == original


@pytest.mark.parametrize("change", [gzip.compress, lambda content: content.replace(b"\n", b"\n\n"), bytes.strip])
def test_a_recording_is_read_compressed_with_empty_lines_and_without_the_last_newline(change) -> None:
    """What editors, shells and gzip do to it."""
    original = recording()
    assert read_recording(change(to_recording(original))) == original


def test_one_document_laid_out_for_people_is_read() -> None:
    """As jq prints it."""
    (original,) = profiles()
    text = json.dumps(json.loads(json_line(original)), indent=2)
    assert read_recording(text.encode()).profiles == [original]


def test_single_protobuf_messages_are_read_for_what_they_are() -> None:
    """Profiles and traces differ in their dictionary and their spans."""
    (of_profiles,), of_traces = profiles(), traces()
    assert read_recording(of_profiles.SerializeToString()).profiles == [of_profiles]
    assert read_recording(of_traces.SerializeToString()).traces == [of_traces]


def referring(data: ProfilesData) -> ProfilesData:
    """As a Collector passes it on: the resource's texts are in the table of strings."""
    changed = ProfilesData.FromString(data.SerializeToString())
    strings = changed.dictionary.string_table
    for pair in changed.resource_profiles[0].resource.attributes:
        strings.append(pair.key)
        pair.key, pair.key_strindex = "", len(strings) - 1
        if pair.value.HasField("string_value"):
            strings.append(pair.value.string_value)
            pair.value.string_value_strindex = len(strings) - 1
    return changed


def test_a_resource_whose_texts_are_in_the_table_of_strings_is_the_same_resource() -> None:
    """What a Collector makes of it: services and processes keep their names, and none is taken for another."""
    straight = [*profiles(), *profiles(service="other", pid=2)]
    assert process_profiles(map(referring, straight)) == process_profiles(straight)
    (both,) = process_profiles([*profiles(), referring(profiles()[0])])
    assert (both.name, len(both.samples)) == ("shop 4711", 4)


def test_a_viewer_knows_the_service_of_profiles_that_a_collector_has_passed_on() -> None:
    """The same resource, and so the same process."""
    pytest.importorskip("starlette")
    from otel_asyncprof.viewer.decoding import decoded_profiles

    (original,) = profiles()
    assert decoded_profiles(referring(original)) == decoded_profiles(original)


def test_protobuf_behind_lengths_of_four_bytes_is_read() -> None:
    """What a Collector's file exporter writes when it is told to write protobuf."""
    messages = [profiles()[0].SerializeToString(), traces().SerializeToString()]
    assert read_recording(b"".join(len(each).to_bytes(4) + each for each in messages)) == recording()


@pytest.mark.parametrize("size", [ord("{"), ord("[")])
def test_protobuf_that_begins_like_json_is_read(size: int) -> None:
    """A message whose length is the number of a brace."""
    of_traces = TracesData(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[Span(name="x")])])])
    of_traces.resource_spans[0].scope_spans[0].spans[0].name = "x" * (size - of_traces.ByteSize() + 1)
    content = delimited(of_traces.SerializeToString())
    assert content[0] == size
    assert read_recording(content).traces == [of_traces]


def test_other_signals_and_unknown_fields_are_passed_over() -> None:
    """A Collector's file holds metrics and logs, too, and a later protocol has more fields."""
    (original,) = profiles()
    document = json.loads(json_line(original)) | {"laterField": {"a": 1}}
    lines = [json.dumps({"resourceMetrics": []}), json.dumps(document), json.dumps({"resourceLogs": [{}]}), "{}"]
    read = read_recording("\n".join(lines).encode())
    assert (read.profiles, read.traces) == ([original], [])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty: nothing was recorded"),
        (b"\n \n", "it is empty: nothing was recorded"),
        (b"#!/bin/sh\necho hello\n", "it is neither OTLP/JSON nor OTLP protobuf"),
        (b"\x7fELF\x02\x01\x01" + bytes(200), "it is neither OTLP/JSON nor OTLP protobuf"),
        (b'{"$schema": "https://www.speedscope.app/file-format-schema.json"}', "it is a speedscope file"),
        (b'{"traceEvents": []}', "it is a Chrome trace"),
        (b'{"meta": {}, "threads": []}', "it is a Firefox profile"),
        (b'{"a": 1}', "it is JSON, but no OTLP"),
        (b"[1, 2]", "it is JSON, but no OTLP"),
        (b'{"resourceSpans": [1]}', "it is not valid OTLP/JSON: "),
        (b'{"resourceSpans": 7}', "it is not valid OTLP/JSON: "),
        (b'{"resourceProfiles": [], "dictionary": {"linkTable": [{"spanId": "zz00000000000000"}]}}', "is no id"),
        (b'{"resourceSpans": ' + b"[" * 200 + b"]" * 200 + b"}", "it is nested too deeply"),
        (b'{"resourceSpans":[]}\n{"resourceSp', "its last line is cut off"),
        (b'{"resourceSpans": ' + b"[" * 100_000, "it is nested too deeply"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"kind": 1e999}]}]}]}', "a number or a text that is none"),
        (b'{"resourceSpans": "\\ud800"}', "it is not valid OTLP/JSON: "),
        (b'{"resourceSpans": "\xff"}', "it is not text"),
        (to_otlp([*profiles(), *profiles()])[:-5], "its last message is cut off"),
        (b"\xff\xff\xff\xff\x07" + bytes(20), "it is neither OTLP/JSON nor OTLP protobuf"),
        (b"\x7f\xff\xff\xff" + bytes(20), "it is neither OTLP/JSON nor OTLP protobuf"),
        (b"\x28\xb5\x2f\xfd" + bytes(20), "it is compressed with zstd"),
        (b"\x00\x00\x00\x14\x28\xb5\x2f\xfd" + bytes(16), "it is compressed with zstd"),
        (gzip.compress(b"{}" * 500, mtime=0)[:-12], "its compression is damaged, or its end is missing"),
    ],
)
def test_a_foreign_file_is_refused_with_one_clear_reason(content: bytes, reason: str) -> None:
    """Whatever somebody may name by mistake."""
    with pytest.raises(UnreadableRecording, match=re.escape(reason)) as refusal:
        read_recording(content)
    assert "\n" not in str(refusal.value)


def test_a_file_that_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it has taken all memory."""
    monkeypatch.setattr("otel_asyncprof.formats.recording.MAX_UNPACKED_BYTES", 1 << 20)
    with pytest.raises(UnreadableRecording, match="it unpacks to more than 1,048,576 bytes"):
        read_recording(gzip.compress(b" " * (1 << 20) + b"{}"))


def test_only_running_samples_remain_in_conformant_messages() -> None:
    """Tables hold nothing of what was taken out, and everything of what is left."""
    (original,) = profiles()
    (kept,) = only_running([original.SerializeToString()])
    check_request(ExportProfilesServiceRequest.FromString(kept))
    wanted = [sample for sample in stack_samples([original.SerializeToString()]) if sample.state != "waiting"]
    assert stack_samples([kept]) == wanted
    assert len(wanted) == 2


def test_messages_without_a_running_sample_are_left_out() -> None:
    """Nothing empty is written or sent."""
    (original,) = profiles()
    for profile in original.resource_profiles[0].scope_profiles[0].profiles:
        del profile.samples[:]
    assert only_running([original.SerializeToString()]) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.jsonl", "otlp-json"),
        ("a.otlp.json", "otlp-json"),
        ("a.jsonl.gz", "otlp-json"),
        ("a.otlp", "otlp"),
        ("a.pb", "otlp"),
        ("a.pb.gz", "pprof"),
        ("a.pprof", "pprof"),
        ("A.SPEEDSCOPE.JSON", "speedscope"),
        ("a.collapsed", "collapsed"),
        ("a.chrome.json", "chrome"),
        ("a.gecko.json", "gecko"),
        ("a.gecko.json.gz", "gecko"),
        ("a.svg", None),
        ("a", None),
    ],
)
def test_a_suffix_names_a_format(name: str, expected: str | None) -> None:
    """The longest that fits; .gz compresses any of them."""
    found = for_file(name)
    assert (found.name if found else None) == expected


def test_the_command_line_offers_the_formats_that_there_are() -> None:
    """It names them without importing them."""
    from otel_asyncprof.cli.output import FORMAT_NAMES

    assert tuple(known.name for known in FORMATS) == FORMAT_NAMES
