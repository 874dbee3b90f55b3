"""Who may ask: every request passes here before anything is read of it.

Any page in the user's browser can send requests to this machine. Its own name does not make it a friend: a foreign
name can be made to point here, so the Host header has to be one of ours.
"""

import ipaddress
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "otel_asyncprof_token"
_SAFE = {"GET", "HEAD", "OPTIONS"}
_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_SPEEDSCOPE_POLICY = f"{_POLICY}; style-src 'self' 'unsafe-inline'"  # its build puts style elements into the page
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",
}


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Access:
    """Which hosts a request may name, and the token that it needs; none on loopback."""

    host: str = "127.0.0.1"
    names: frozenset[str] = field(default_factory=frozenset)  # further ones
    token: str | None = None

    @classmethod
    def for_host(cls, host: str, names: Iterable[str] = (), token: str | None = None) -> "Access":
        """On an address that others can reach a token is needed: the given one, or a new one."""
        needed = token or (None if is_loopback(host) else secrets.token_urlsafe(24))
        return cls(host, frozenset(name.lower() for name in names), needed)

    def allows_host(self, header: str) -> bool:
        """Whether a Host header is a name of ours. An address cannot be rebound: off loopback all are allowed."""
        try:
            name = (urlsplit(f"//{header}").hostname or "").lower()
        except ValueError:
            return False
        if name in {"localhost", "127.0.0.1", "::1", self.host.lower()} or name in self.names:
            return True
        if is_loopback(self.host):
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def allows_token(self, given: str | None) -> bool:
        """Whether it is the token, or none is needed."""
        return self.token is None or secrets.compare_digest((given or "").encode(), self.token.encode())


def bearer(header: str | None) -> str | None:
    """The token of an Authorization header."""
    kind, _, value = (header or "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else None


def is_same_origin(headers: Mapping[str, str], scheme: str) -> bool:
    """Whether a page of ours asks, or no page at all: browsers say where a request comes from."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site not in (None, "same-origin", "none"):
        return False
    return origin is None or origin == f"{scheme}://{headers.get('host', '')}"


class Guard:
    """Refuses what does not come from here, and tells browsers what the page may do."""

    def __init__(self, app: ASGIApp, access: Access, *, page: bool) -> None:
        self._app = app
        self._access = access
        self._page = page  # else the OTLP receiver, which no browser has any business with

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        path = scope["path"]
        policy = _SPEEDSCOPE_POLICY if path.startswith("/speedscope/") else _POLICY

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in (_HEADERS | {"Content-Security-Policy": policy}).items():
                    sent[name] = value
            await send(message)

        await (refusal or self._app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        host = headers.getlist("host")
        if len(host) != 1 or not self._access.allows_host(host[0]):
            return _refuse(f"the host {', '.join(host)[:80]!r} is not this viewer: --allow-host adds a name")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        given = bearer(headers.get("authorization"))
        if self._page:
            given = given or _cookie(headers) or query.get("token")
        if not self._access.allows_token(given):
            return _refuse("a token is needed: open the address that the viewer printed", 401)
        if not self._page:
            return _refuse("a page in a browser may not send telemetry here") if headers.get("origin") else None
        if (scope["method"] not in _SAFE or scope["path"].startswith("/api/")) and not is_same_origin(
            headers, scope["scheme"]
        ):
            return _refuse("only the viewer's own page may do this")
        if self._access.token and "token" in query and scope["method"] == "GET":
            return self._remember(scope, query)
        return None

    def _remember(self, scope: Scope, query: dict[str, str]) -> ASGIApp:
        """Puts the token into a cookie, so that it does not stay in the address."""
        left = urlencode([(key, value) for key, value in query.items() if key != "token"])
        path = "/" + scope["path"].lstrip("/")  # never another host
        answer = RedirectResponse(path + (f"?{left}" if left else ""), 303)
        answer.set_cookie(COOKIE, self._access.token or "", httponly=True, samesite="strict", path="/")
        return answer


def _cookie(headers: Headers) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return found.value if found else None


def _refuse(reason: str, status: int = 403) -> ASGIApp:
    return JSONResponse({"error": reason}, status)
