"""What live programs make keeps every backend's rules; each rule is shown to notice when it is broken."""

from __future__ import annotations

import asyncio
import time
import types
from collections.abc import Callable, Coroutine
from typing import Any

import backend_rules
import pytest
from backend_rules import RULES, Request, profiles, samples
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.profiles.v1development.profiles_pb2 import KeyValueAndUnit, Link, Location, Mapping, Sample
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from targets.hostile_names import NAMES

from otel_asyncprof import _native
from otel_asyncprof.testing import capture

MANY_TASKS = 17_000
LONGEST_NAME = 100_000
DEEP = 600
SEEN_SECONDS = 30
CPU_PERIODS = 5
HOSTILE_RESOURCE = {
    "service.name": "shöp-1",
    "with-hyphen": "a",
    "bool": True,
    "double": 0.5,
    "int": 5,
    "texts": ["a", "b"],
    "long": "x" * 2000,
}


def work_until_it_is_seen() -> None:
    """Some CPU periods, and then until a tick has begun and ended."""
    end_of_work = time.thread_time() + CPU_PERIODS * 0.01
    while time.thread_time() < end_of_work:
        pass
    before = _native.stats()["ticks"]
    while _native.stats()["ticks"] < before + 2:
        pass


async def until_all_are_seen(tasks: int = 20) -> None:
    """Until the sampler has made so many visits and has seen some CPU time used."""
    before = _native.stats()
    async with asyncio.timeout(SEEN_SECONDS):
        work_until_it_is_seen()
        while True:
            now = _native.stats()
            if now["tasks_visited"] - before["tasks_visited"] >= tasks and now["ticks"] - before["ticks"] >= 10 * max(
                1.0, now["window"]
            ):
                return
            await asyncio.sleep(0.001)


async def waits() -> None:
    await asyncio.get_running_loop().create_future()


async def ordinary(provider: TracerProvider) -> None:
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("request"):
        tasks = [asyncio.create_task(waits()) for _ in range(3)]
        await until_all_are_seen()
    for task in tasks:
        task.cancel()


async def called_what_nobody_would(provider: TracerProvider) -> None:
    tracer = provider.get_tracer("test")
    tasks = []
    for name in NAMES.values():
        if len(name) <= LONGEST_NAME:
            code = waits.__code__.replace(co_name=name, co_qualname=name, co_filename=f"/srv/{name}")
            with tracer.start_as_current_span(name, end_on_exit=False):
                tasks.append(asyncio.create_task(types.FunctionType(code, globals(), "f")(), name=name))
    await until_all_are_seen()
    for task in tasks:
        task.cancel()


async def many(provider: TracerProvider) -> None:
    tasks = [asyncio.create_task(waits(), name=f"{number} " + "n" * 200) for number in range(MANY_TASKS)]
    await until_all_are_seen(2 * MANY_TASKS)
    for task in tasks:
        task.cancel()


async def deep(provider: TracerProvider, depth: int = DEEP) -> None:
    await (deep(provider, depth - 1) if depth else until_all_are_seen())


PROGRAMS: dict[str, tuple[Callable[[TracerProvider], Coroutine[Any, Any, None]], dict[str, Any]]] = {
    "ordinary": (ordinary, {}),
    "hostile names": (called_what_nobody_would, {}),
    "many": (many, {}),
    "deep": (deep, {"max_frames": 512}),
    "default attributes": (ordinary, {"sample_attributes": ("thread.name", "asyncprof.state")}),
    "local roots": (ordinary, {"link": "local_root"}),
}
Requests = dict[str, list[Request]]


def requests_of(program: Callable[[TracerProvider], Coroutine[Any, Any, None]], **options: Any) -> list[Request]:
    """What is sent when this program runs."""
    provider = TracerProvider(resource=Resource.create(HOSTILE_RESOURCE))
    with capture(tracer_provider=provider, **options) as profile:
        asyncio.run(program(provider))
    return [Request.FromString(request) for request in profile.requests]


