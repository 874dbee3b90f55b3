"""All parts of the viewer together: receivers, store, API and page, from `start` to `stop`."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ..formats.recording import Recording
from .access import Access, Guard
from .api import Api, Settings, error_response
from .http_receiver import receiver
from .intake import Intake
from .page_files import page_file
from .store import Limits, Store
from .summaries import settle

if TYPE_CHECKING:
    from .grpc_receiver import GrpcReceiver

UI_PORTS_TRIED = 20
COMPRESSED_FROM_BYTES = 1000
COMPRESSION_LEVEL = 4
MAX_CONNECTIONS = 200
START_SECONDS = 20.0
STOP_SECONDS = 3
BACKLOG = 128


class CannotStart(Exception):
    """The viewer cannot start; the text says why, and what helps."""


@dataclass(frozen=True)
class ViewerOptions:
    """How the viewer is to be started. Port 0 is any free one, a port of None: that receiver is left out."""

    host: str = "127.0.0.1"
    grpc_port: int | None = 4317
    http_port: int | None = 4318
    ui_port: int = 8418
    database: str = ":memory:"
    limits: Limits = field(default_factory=Limits)
    source_root: Path = field(default_factory=Path.cwd)
    path_map: tuple[tuple[str, str], ...] = ()
    editor: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    token: str | None = None
    say: Callable[[str], None] = lambda text: None
    html_of: Callable[[Recording], bytes] | None = None


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to whoever has started the viewer."""
        yield


class Viewer:
    """A running viewer. CannotStart when a port is taken or the database cannot be opened."""

    def __init__(self, options: ViewerOptions) -> None:
        self.options = options
        self.access = Access.for_host(options.host, options.allowed_hosts, options.token)
        self._sockets: list[socket.socket] = []
        self._grpc: GrpcReceiver | None = None
        try:
            http = self._listen(options.http_port, "--http-port") if options.http_port is not None else None
            page = self._listen_for_page(options.ui_port)
            self.store = self._open_store()
        except BaseException:
            self._close_sockets()
            raise
        try:
            self.intake = Intake(self.store, options.say)
            self.grpc_address = self._listen_grpc()
        except BaseException:
            self._close_sockets()
            self.store.close()
            raise
        self.http_address = f"http://{_address(http)}" if http else None
        self.page_address = f"http://{_address(page)}"
        self.api = Api(
            self.store,
            self.intake,
            Settings(
                source_root=options.source_root.resolve(),
                path_map=list(options.path_map),
                editor=options.editor,
                grpc=self.grpc_address,
                http=self.http_address,
                html_of=options.html_of,
            ),
        )
        self.store.settle = partial(settle, reader=self.api.reader, prepare=self.api.prepare)
        apps: list[tuple[ASGIApp, socket.socket]] = [(self._page_app(), page)]
        if http is not None:
            apps.append((receiver(self.intake, self.access), http))
        self._servers = [(_Server(_config(app)), listening) for app, listening in apps]
        self._thread = threading.Thread(target=self._serve, name="viewer", daemon=True)
        self._started = threading.Event()
        self._failure: BaseException | None = None

    @property
    def address_with_token(self) -> str:
        """What to open in a browser."""
        return f"{self.page_address}/?token={self.access.token}" if self.access.token else self.page_address

    def start(self) -> Self:
        """Begins to serve; returns when requests are answered."""
        self.store.start()
        if self._grpc is not None:
            self._grpc.start()
        self._thread.start()
        if not self._started.wait(START_SECONDS):
            self.stop()
            raise CannotStart(f"the server does not start: {self._failure or 'it takes too long'}")
        return self

    def stop(self) -> None:
        """Ends after the requests under way; what was received is stored."""
        self.api.ends = True
        for server, _ in self._servers:
            server.should_exit = True
        if self._grpc is not None:
            self._grpc.stop()
        if self._thread.ident is not None:
            self._thread.join()
        self._close_sockets()
        self.store.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _serve(self) -> None:
        try:
            asyncio.run(self._serve_all())
        except BaseException as error:
            self._failure = error

    async def _serve_all(self) -> None:
        serving = [asyncio.create_task(server.serve(sockets=[listening])) for server, listening in self._servers]
        while not all(server.started for server, _ in self._servers) and not any(task.done() for task in serving):
            await asyncio.sleep(0.01)
        self._started.set()
        await asyncio.gather(*serving)

    def _open_store(self) -> Store:
        import sqlite3

        try:
            return Store(self.options.database, self.options.limits)
        except (sqlite3.Error, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            step = "say another --db, or --db :memory: to keep nothing"
            raise CannotStart(f"{self.options.database} cannot be used: {reason}; {step}") from None

    def _listen_grpc(self) -> str | None:
        options = self.options
        if options.grpc_port is None:
            return None
        try:
            from .grpc_receiver import GrpcReceiver, PortTaken
        except ImportError:
            self.intake.note("grpcio is not installed: OTLP is received over HTTP only")
            return None
        self._listen(options.grpc_port, "--grpc-port").close()  # a taken port is written to stderr by gRPC itself
        try:
            self._grpc = GrpcReceiver(self.intake, self.access, options.host, options.grpc_port)
        except PortTaken:
            raise CannotStart(_taken(options.host, options.grpc_port, "--grpc-port")) from None
        return f"{_bracketed(options.host)}:{self._grpc.port}"

    def _listen_for_page(self, port: int) -> socket.socket:
        for number in range(port, port + UI_PORTS_TRIED) if port else [0]:
            try:
                return self._bind(number)
            except OSError:
                continue
        raise CannotStart(f"no port from {port} to {port + UI_PORTS_TRIED - 1} is free: say --ui-port 0")

    def _listen(self, port: int, option: str) -> socket.socket:
        try:
            return self._bind(port)
        except OSError as error:
            if isinstance(error, socket.gaierror):
                raise CannotStart(f"{self.options.host} is no address of this machine") from None
            raise CannotStart(_taken(self.options.host, port, option)) from None

    def _bind(self, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.options.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self.options.host, port))
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
        self._sockets.append(listening)
        return listening

    def _close_sockets(self) -> None:
        for listening in self._sockets:
            listening.close()

    def _page_app(self) -> ASGIApp:
        app = Starlette(
            routes=[*self.api.routes(), Route("/{path:path}", page_file)],
            middleware=[
                Middleware(GZipMiddleware, minimum_size=COMPRESSED_FROM_BYTES, compresslevel=COMPRESSION_LEVEL)
            ],
            exception_handlers={HTTPException: _http_error, Exception: _error},
        )
        return Guard(app, self.access, page=True)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(error.status_code, str(error.detail))


async def _error(request: Request, error: Exception) -> Response:
    return error_response(500, f"a defect of the viewer: {type(error).__name__}: {error}")


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=STOP_SECONDS,
        ws="none",
        loop="asyncio",
        http="h11",
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"{_bracketed(host)}:{port}"


def _taken(host: str, port: int, option: str) -> str:
    what = " (is a Collector running?)" if port in (4317, 4318) else ""
    return f"{_bracketed(host)}:{port} is taken{what}: end what listens there, or say {option} 0"
