"""Names of functions, files and tasks: exact Unicode, of whatever kind the interpreter stores them in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from reader_helpers import MAX_STRING_BYTES, as_read, event_loop, on_probe_loop, prepare, python_stack, settle, standing

from otel_asyncprof import _native

# ruff: noqa: RUF001 (letters that look like others are the point)
NAMES = {
    "ascii": "plain.<locals>.name",
    "one character": "x",
    "latin-1": "größe_ÿ\x80",
    "bmp": "函数 の 名前 €",
    "astral": "𝒻𝓊𝓃𝒸 🐍",
    "all kinds": "aé函𝒻",
    "nul": "before\0after",
    "control characters": "\x01\t\n\x7f\x80",
    "highest of each size": "\x7f\x80\u07ff\u0800\uffff\U00010000\U0010ffff",
    "lone surrogates": "a\ud800b\udfffc\udc80",
    "surrogate among astral": "𝒻\ud83d",
    "10 kB of ascii": "a" * 10_000,
    "10 kB of latin-1": "é" * 5_000,
    "10 kB of bmp": "函" * 3_334,
    "10 kB of astral": "🐍" * 2_500,
    "as long as a name may be": "a" * (MAX_STRING_BYTES - 9),
    "a little longer": "a" * (MAX_STRING_BYTES - 8),
    "too long": "a" * 20_000,
    "too long in astral": "🐍" * 20_000,
    "too long in surrogates": "\udc80" * 20_000,
}

every_name = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())


async def waits(future: asyncio.Future[None]) -> None:
    await future


def renamed(function: Any, **changes: str) -> Any:
    """A function whose code has another name or file."""
    copy = type(function)(function.__code__.replace(**changes), function.__globals__, function.__name__)
    copy.__defaults__ = function.__defaults__
    return copy


def test_the_limit_on_names_in_these_tests_is_meant() -> None:
    """What is cut ends in an ellipsis, and nothing shorter is cut."""
    assert as_read(NAMES["10 kB of astral"]) == NAMES["10 kB of astral"]
    assert as_read(NAMES["as long as a name may be"]) == NAMES["as long as a name may be"]
    assert as_read(NAMES["too long"]) == "a" * (MAX_STRING_BYTES - 8) + "…"


@every_name
def test_function_and_file_of_a_coroutine_are_exact(name: str) -> None:
    """Lone surrogates, which UTF-8 cannot hold, are escaped as Python does it."""
    prepare()
    function = renamed(waits, co_qualname=name, co_filename=f"/{name}.py")
    with on_probe_loop(function) as task:
        frames = _native.read_task(id(task))["frames"]
    assert frames == [(as_read(name), as_read(f"/{name}.py"), waits.__code__.co_firstlineno + 1)]


@every_name
def test_function_and_file_of_a_running_function_are_exact(name: str) -> None:
    """The same on a thread's stack."""
    prepare()

    def look() -> Any:
        return _native.read_thread(), python_stack()

    read, said = renamed(look, co_qualname=name, co_filename=f"/{name}.py")()
    assert read == said
    assert read[-1][:2] == (as_read(name), as_read(f"/{name}.py"))


@every_name
def test_the_name_of_a_task_is_exact(name: str) -> None:
    """Whatever the application calls it."""
    prepare()
    with on_probe_loop(waits) as task:
        task.set_name(name)
        assert _native.read_task(id(task))["name"] == as_read(name)


def test_a_name_that_was_cut_is_cut_at_a_character() -> None:
    """Never inside one."""
    prepare()
    for shift in range(5):
        with on_probe_loop(waits) as task:
            task.set_name("a" * shift + "🐍" * 5000)
            read = _native.read_task(id(task))["name"]
            assert read == "a" * shift + "🐍" * ((len(read.encode()) - 3 - shift) // 4) + "…"
            assert MAX_STRING_BYTES - 12 <= len(read.encode()) <= MAX_STRING_BYTES


@pytest.mark.parametrize("text", ["plain", "größe", "函数", "🐍"])
def test_a_name_that_is_of_a_subclass_of_str_is_read(text: str) -> None:
    """Its characters are stored apart from it."""

    class Name(str):
        pass

    class Source:
        def __str__(self) -> str:
            return Name(text)

    prepare()
    with on_probe_loop(waits) as task:
        task.set_name(Source())
        assert type(task.get_name()) is Name
        assert _native.read_task(id(task))["name"] == text


@pytest.mark.parametrize("value", [0, -1, 12345678901234567890, 3.5, None, b"x"])
def test_a_name_that_was_no_string_is_read_as_the_string_it_became(value: Any) -> None:
    """set_name() turns everything into a string."""
    prepare()
    with on_probe_loop(waits) as task:
        task.set_name(value)
        assert _native.read_task(id(task))["name"] == str(value)


def test_default_names_are_read_before_and_after_python_was_asked_for_them() -> None:
    """From 3.12 on a task holds a number until somebody asks."""
    prepare()
    with event_loop() as loop:
        tasks = [loop.create_task(waits(loop.create_future())) for _ in range(50)]
        settle(loop)
        before = [_native.read_task(id(task))["name"] for task in tasks]
        assert before == [task.get_name() for task in tasks]
        assert before == [_native.read_task(id(task))["name"] for task in tasks]
        numbers = [int(name.removeprefix("Task-")) for name in before]
        assert numbers == list(range(numbers[0], numbers[0] + 50))


def test_a_renamed_task_has_its_new_name() -> None:
    """Names are read anew at each look."""

    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with standing(main()) as tasks:
        for name in ("first", "zweiter ß", "third"):
            tasks["main"].set_name(name)
            assert _native.read_task(id(tasks["main"]))["name"] == name


def test_identifiers_in_other_scripts_are_exact() -> None:
    """As the compiler made them."""
    prepare()
    names: dict[str, Any] = {"read": _native.read_thread}
    exec("class Größe:\n  def 函数(self): return read()\nfound = Größe().函数()", names)
    assert [frame[0] for frame in names["found"][-2:]] == ["<module>", "Größe.函数"]
