"""The formats by their names, and by the suffixes of files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .recording import Recording, to_recording


@dataclass(frozen=True)
class Format:
    """How a recording becomes the content of a file."""

    name: str
    suffixes: tuple[str, ...]  # without .gz, which compresses any of them
    encode: Callable[[Recording, str], bytes]  # the string is the mode: wall or cpu


def _otlp(recording: Recording, mode: str) -> bytes:
    from .otlp import to_otlp

    return to_otlp(recording.profiles)


def _otlp_json(recording: Recording, mode: str) -> bytes:
    return to_recording(recording)


def _pprof(recording: Recording, mode: str) -> bytes:
    from .pprof import to_pprof

    return to_pprof(recording.profiles, mode)


def _speedscope(recording: Recording, mode: str) -> bytes:
    from .speedscope import to_speedscope

    return to_speedscope(recording.profiles, mode)


def _collapsed(recording: Recording, mode: str) -> bytes:
    from .collapsed import to_collapsed

    return to_collapsed(recording.profiles, mode)


def _chrome(recording: Recording, mode: str) -> bytes:
    from .chrome import to_chrome

    return to_chrome(recording.profiles, mode)


def _gecko(recording: Recording, mode: str) -> bytes:
    from .gecko import to_gecko

    return to_gecko(recording.profiles, mode)


FORMATS = (
    Format("otlp", (".otlp", ".pb", ".binpb"), _otlp),
    Format("otlp-json", (".jsonl", ".otlp.json", ".json"), _otlp_json),
    Format("pprof", (".pprof", ".pb.gz"), _pprof),
    Format("speedscope", (".speedscope.json", ".speedscope"), _speedscope),
    Format("collapsed", (".collapsed", ".folded", ".txt"), _collapsed),
    Format("chrome", (".chrome.json", ".trace.json"), _chrome),
    Format("gecko", (".gecko.json", ".firefox.json"), _gecko),
)
NAMES = tuple(known.name for known in FORMATS)


def named(name: str) -> Format:
    """The format of a name; KeyError when there is none."""
    return {known.name: known for known in FORMATS}[name]


def for_file(name: str) -> Format | None:
    """The format whose suffix a file has: the longest that fits."""
    lower = name.lower()
    candidates: Sequence[tuple[str, Format]] = [
        (suffix, known)
        for known in FORMATS
        for suffix in known.suffixes
        if lower.endswith(suffix) or lower.removesuffix(".gz").endswith(suffix)
    ]
    return max(candidates, key=lambda item: len(item[0]), default=("", None))[1]
