"""Search, focus, hide: regular expressions over the frames of stacks."""

import re
from collections.abc import Iterator, Mapping

from ..analysis.places import is_library
from ..formats.stack_sample import Frame
from .flame import Weight, Weights, frames_of
from .tree_layout import Stack

MAX_PATTERN = 200  # characters; a longer one is cut
# A quantified group that holds a quantifier or an alternative: what makes a search take exponential time.
_COSTLY = re.compile(r"\((?:[^()\\]|\\.)*(?:[*+}|])(?:[^()\\]|\\.)*\)\s*(?:[*+]|\{\d+,?\d*\})")


class Pattern:
    """A regular expression, or the text itself where it is none."""

    def __init__(self, text: str) -> None:
        text = text[:MAX_PATTERN]
        self.error: str | None = None
        try:
            if _COSTLY.search(text):
                raise re.error("a repeated group with a repetition or an alternative in it would take too long")
            self._expression = re.compile(text, re.IGNORECASE)
        except (re.error, OverflowError, RecursionError) as error:
            self.error = f"not a regular expression, taken as text: {error}"
            self._expression = re.compile(re.escape(text), re.IGNORECASE)

    def matches(self, frame: Frame) -> bool:
        """Whether it is found in "function file:line"."""
        return self._expression.search(f"{frame.function} {frame.file}:{frame.line}") is not None

    def among(self, weights: Weights, frames: Mapping[int, Frame]) -> set[int]:
        """The frames of some stacks that match."""
        used = frames_of(weights)
        return {frame for frame in used if self.matches(frames[frame])}


def _merged(parts: list[tuple[Stack, Weight]]) -> dict[Stack, Weight]:
    merged: dict[Stack, Weight] = {}
    for stack, weight in parts:
        known = merged.get(stack)
        if known is None:
            merged[stack] = Weight(list(weight.states), weight.n)
        else:
            known.states = [one + other for one, other in zip(known.states, weight.states, strict=True)]
            known.n += weight.n
    return merged


def focused(weights: Weights, matching: set[int]) -> dict[Stack, Weight]:
    """The stacks with one of these frames."""
    return {stack: weight for stack, weight in weights.items() if not matching.isdisjoint(stack)}


def hidden(weights: Weights, matching: set[int]) -> dict[Stack, Weight]:
    """The stacks without these frames; the time is their callers'."""
    return _merged([(tuple(frame for frame in stack if frame not in matching), w) for stack, w in weights.items()])


def without_libraries(weights: Weights, frames: Mapping[int, Frame]) -> dict[Stack, Weight]:
    """The stacks without frames of libraries, but with their leaves, which say what the time went into."""
    used = frames_of(weights)
    library = {frame for frame in used if is_library(frames[frame].file)}
    return _merged(
        [
            (tuple(frame for index, frame in enumerate(stack) if frame not in library or index == len(stack) - 1), w)
            for stack, w in weights.items()
        ]
    )


def without_recursion(weights: Weights, frames: Mapping[int, Frame]) -> dict[Stack, Weight]:
    """The stacks with each function once: what lies between two calls of it is left out, with the outer call."""
    used = frames_of(weights)
    functions = {frame: frames[frame]._replace(line=0) for frame in used}
    return _merged([(_collapsed(stack, functions), weight) for stack, weight in weights.items()])


def _collapsed(stack: Stack, functions: Mapping[int, Frame]) -> Stack:
    kept: list[int] = []
    place: dict[Frame, int] = {}
    for frame in stack:
        function = functions[frame]
        at = place.get(function)
        if at is not None:
            for inner in kept[at:]:
                place.pop(functions[inner], None)
            del kept[at:]
        place[function] = len(kept)
        kept.append(frame)
    return tuple(kept)


def callers_of(weights: Weights, function: tuple[str, str], frames: Mapping[int, Frame]) -> dict[Stack, Weight]:
    """Each stack up to the outermost call of a function: its callers, when the tree is inverted."""
    return _merged([(stack[: at + 1], weight) for stack, weight, at in _outermost(weights, function, frames)])


def callees_of(weights: Weights, function: tuple[str, str], frames: Mapping[int, Frame]) -> dict[Stack, Weight]:
    """Each stack from the outermost call of a function on."""
    return _merged([(stack[at:], weight) for stack, weight, at in _outermost(weights, function, frames)])


def _outermost(
    weights: Weights, function: tuple[str, str], frames: Mapping[int, Frame]
) -> Iterator[tuple[Stack, Weight, int]]:
    used = frames_of(weights)
    sought = {frame for frame in used if (frames[frame].function, frames[frame].file) == function}
    for stack, weight in weights.items():
        for index, frame in enumerate(stack):
            if frame in sought:
                yield stack, weight, index
                break
