"""What the publishers of the formats say of their files, as JSON Schema: only what the files of ours may hold."""

from __future__ import annotations

from typing import Any

import jsonschema

Schema = dict[str, Any]

NUMBER: Schema = {"type": "number"}
STRING: Schema = {"type": "string"}
INDEX: Schema = {"type": "integer", "minimum": 0}
BOOLEAN: Schema = {"type": "boolean"}


def closed(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object with these properties and no others."""
    properties = {**required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def array(of: Schema) -> Schema:
    """An array of these."""
    return {"type": "array", "items": of}


def either(*schemas: Schema) -> Schema:
    """One of them."""
    return {"anyOf": [*schemas]}


NULL: Schema = {"type": "null"}

# https://www.speedscope.app/file-format-schema.json
SPEEDSCOPE = closed(
    {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "shared": closed({"frames": array(closed({"name": STRING}, {"file": STRING, "line": NUMBER, "col": NUMBER}))}),
        "profiles": array(
            closed(
                {
                    "type": {"const": "sampled"},
                    "name": STRING,
                    "unit": {"enum": ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]},
                    "startValue": NUMBER,
                    "endValue": NUMBER,
                    "samples": array(array(INDEX)),
                    "weights": array(NUMBER),
                }
            )
        ),
    },
    {"name": STRING, "activeProfileIndex": INDEX, "exporter": STRING},
)

# "Trace Event Format": complete events and metadata events of the JSON object format.
CHROME = closed(
    {
        "traceEvents": array(
            either(
                closed(
                    {
                        "ph": {"const": "X"},
                        "name": STRING,
                        "cat": STRING,
                        "ts": NUMBER,
                        "dur": {"type": "number", "minimum": 0},
                        "pid": {"type": "integer"},
                        "tid": {"type": "integer"},
                        "args": {"type": "object"},
                    }
                ),
                closed(
                    {
                        "ph": {"const": "M"},
                        "name": {"enum": ["process_name", "thread_name"]},
                        "ts": NUMBER,
                        "pid": {"type": "integer"},
                        "tid": {"type": "integer"},
                        "args": closed({"name": STRING}),
                    }
                ),
            )
        )
    },
    {"displayTimeUnit": {"enum": ["ms", "ns"]}, "otherData": {"type": "object"}},
)


def table(**columns: Schema) -> Schema:
    """One of Firefox Profiler's tables: a column each, all of `length` entries."""
    return closed({name: array(schema) for name, schema in columns.items()} | {"length": INDEX})


def or_null(schema: Schema) -> Schema:
    """It, or null."""
    return either(schema, NULL)


_MARKERS = table(
    data=closed({"type": STRING, "trace_id": INDEX, "span_id": INDEX}),
    name=INDEX,
    startTime=or_null(NUMBER),
    endTime=or_null(NUMBER),
    phase={"enum": [0, 1, 2, 3]},
    category=INDEX,
)
_FRAMES = table(
    address={"type": "integer", "minimum": -1},
    inlineDepth=INDEX,
    category=or_null(INDEX),
    subcategory=or_null(INDEX),
    func=INDEX,
    nativeSymbol=or_null(INDEX),
    innerWindowID=or_null(INDEX),
    line=or_null(NUMBER),
    column=or_null(NUMBER),
)
_FUNCTIONS = table(
    name=INDEX,
    isJS=BOOLEAN,
    relevantForJS=BOOLEAN,
    resource={"type": "integer", "minimum": -1},
    source=or_null(INDEX),
    lineNumber=or_null(NUMBER),
    columnNumber=or_null(NUMBER),
)
_SAMPLES = closed(
    {
        "stack": array(or_null(INDEX)),
        "time": array(NUMBER),
        "weight": array(NUMBER),
        "weightType": {"enum": ["samples", "tracing-ms", "bytes"]},
        "length": INDEX,
    }
)
_THREAD = closed(
    {
        "processType": STRING,
        "processStartupTime": NUMBER,
        "processShutdownTime": or_null(NUMBER),
        "registerTime": NUMBER,
        "unregisterTime": or_null(NUMBER),
        "pausedRanges": array(NULL),
        "name": STRING,
        "isMainThread": BOOLEAN,
        "pid": STRING,
        "tid": either(NUMBER, STRING),
        "samples": _SAMPLES,
        "markers": _MARKERS,
        "stackTable": table(frame=INDEX, prefix=or_null(INDEX)),
        "frameTable": _FRAMES,
        "funcTable": _FUNCTIONS,
        "resourceTable": table(lib=or_null(INDEX), name=INDEX, host=or_null(INDEX), type=INDEX),
        "nativeSymbols": table(libIndex=INDEX, address=INDEX, name=INDEX, functionSize=or_null(NUMBER)),
    },
    {"processName": STRING, "showMarkersInTimeline": BOOLEAN},
)
_COLOURS = ["transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red"]
_COLOURS += ["lightred", "darkgrey", "grey"]
_META = closed(
    {
        "interval": NUMBER,
        "startTime": NUMBER,
        "processType": NUMBER,
        "product": STRING,
        "stackwalk": {"enum": [0, 1]},
        "version": NUMBER,
        "preprocessedProfileVersion": {"const": 58},
        "categories": array(
            closed({"name": STRING, "color": {"enum": _COLOURS}, "subcategories": {"const": ["Other"]}})
        ),
        "markerSchema": array(
            closed(
                {"name": STRING, "display": array({"enum": ["marker-chart", "marker-table"]})},
                {
                    "tooltipLabel": STRING,
                    "tableLabel": STRING,
                    "chartLabel": STRING,
                    "fields": array(closed({"key": STRING, "label": STRING, "format": {"const": "unique-string"}})),
                },
            )
        ),
    },
    {
        "profilingStartTime": NUMBER,
        "profilingEndTime": NUMBER,
        "symbolicated": BOOLEAN,
        "symbolicationNotSupported": BOOLEAN,
        "usesOnlyOneStackType": BOOLEAN,
        "sourceCodeIsNotOnSearchfox": BOOLEAN,
        "keepProfileThreadOrder": BOOLEAN,
        "importedFrom": STRING,
    },
)

# Firefox Profiler's processed profile format, version 58 (src/types/profile.ts).
GECKO = closed(
    {
        "meta": _META,
        "libs": array(NULL),
        "threads": array(_THREAD),
        "shared": closed({"stringArray": array(STRING), "sources": table(uuid=or_null(STRING), filename=INDEX)}),
    }
)


def check(document: Any, schema: Schema) -> None:
    """Fails with the place of the first thing that the schema does not allow."""
    jsonschema.Draft202012Validator(schema).validate(document)
