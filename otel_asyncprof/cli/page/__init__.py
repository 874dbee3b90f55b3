"""One self-contained page: flame graph, time split, slow requests and queries. It loads nothing, from nowhere."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...analysis.findings import Findings
from ...analysis.places import is_library
from ...analysis.split import STATES
from ..messages import duration_text
from ..tables import query_json, request_json

if TYPE_CHECKING:
    from ...formats.recording import Recording
    from ...formats.stack_sample import Frame

_FOLDER = Path(__file__).parent
_DATA = "/*data*/null"
MAX_ROWS = 100
# What a browser would take for the end of the script or the begin of a comment, wherever it stands.
_IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def page_of(recording: "Recording") -> bytes:
    """The page. IndexError, ValueError: the recording does not hold together."""
    text = json.dumps(_data(Findings.of(recording)), ensure_ascii=False, separators=(",", ":")).translate(_IN_SCRIPT)
    page = (_FOLDER / "page.html").read_text(encoding="utf-8")
    page = page.replace("/*style*/", (_FOLDER / "page.css").read_text(encoding="utf-8"))
    page = page.replace("/*script*/", (_FOLDER / "page.js").read_text(encoding="utf-8"))
    return page.replace(_DATA, text).encode(errors="replace")


def _data(findings: Findings) -> dict[str, Any]:
    frames: dict[Frame, int] = {}
    totals: Counter[tuple[tuple[Frame, ...], str]] = Counter()
    cpu: Counter[tuple[tuple[Frame, ...], str]] = Counter()
    for sample in findings.samples:
        key = (sample.frames, sample.state or STATES[0])
        totals[key] += sample.wall_ns
        cpu[key] += sample.cpu_ns
    stacks = [
        [[frames.setdefault(frame, len(frames)) for frame in stack], state, wall, cpu[stack, state]]
        for (stack, state), wall in totals.items()
    ]
    return {
        "title": ", ".join(process.name for process in findings.processes) or "empty recording",
        "seconds": duration_text(findings.end_ns - findings.start_ns),
        "samples": findings.n_observations,
        "linked": findings.n_linked,
        "spans": len(findings.spans.by_id),
        "cpu": duration_text(sum(sample.cpu_ns for sample in findings.samples)),
        "split": findings.split(),
        "frames": [[frame.function, frame.file, frame.line, is_library(frame.file)] for frame in frames],
        "stacks": stacks,
        "requests": [request_json(slow) for slow in findings.requests()[:MAX_ROWS]],
        "queries": [query_json(query) for query in findings.queries()[:MAX_ROWS]],
    }
