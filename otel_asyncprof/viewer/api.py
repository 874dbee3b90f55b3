"""The JSON API, as web/API.md describes it."""

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from .._version import __version__
from ..errors import UnreadableRecording
from ..formats.recording import Recording, read_recording
from . import downloads, reading, source_files
from .compare_answers import BadSelector, comparison_json
from .counts import Counts, counted
from .http_receiver import BodyTooLarge, read_body
from .intake import MAX_BODY_BYTES, MAX_MESSAGE_BYTES, Intake, TooLarge, unpacked
from .lane_answers import lanes_json, span_holders_json
from .list_answers import operations_json, resource_services, trace_list_json
from .parameters import (
    BadParameter,
    Parameters,
    query_filter,
    read_identifier,
    stack_choice,
    stack_view,
    trace_filter,
)
from .query_answers import queries_json, query_json
from .reading import Reader, TraceData
from .retention import used_bytes
from .selection import TRACE, NothingThere, chosen
from .source_files import NotAllowed, source_json
from .stack_answers import filtered, functions_json, sandwich_json, tree_json
from .store import Store, StoreFull
from .trace_answers import found_trace, span_json, thin_json, trace_json

EVENT_SECONDS = 0.5
KEEP_ALIVE_EVENTS = 30  # looks without a change after which a comment keeps the connection open
ETAG_PATHS = re.compile(r"/api/(status|events)$")  # change without the stored data

Answer = Callable[[sqlite3.Connection, Request], Any]


@dataclass
class Settings:
    """What the API needs to know besides the data."""

    source_root: Path = field(default_factory=Path.cwd)
    path_map: list[tuple[str, str]] = field(default_factory=list)
    editor: str | None = None
    grpc: str | None = None
    http: str | None = None
    html_of: Callable[[Recording], bytes] | None = None


