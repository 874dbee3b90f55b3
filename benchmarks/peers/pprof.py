"""Samples of a pprof profile."""

from collections.abc import Iterator
from dataclasses import dataclass

from peers.wire import chunk, fields, integer, integers


@dataclass(frozen=True)
class PprofSample:
    """One sample with its names resolved."""

    functions: tuple[str, ...]  # root first
    values: dict[str, int]
    labels: dict[str, str | int]
    period: int


def pprof_samples(profile: bytes) -> Iterator[PprofSample]:
    """The samples of an uncompressed profile."""
    strings: list[str] = []
    types: list[int] = []
    samples: list[bytes] = []
    lines_of: dict[int, list[int]] = {}  # location -> functions, leaf first
    names: dict[int, int] = {}
    period = 0
    for number, value in fields(profile):
        if number == 1:
            types.append(_first(chunk(value), 1))
        elif number == 2:
            samples.append(chunk(value))
        elif number == 4:
            location = chunk(value)
            lines = [_first(chunk(line), 1) for part, line in fields(location) if part == 4]
            lines_of[_first(location, 1)] = lines
        elif number == 5:
            names[_first(chunk(value), 1)] = _first(chunk(value), 2)
        elif number == 6:
            strings.append(chunk(value).decode(errors="replace"))
        elif number == 12:
            period = integer(value)
    for sample in samples:
        locations: list[int] = []
        values: list[int] = []
        labels: dict[str, str | int] = {}
        for number, value in fields(sample):
            if number == 1:
                locations += integers(value)
            elif number == 2:
                values += integers(value)
            elif number == 3:
                label = {part: integer(content) for part, content in fields(chunk(value))}
                key = strings[label.get(1, 0)]
                labels[key] = strings[label[2]] if label.get(2) else label.get(3, 0)
        leaf_first = [strings[names[function]] for location in locations for function in lines_of[location]]
        named = {strings[kind]: count for kind, count in zip(types, values, strict=False)}
        yield PprofSample(tuple(reversed(leaf_first)), named, labels, period)


def _first(message: bytes, wanted: int) -> int:
    return next((integer(value) for number, value in fields(message) if number == wanted), 0)