@pytest.fixture(scope="module")
def live() -> Requests:
    """The requests of every program."""
    return {name: requests_of(program, **options) for name, (program, options) in PROGRAMS.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_live_programs_make_keeps_every_rule(live: Requests, name: str) -> None:
    """Of every backend."""
    assert live[name]
    for request in live[name]:
        for rule in RULES.values():
            rule(request)


def test_the_programs_come_near_the_limits(live: Requests) -> None:
    """Else the rules about sizes would say nothing."""
    assert len(live["many"]) > 1
    assert max(len(profile.samples) for request in live["many"] for profile in profiles(request)) > 5_000
    assert max(request.ByteSize() for request in live["many"]) > 2 << 20
    depths = [len(s.location_indices) for request in live["deep"] for s in request.dictionary.stack_table]
    assert max(depths) == 512
    texts = [a.value.string_value for request in live["hostile names"] for a in request.dictionary.attribute_table]
    assert max(len(text.encode()) for text in texts) == backend_rules.PYROSCOPE_MOST_LABEL_BYTES


def test_the_timeline_is_for_those_alone_who_ask_for_it() -> None:
    """Pyroscope refuses values with timestamps; all else about them is as ever."""
    broken = set()
    for request in requests_of(ordinary, timeline=True):
        for name, rule in RULES.items():
            try:
                rule(request)
            except AssertionError:
                broken.add(name)
    assert broken == {"pyroscope_samples_have_one_value"}


def first_sample(request: Request) -> Sample:
    return next(samples(request))[1]


def first_profile(request: Request) -> Any:
    return next(profiles(request))


def wall(request: Request) -> Any:
    return list(profiles(request))[-1]


def with_many_samples(request: Request) -> None:
    profile = first_profile(request)
    for _ in range(backend_rules.PYROSCOPE_MOST_SAMPLES):
        profile.samples.add().CopyFrom(profile.samples[0])


def without_samples(request: Request) -> None:
    for profile in profiles(request):
        del profile.samples[:]


def with_a_label(request: Request, key: str = "a", **value: Any) -> None:
    request.dictionary.string_table.append(key)
    index = len(request.dictionary.string_table) - 1
    request.dictionary.attribute_table.append(KeyValueAndUnit(key_strindex=index, value=AnyValue(**value)))


def of_a_second_kind(request: Request) -> None:
    sample = wall(request).samples.add()
    sample.values.extend([1, 2])


MUTATIONS: dict[str, list[Callable[[Request], object]]] = {
    "profcheck_tables_begin_with_zero": [
        lambda r: r.dictionary.mapping_table.pop(),
        lambda r: r.dictionary.link_table[0].MergeFrom(Link(span_id=bytes(8))),
        lambda r: r.dictionary.string_table.append(r.dictionary.string_table[1]),
    ],
    "profcheck_indices_are_in_range": [
        lambda r: setattr(first_sample(r), "stack_index", 10**6),
        lambda r: r.dictionary.location_table[1].attribute_indices.append(10**6),
        lambda r: setattr(r.dictionary.function_table[1], "name_strindex", 10**6),
    ],
    "profcheck_nothing_is_unused": [lambda r: r.dictionary.string_table.append("orphan")],
    "profcheck_links_are_whole": [
        lambda r: r.dictionary.link_table.append(Link(trace_id=bytes(16))),
        lambda r: r.dictionary.link_table.append(Link(trace_id=bytes(15), span_id=bytes(8))),
    ],
    "profcheck_profile_ids_are_whole": [lambda r: setattr(first_profile(r), "profile_id", b"short")],
    "profcheck_attributes_are_unique": [
        lambda r: first_sample(r).attribute_indices.append(first_sample(r).attribute_indices[0]),
        lambda r: r.resource_profiles[0].resource.attributes.append(r.resource_profiles[0].resource.attributes[0]),
    ],
    "profcheck_samples_of_a_profile_have_one_shape": [
        of_a_second_kind,
        lambda r: first_profile(r).samples.add(),
        lambda r: first_sample(r).values.extend([1] * 1000),
    ],
    "profcheck_timestamps_are_within_the_profile": [
        lambda r: first_sample(r).timestamps_unix_nano.append(1),
        lambda r: first_sample(r).timestamps_unix_nano.append(2**63),
    ],
    "profcheck_samples_of_one_identity_are_one": [
        lambda r: first_profile(r).samples.add().CopyFrom(first_profile(r).samples[0])
    ],
    "profcheck_mappings_have_a_build_id": [lambda r: r.dictionary.mapping_table.append(Mapping(memory_start=1))],
    "pyroscope_period_has_a_type": [
        lambda r: setattr(wall(r), "period", 0),
        lambda r: wall(r).ClearField("period_type"),
        lambda r: r.dictionary.string_table.__setitem__(wall(r).sample_type.type_strindex, "wall-time"),
    ],
    "pyroscope_samples_have_one_value": [
        lambda r: wall(r).samples[0].values.append(1),
        lambda r: wall(r).samples[0].timestamps_unix_nano.append(1),
        lambda r: wall(r).samples.add(),
    ],
    "pyroscope_has_a_mapping": [lambda r: r.dictionary.mapping_table.pop()],
    "pyroscope_keys_are_plain": [
        lambda r: r.resource_profiles[0].resource.attributes.append(KeyValue(key_strindex=1)),
        lambda r: r.resource_profiles[0].resource.attributes.append(
            KeyValue(key="a", value=AnyValue(string_value_strindex=1))
        ),
        lambda r: with_a_label(r, string_value_strindex=1),
        lambda r: with_a_label(r, key="thread-name", string_value="a"),
    ],
    "pyroscope_labels_are_few": [
        lambda r: r.resource_profiles[0].resource.attributes.extend(KeyValue(key=str(n)) for n in range(30))
    ],
    "pyroscope_labels_are_short": [lambda r: with_a_label(r, string_value="é" * 1025)],
    "pyroscope_profiles_are_small": [
        with_many_samples,
        lambda r: r.dictionary.string_table.append("x" * backend_rules.PYROSCOPE_MOST_BYTES),
    ],
    "pyroscope_stacks_are_not_deep": [lambda r: r.dictionary.stack_table[1].location_indices.extend([1] * 1001)],
    "elastic_samples_are_counted_by_cpu_time": [
        lambda r: r.dictionary.string_table.__setitem__(first_profile(r).period_type.type_strindex, "wall"),
        lambda r: setattr(first_profile(r), "period", 7),
    ],
    "elastic_cpu_samples_have_timestamps": [lambda r: first_sample(r).ClearField("timestamps_unix_nano")],
    "elastic_every_location_has_a_frame_type": [lambda r: r.dictionary.location_table.append(Location())],
    "collector_takes_the_size": [lambda r: r.dictionary.string_table.append("x" * backend_rules.GRPC_MOST_BYTES)],
    "collector_has_something_to_pass_on": [without_samples],
}


def test_every_rule_has_a_way_to_break_it() -> None:
    """So that none is there for show."""
    assert MUTATIONS.keys() == RULES.keys()


@pytest.mark.parametrize(("name", "place"), [(name, i) for name in MUTATIONS for i in range(len(MUTATIONS[name]))])
def test_every_rule_notices_when_it_is_broken(live: Requests, name: str, place: int) -> None:
    """A request of a live program, with one thing changed."""
    request = Request.FromString(live["ordinary"][0].SerializeToString())
    RULES[name](request)
    MUTATIONS[name][place](request)
    with pytest.raises(AssertionError):
        RULES[name](request)