class Api:
    """Answers from a store."""

    def __init__(self, store: Store, intake: Intake, settings: Settings) -> None:
        self._store = store
        self._intake = intake
        self._settings = settings
        self.reader = Reader()
        self._counts = Counts()
        self._begun = time.time_ns()  # a revision is of this run only
        self.ends = False

    def routes(self) -> list[Route]:
        """All paths."""
        answers: dict[str, Answer] = {
            "/api/status": self._status,
            "/api/traces": lambda c, r: trace_list_json(c, trace_filter(r.query_params), self._store.revision),
            "/api/operations": lambda c, r: operations_json(c, trace_filter(r.query_params)),
            "/api/traces/{trace}": self._trace,
            "/api/traces/{trace}/lanes": lambda c, r: lanes_json(c, self.reader, self._found(c, r)),
            "/api/traces/{trace}/spans/{span}": self._span,
            "/api/holders": self._holders,
            "/api/stacks": self._stacks,
            "/api/functions": self._functions,
            "/api/sandwich": self._sandwich,
            "/api/queries": lambda c, r: queries_json(c, self.reader, query_filter(r.query_params)),
            "/api/queries/{query:int}": lambda c, r: query_json(
                c, self.reader, query_filter(r.query_params, r.path_params["query"])
            ),
            "/api/compare": self._compare,
            "/api/source": self._source,
            "/api/export": self._export,
            "/api/export/extent": self._extent,
            "/api/markdown": self._markdown,
        }
        return [
            *(Route(path, self._answering(answer)) for path, answer in answers.items()),
            Route("/api/events", self._events),
            Route("/api/import", self._import, methods=["POST"]),
            Route("/api/data", self._clear, methods=["DELETE"]),
            Route("/api/{rest:path}", _nothing),
        ]

    def _answering(self, answer: Answer) -> Callable[[Request], Any]:
        def read(request: Request) -> Response:
            tag = f'"{self._begun:x}-{self._store.revision}"'
            tagged = not ETAG_PATHS.search(request.url.path)
            if tagged and tag in request.headers.get("if-none-match", ""):
                return Response(status_code=304, headers={"ETag": tag})
            response = self._read(answer, request)
            if tagged and response.status_code == 200:
                response.headers["ETag"] = tag
            response.headers["Cache-Control"] = "no-cache"
            return response

        async def respond(request: Request) -> Response:
            return await run_in_threadpool(read, request)

        return respond

    def _read(self, answer: Answer, request: Request) -> Response:
        try:
            with self._store.reading() as connection:
                content = answer(connection, request)
        except (BadParameter, BadSelector) as error:
            return error_response(400, str(error))
        except NotAllowed as error:
            return error_response(403, str(error))
        except NothingThere as error:
            return error_response(404, str(error))
        except sqlite3.OperationalError as error:
            return error_response(503, f"the database could not answer in time: {error}")
        return content if isinstance(content, Response) else _Json(content)

    def _found(self, connection: sqlite3.Connection, request: Request) -> Any:
        trace_id = read_identifier("the trace's id", request.path_params["trace"], 16)
        return found_trace(connection, self.reader, trace_id)

    def _trace(self, connection: sqlite3.Connection, request: Request) -> Any:
        data = self._found(connection, request)
        if data.answer is None:
            data.answer = to_bytes(trace_json(connection, self.reader, data))
        return Response(data.answer, media_type="application/json")

    def prepare(self, connection: sqlite3.Connection, data: TraceData) -> None:
        """Works the answer about a large trace out before it is asked for."""
        if len(data.spans) >= reading.MANY_SPANS:
            data.answer = to_bytes(trace_json(connection, self.reader, data))
            self.reader.keep(connection, data)

    def _span(self, connection: sqlite3.Connection, request: Request) -> Any:
        span_id = read_identifier("the span's id", request.path_params["span"], 8)
        return span_json(connection, self.reader, self._found(connection, request), span_id)

    def _holders(self, connection: sqlite3.Connection, request: Request) -> Any:
        choice = stack_choice(request.query_params)
        if choice.trace is None:
            raise BadParameter("trace is needed")
        data = found_trace(connection, self.reader, choice.trace)
        return span_holders_json(connection, self.reader, data, choice.span)

    def _stacks(self, connection: sqlite3.Connection, request: Request) -> Any:
        choice, view = stack_choice(request.query_params), stack_view(request.query_params)
        found = chosen(connection, self.reader, choice)
        thin = None
        if choice.trace is not None:
            data = found_trace(connection, self.reader, choice.trace)
            index = data.index_of[choice.span] if choice.span is not None and choice.scope != TRACE else 0
            thin = thin_json(connection, data, index, found.samples)
        return {**tree_json(found, filtered(found, view), view), "thin": thin}

    def _functions(self, connection: sqlite3.Connection, request: Request) -> Any:
        view = stack_view(request.query_params)
        found = chosen(connection, self.reader, stack_choice(request.query_params))
        return functions_json(found, filtered(found, view), view)

    def _sandwich(self, connection: sqlite3.Connection, request: Request) -> Any:
        given, view = Parameters(request.query_params), stack_view(request.query_params)
        function = given.text("function")
        if function is None:
            raise BadParameter("function is needed, and file")
        found = chosen(connection, self.reader, stack_choice(request.query_params))
        named = (function, given.text("file") or "")
        return sandwich_json(connection, found, filtered(found, view), named, view)

    def _compare(self, connection: sqlite3.Connection, request: Request) -> Any:
        given = Parameters(request.query_params)
        sides = given.text("a"), given.text("b")
        if sides[0] is None or sides[1] is None:
            raise BadParameter("a and b are needed")
        return comparison_json(connection, self.reader, sides[0], sides[1], stack_choice(request.query_params))

    def _source(self, connection: sqlite3.Connection, request: Request) -> Any:
        given = Parameters(request.query_params)
        file, line = given.text("file"), given.whole("line", 1, 1 << 31)
        if file is None or line is None:
            raise BadParameter("file and line are needed")
        context = given.whole("context", 0, source_files.MAX_CONTEXT)
        settings = self._settings
        return source_json(
            connection, settings.source_root, settings.path_map, file, line, 20 if context is None else context
        )

    def _export(self, connection: sqlite3.Connection, request: Request) -> Any:
        given = Parameters(request.query_params)
        form = given.choice("format", downloads.NAMES, "otlp-json")
        export = downloads.Export(connection, self.reader, stack_choice(request.query_params))
        try:
            content = downloads.encoded(export.recording(), form, self._settings.html_of)
        except (IndexError, ValueError) as error:
            raise NothingThere(f"this cannot be written as {form}: {error}") from None
        name = downloads.file_name(request.query_params, form, export.is_cut())
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type="application/octet-stream", headers=headers)

    def _extent(self, connection: sqlite3.Connection, request: Request) -> Any:
        return downloads.Export(connection, self.reader, stack_choice(request.query_params)).extent()

    def _markdown(self, connection: sqlite3.Connection, request: Request) -> Any:
        choice, view = stack_choice(request.query_params), stack_view(request.query_params)
        found = chosen(connection, self.reader, choice)
        text = downloads.markdown_of(connection, self.reader, choice, found, view)
        return PlainTextResponse(text, media_type="text/markdown; charset=utf-8")

    def _status(self, connection: sqlite3.Connection, request: Request) -> Any:
        store, settings = self._store, self._settings
        counts = self._counts.now(connection, store.revision)
        return {
            "version": __version__,
            "now_us": time.time_ns() // 1000,
            "revision": store.revision,
            **counts,
            "size_bytes": used_bytes(connection),
            "limit_bytes": store.limits.size_bytes,
            "retain_us": store.limits.retain_ns // 1000,
            "database": store.path,
            "receivers": {"grpc": settings.grpc, "http": settings.http},
            "rejected": dict(store.rejected),
            "notes": [*self._intake.notes, *([store.error] if store.error else [])],
            "source_root": str(settings.source_root),
            "editor": settings.editor,
            "services": resource_services(connection),
        }

    async def _events(self, request: Request) -> Response:
        return StreamingResponse(
            self._changes(request), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    async def _changes(self, request: Request) -> AsyncIterator[str]:
        seen, quiet = -1, 0
        while not self.ends and not await request.is_disconnected():
            revision = self._store.revision
            if revision != seen:
                seen, quiet = revision, 0
                change = await run_in_threadpool(self._change, revision)
                yield f"event: change\ndata: {json.dumps(change)}\n\n"
            else:
                quiet += 1
                if quiet % KEEP_ALIVE_EVENTS == 0:
                    yield ":\n\n"
            await asyncio.sleep(EVENT_SECONDS)

    def _change(self, revision: int) -> dict[str, int]:
        with self._store.reading() as connection:
            traces, newest = connection.execute("SELECT COUNT(*), COALESCE(MAX(start_ns), 0) FROM trace").fetchone()
        return {"revision": revision, "traces": traces, "newest_us": newest // 1000}

    async def _import(self, request: Request) -> Response:
        try:
            body = await read_body(request, MAX_BODY_BYTES)
            return await run_in_threadpool(self._add, body)
        except (BodyTooLarge, TooLarge):
            return error_response(413, f"a file may have {MAX_BODY_BYTES >> 20} MiB")
        except (UnreadableRecording, ValueError) as error:
            return error_response(400, f"this is no recording: {error}")
        except StoreFull:
            return error_response(503, "more arrives than can be written")

    def _add(self, body: bytes) -> Response:
        if body[:2] == b"\x1f\x8b":
            body = unpacked(body, "gzip", MAX_MESSAGE_BYTES)
        recording = read_recording(body)
        before = self._counted()
        self._intake.take_all(recording)
        after = self._counted()
        return _Json({name: after[name] - before[name] for name in ("spans", "samples")})

    def _counted(self) -> dict[str, int]:
        with self._store.reading() as connection:
            return counted(connection)

    async def _clear(self, request: Request) -> Response:
        await run_in_threadpool(self._store.clear)
        self.reader.forget()
        return _Json({})


def to_bytes(content: Any) -> bytes:
    """As short as possible. Text of others may hold lone surrogates, which UTF-8 has no bytes for."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(errors="replace")


class _Json(JSONResponse):
    def render(self, content: Any) -> bytes:
        """The body."""
        return to_bytes(content)


def error_response(status: int, reason: str) -> Response:
    """An error as every path answers it."""
    return _Json({"error": reason}, status)


async def _nothing(request: Request) -> Response:
    raise HTTPException(404, "there is no such path")
