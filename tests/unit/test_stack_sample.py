"""OTLP bytes -> samples, with messages built by the official classes."""

from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.profiles.v1development.profiles_pb2 import (
    Function,
    KeyValueAndUnit,
    Line,
    Link,
    Location,
    Profile,
    ProfilesData,
    ProfilesDictionary,
    ResourceProfiles,
    Sample,
    ScopeProfiles,
    Stack,
    ValueType,
)

from otel_asyncprof.formats.stack_sample import Frame, StackSample, stack_samples

STRINGS = ["", "samples", "count", "cpu", "nanoseconds", "wall", "main", "/a.py", "query", "/é.py"]
STRINGS += ["thread.name", "asyncio.task.name", "asyncprof.state", "thread.id", "Main", "T1", "waiting"]
INDEX = {text: index for index, text in enumerate(STRINGS)}
MAIN, QUERY = Frame("main", "/a.py", 5, 1), Frame("query", "/é.py", 9, 8)


def attribute(key, value):
    """An entry of the attribute table."""
    found = AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=value)
    return KeyValueAndUnit(key_strindex=INDEX[key], value=found)


DICTIONARY = ProfilesDictionary(
    string_table=STRINGS,
    function_table=[
        Function(),
        Function(name_strindex=INDEX["main"], filename_strindex=INDEX["/a.py"], start_line=1),
        Function(name_strindex=INDEX["query"], filename_strindex=INDEX["/é.py"], start_line=8),
    ],
    location_table=[
        Location(),
        Location(lines=[Line(function_index=1, line=5)]),
        Location(lines=[Line(function_index=2, line=9)]),
    ],
    stack_table=[Stack(), Stack(location_indices=[2, 1]), Stack(location_indices=[1])],
    link_table=[Link(), Link(trace_id=bytes([0] * 15 + [7]), span_id=bytes([0] * 7 + [9]))],
    attribute_table=[
        KeyValueAndUnit(),
        attribute("thread.name", "Main"),
        attribute("asyncio.task.name", "T1"),
        attribute("asyncprof.state", "waiting"),
        attribute("thread.id", 77),
    ],
)
CPU = {
    "sample_type": ValueType(type_strindex=INDEX["samples"], unit_strindex=INDEX["count"]),
    "period_type": ValueType(type_strindex=INDEX["cpu"], unit_strindex=INDEX["nanoseconds"]),
    "period": 10_000_000,
}
WALL = {
    "sample_type": ValueType(type_strindex=INDEX["wall"], unit_strindex=INDEX["nanoseconds"]),
    "period_type": ValueType(type_strindex=INDEX["wall"], unit_strindex=INDEX["nanoseconds"]),
    "period": 10_000_000,
}


def request(*profiles):
    """The bytes of one request."""
    scopes = [ScopeProfiles(profiles=list(profiles))]
    data = ProfilesData(resource_profiles=[ResourceProfiles(scope_profiles=scopes)], dictionary=DICTIONARY)
    return data.SerializeToString()


def expected(**fields):
    """A sample that is zero but for the fields."""
    names = ("task_name", "thread_name", "thread_id", "state", "local_root_name")
    zero = dict.fromkeys(names) | dict.fromkeys(("trace_id", "span_id", "cpu_ns", "wall_ns"), 0)
    return StackSample(**zero | {"frames": (), "timestamps": ()} | fields)


def test_cpu_and_wall_of_the_same_identity_are_one_sample():
    """Frames root first; every attribute in its own field; the order of attributes is no part of the identity."""
    cpu = Sample(stack_index=1, attribute_indices=[1, 2, 3, 4], link_index=1, timestamps_unix_nano=[200, 100])
    wall = Sample(stack_index=1, attribute_indices=[4, 3, 2, 1], link_index=1, values=[30_000_000])
    assert stack_samples([request(Profile(samples=[cpu], **CPU), Profile(samples=[wall], **WALL))]) == [
        expected(
            frames=(MAIN, QUERY),
            task_name="T1",
            thread_name="Main",
            thread_id=77,
            state="waiting",
            trace_id=7,
            span_id=9,
            cpu_ns=20_000_000,
            wall_ns=30_000_000,
            timestamps=(100, 200),
        )
    ]


def test_another_stack_link_or_attribute_is_another_sample():
    """In the order of the profile."""
    samples = [
        Sample(stack_index=1, values=[1]),
        Sample(stack_index=2, values=[2]),
        Sample(stack_index=2, link_index=1, values=[3]),
        Sample(stack_index=2, attribute_indices=[2], values=[4]),
    ]
    assert stack_samples([request(Profile(samples=samples, **WALL))]) == [
        expected(frames=(MAIN, QUERY), wall_ns=1),
        expected(frames=(MAIN,), wall_ns=2),
        expected(frames=(MAIN,), trace_id=7, span_id=9, wall_ns=3),
        expected(frames=(MAIN,), task_name="T1", wall_ns=4),
    ]


def test_the_same_sample_of_two_requests_is_one():
    """Indices differ between requests; names do not."""
    wall = Sample(stack_index=2, values=[1, 2], timestamps_unix_nano=[50, 40])
    one = request(Profile(samples=[wall], **WALL))
    assert stack_samples([one, one]) == [expected(frames=(MAIN,), wall_ns=6, timestamps=(40, 40, 50, 50))]


def test_a_frame_reads_as_file_line_and_function():
    """The form in which callers are shown."""
    assert str(QUERY) == "/é.py:9 query"
    assert expected(frames=(MAIN, QUERY)).functions == ("main", "query")
