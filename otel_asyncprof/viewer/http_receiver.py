"""OTLP over HTTP."""

from google.protobuf.json_format import MessageToDict
from google.rpc.status_pb2 import Status
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from .access import Access, Guard
from .intake import LOGS, MAX_BODY_BYTES, METRICS, PROFILES, TRACES, Intake, TooLarge, unpacked
from .store import StoreFull

PATHS = {
    "/v1/traces": TRACES,
    "/v1development/profiles": PROFILES,
    "/v1/profiles": PROFILES,
    "/v1/metrics": METRICS,
    "/v1/logs": LOGS,
}
PROTOBUF, JSON = "application/x-protobuf", "application/json"
_ENCODINGS = {"", "identity", "gzip", "deflate"}
_INVALID, _EXHAUSTED = 3, 8  # of google.rpc.Code
RETRY_SECONDS = 1


class BodyTooLarge(Exception):
    """More was sent than is allowed."""


async def read_body(request: Request, most: int) -> bytes:
    """The body; BodyTooLarge as soon as it is too large, whatever was announced."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > most:
        raise BodyTooLarge
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise BodyTooLarge
    return bytes(body)


def receiver(intake: Intake, access: Access) -> ASGIApp:
    """The application that answers OTLP requests."""

    async def export(request: Request) -> Response:
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media not in (PROTOBUF, JSON):
            return _failure(415, _INVALID, f"the content type has to be {PROTOBUF} or {JSON}", JSON)
        encoding = request.headers.get("content-encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            return _failure(415, _INVALID, "the content encoding has to be gzip or deflate", media)
        try:
            body = await read_body(request, MAX_BODY_BYTES)
        except BodyTooLarge:
            return _failure(413, _INVALID, f"a request may have {MAX_BODY_BYTES >> 20} MiB", media)
        except ClientDisconnect:
            return Response(status_code=400)
        return await run_in_threadpool(_answer, intake, PATHS[request.url.path], body, encoding, media)

    return Guard(Starlette(routes=[Route(path, export, methods=["POST"]) for path in PATHS]), access, page=False)


def _answer(intake: Intake, signal: str, body: bytes, encoding: str, media: str) -> Response:
    try:
        message = intake.parse(signal, unpacked(body, encoding), is_json=media == JSON)
        answer = intake.take(signal, message)
    except TooLarge as error:
        return _failure(413, _INVALID, str(error), media)
    except ValueError as error:
        return _failure(400, _INVALID, str(error), media)
    except StoreFull:
        failure = _failure(503, _EXHAUSTED, "more arrives than can be written", media)
        failure.headers["Retry-After"] = str(RETRY_SECONDS)
        return failure
    if media == JSON:
        return JSONResponse(MessageToDict(answer))
    return Response(answer.SerializeToString(), media_type=PROTOBUF)


def _failure(status: int, code: int, text: str, media: str) -> Response:
    message = Status(code=code, message=text)
    if media == PROTOBUF:
        return Response(message.SerializeToString(), status, media_type=PROTOBUF)
    return JSONResponse(MessageToDict(message), status)
