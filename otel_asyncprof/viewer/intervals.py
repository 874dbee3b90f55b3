"""Sets of moments as sorted lists of intervals that neither overlap nor touch."""

from collections.abc import Iterable

Interval = tuple[int, int]  # begin, end


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """All moments of the intervals; empty ones have none."""
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if end <= begin:
            continue
        if merged and begin <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged


def length(intervals: Iterable[Interval]) -> int:
    """How long they are together."""
    return sum(end - begin for begin, end in intervals)


def clipped(intervals: Iterable[Interval], begin: int, end: int) -> list[Interval]:
    """The moments between begin and end."""
    return [(max(start, begin), min(stop, end)) for start, stop in intervals if start < end and stop > begin]


def without(intervals: list[Interval], others: list[Interval]) -> list[Interval]:
    """The moments of one set that are not in the other."""
    left: list[Interval] = []
    position = 0
    for begin, end in intervals:
        while position < len(others) and others[position][1] <= begin:
            position += 1
        index = position
        while index < len(others) and others[index][0] < end:
            if others[index][0] > begin:
                left.append((begin, others[index][0]))
            begin = max(begin, others[index][1])
            index += 1
        if begin < end:
            left.append((begin, end))
    return left


def common(intervals: list[Interval], others: list[Interval]) -> list[Interval]:
    """The moments that are in both sets."""
    shared: list[Interval] = []
    first = second = 0
    while first < len(intervals) and second < len(others):
        begin = max(intervals[first][0], others[second][0])
        end = min(intervals[first][1], others[second][1])
        if begin < end:
            shared.append((begin, end))
        if intervals[first][1] < others[second][1]:
            first += 1
        else:
            second += 1
    return shared
