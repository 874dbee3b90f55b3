"""Nobody but the user's own page and programs has any business with the viewer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from native_tables import Frame
from recordings import QUERY, REQUEST, TRACE, recording, span, traces
from starlette.datastructures import QueryParams
from viewer_client import Client, running_viewer

from otel_asyncprof.formats.recording import Recording
from otel_asyncprof.viewer.access import Access
from otel_asyncprof.viewer.decoding import decoded_profiles
from otel_asyncprof.viewer.downloads import file_name
from otel_asyncprof.viewer.source_files import mapped

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A viewer with one trace, on loopback."""
    with running_viewer() as found:
        found.load(recording())
        yield found


@pytest.fixture(scope="module")
def guarded() -> Iterator[Client]:
    """A viewer on all addresses."""
    with running_viewer(host="0.0.0.0", token="s3cret", allowed_hosts=("devbox",)) as found:
        yield found


def test_by_default_only_this_machine_can_reach_it(client: Client) -> None:
    """Page, HTTP and gRPC listen on loopback."""
    viewer = client.viewer
    addresses = [viewer.page_address, viewer.http_address, viewer.grpc_address]
    assert [str(address).removeprefix("http://").rpartition(":")[0] for address in addresses] == ["127.0.0.1"] * 3
    assert viewer.access.token is None


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8418", 200),
        ("127.0.0.1", 200),
        ("[::1]:8418", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost@evil.example", 403),
        ("192.168.1.7", 403),
        ("", 403),
        ("[", 403),
    ],
)
def test_a_foreign_name_that_points_here_is_refused(client: Client, host: str, status: int) -> None:
    """What DNS rebinding would need, on the page's and on the receiver's address."""
    assert client.page("GET", "/api/status", Host=host).status == status
    assert client.otlp("/v1/metrics", b"", Host=host).status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
    ],
)
def test_only_the_own_page_changes_or_reads_anything(headers: dict[str, str], status: int, client: Client) -> None:
    """Another page in the same browser does not; programs, which say no origin, do."""
    assert client.page("DELETE", "/api/nothing", **headers).status == (status if status == 403 else 405)
    assert client.page("GET", "/api/traces", **headers).status == status
    origin = client.viewer.page_address
    assert client.page("GET", "/api/traces", Origin=origin).status == 200
    assert client.page("GET", "/api/traces", Origin=origin.replace("http:", "https:")).status == 403


def test_everything_can_be_deleted_by_the_own_page_alone() -> None:
    """DELETE with another origin deletes nothing."""
    with running_viewer(grpc_port=None, http_port=None) as client:
        client.load(recording())
        assert client.page("DELETE", "/api/data", Origin="http://evil.example").status == 403
        assert client.get("/api/status")["spans"] == 2
        assert client.page("DELETE", "/api/data", Origin=client.viewer.page_address).status == 200
        assert client.get("/api/status")["spans"] == 0
        assert client.page("GET", f"/api/traces/{TRACE.hex()}").status == 404


def test_there_is_no_cors(client: Client) -> None:
    """No answer allows another origin anything, whatever it asks."""
    ask = {"Origin": "http://evil.example", "Access_Control_Request_Method": "POST"}
    for reply in (client.page("OPTIONS", "/api/traces", **ask), client.otlp("/v1/traces", b"", **ask)):
        assert reply.status == 403
        assert not [name for name in reply.headers if name.startswith("access-control")]


def test_a_page_cannot_send_telemetry(client: Client) -> None:
    """A form or a script with a plain content type is turned away as well."""
    body = traces().SerializeToString()
    assert client.otlp("/v1/traces", body, Origin=client.viewer.page_address).status == 403
    assert client.otlp("/v1/traces", body, "text/plain").status == 415


def test_the_page_may_load_nothing_from_elsewhere(client: Client) -> None:
    """On each answer, errors too; only speedscope's own page has style elements."""
    for path in ("/", "/trace/x", "/api/traces", "/api/nothing", "/assets/none.js"):
        policy = client.page("GET", path).headers["content-security-policy"].split("; ")
        assert policy == [
            "default-src 'self'",
            "img-src 'self' data:",
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'self'",
        ]
    speedscope = client.page("GET", "/speedscope/index.html").headers["content-security-policy"]
    assert speedscope == "; ".join([*policy, "style-src 'self' 'unsafe-inline'"])
    headers = client.page("GET", "/api/traces").headers
    assert [
        headers[name] for name in ("x-content-type-options", "referrer-policy", "cross-origin-resource-policy")
    ] == [
        "nosniff",
        "no-referrer",
        "same-origin",
    ]


@pytest.mark.parametrize(
    "path", ["/../api.py", "/..%2fapi.py", "/static/../../api.py", "/%2e%2e/server.py", "//etc/passwd"]
)
def test_only_files_of_the_page_are_served(client: Client, path: str) -> None:
    """Every other path is the page itself."""
    assert client.page("GET", path).body == client.page("GET", "/").body


def test_names_are_text() -> None:
    """They are sent as JSON, which no browser takes for a page."""
    with running_viewer(grpc_port=None) as other:
        other.otlp("/v1/traces", traces(span(REQUEST, EVIL, 0, 9, db__query__text=EVIL)).SerializeToString())
        reply = other.page("GET", "/api/traces")
        assert reply.headers["content-type"] == "application/json"
        assert reply.json["traces"][0]["operation"] == EVIL
        page = other.page("GET", f"/api/export?format=html&trace={TRACE.hex()}")
        assert page.headers["content-disposition"].startswith("attachment;")
        assert EVIL.encode() not in page.body
    name = file_name(QueryParams({"operation": 'shop/x"\r\nX: y', "trace": "../../etc"}), "collapsed", cut=False)
    assert name == "asyncprof-..-..-etc-shop-x-X-y.collapsed"


def test_on_other_addresses_a_token_is_needed(guarded: Client) -> None:
    """For the page, the API and both receivers."""
    body = traces().SerializeToString()
    assert guarded.page("GET", "/").status == 401
    assert guarded.page("GET", "/api/status").status == 401
    assert guarded.page("GET", "/api/status", Authorization="Bearer wrong").status == 401
    assert guarded.page("GET", "/api/status?token=wrong").status == 401
    assert guarded.otlp("/v1/traces", body).status == 401
    assert guarded.otlp("/v1/traces", body, Authorization="Bearer s3cret").status == 200
    assert guarded.page("GET", "/api/status", Authorization="Bearer s3cret").json["spans"] == 2


def test_the_token_moves_from_the_address_into_a_cookie(guarded: Client) -> None:
    """So that it is in no history and in no link that is passed on."""
    reply = guarded.page("GET", "/trace/5b8e?token=s3cret&span=9f21")
    cookie = reply.headers["set-cookie"]
    assert (reply.status, reply.headers["location"]) == (303, "/trace/5b8e?span=9f21")
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    assert guarded.page("GET", "/api/status", Cookie=cookie.split(";")[0]).status == 200
    assert guarded.page("GET", "//evil.example/?token=s3cret").headers["location"] == "/evil.example/"


def test_over_grpc_the_token_is_needed_too(guarded: Client) -> None:
    """As metadata, which OTEL_EXPORTER_OTLP_HEADERS sets."""
    port = str(guarded.viewer.grpc_address).rpartition(":")[2]
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        with pytest.raises(grpc.RpcError) as caught:
            export(b"", timeout=60)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert export(b"", timeout=60, metadata=[("authorization", "Bearer s3cret")]) == b""


def test_off_loopback_addresses_and_given_names_are_hosts(guarded: Client) -> None:
    """An address cannot be rebound; a name has to be given."""
    token = {"Authorization": "Bearer s3cret"}
    hosts = {"devbox:8418": 200, "DEVBOX": 200, "192.168.1.7:8418": 200, "evil.example": 403}
    assert {host: guarded.page("GET", "/api/status", Host=host, **token).status for host in hosts} == hosts


def test_without_a_given_token_a_new_one_is_made() -> None:
    """Long, and different each time; none on loopback."""
    tokens = {Access.for_host(host).token for host in ("0.0.0.0", "192.168.1.7", "::", "devbox")}
    assert len(tokens) == 4
    assert min(len(token or "") for token in tokens) >= 32
    assert {Access.for_host(host).token for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8")} == {None}


@pytest.fixture
def sources(tmp_path: Path) -> Iterator[tuple[Client, Path]]:
    """A viewer whose frames name files inside and outside of its root."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "app.py").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    (root / "unseen.py").write_text("x\n")
    (root / ".env").write_text("SECRET=1\n")
    (tmp_path / "outside.py").write_text("secret\n")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    named = ["app.py", ".env", "link.py", "../outside.py", "gone.py", "nul\0.py"]
    files = [str(root / name) for name in named] + ["/srv/app/app.py", "/etc/passwd"]
    with running_viewer(grpc_port=None, source_root=root, path_map=(("/srv/app", str(root)),)) as found:
        found.load(Recording(profiles=[with_files(files)]))
        yield found, root


def with_files(files: list[str]) -> object:
    """A profile whose only stack has a frame in each file."""
    from native_tables import StackTable
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
    from otlp_requests import encode

    table = StackTable()
    table.add([Frame("f", file.replace("\0", ""), 1, 1) for file in files], link=(TRACE, QUERY), wall_ns=10**7)
    return ProfilesData.FromString(b"".join(request.SerializeToString() for request in encode(table)))


def test_only_sources_that_frames_name_under_the_root_are_shown(sources: tuple[Client, Path]) -> None:
    """Not its neighbours, nothing outside, no symbolic link to it, and nothing but Python files."""
    client, root = sources
    shown = client.get("/api/source", file=str(root / "app.py"), line=50, context=1)
    assert shown == {"file": str(root / "app.py"), "first": 49, "lines": ["line 49", "line 50", "line 51"]}
    expected = {
        "unseen.py": 403,
        ".env": 403,
        "link.py": 403,
        "../outside.py": 403,
        "gone.py": 404,
    }
    found = {name: client.page("GET", f"/api/source?file={root / name}&line=1").status for name in expected}
    assert found == expected
    assert client.page("GET", "/api/source?file=/etc/passwd&line=1").status == 403


def test_a_file_of_another_machine_is_found_by_the_map(sources: tuple[Client, Path]) -> None:
    """/srv/app there is the root here; the map leads nowhere else."""
    client, _ = sources
    assert client.get("/api/source", file="/srv/app/app.py", line=1, context=0)["lines"] == ["line 1"]
    assert mapped("/srv/application/x.py", [("/srv/app", "/here")]) == "/srv/application/x.py"
    assert mapped("/srv/app/../../etc/x.py", [("/srv/app/", "/here/")]) == "/here/../../etc/x.py"


@pytest.mark.parametrize(
    "path",
    [
        "/api/traces?limit=10001",
        "/api/traces?min_us=-1",
        "/api/traces?min_us=1e9",
        "/api/traces?sort=name",
        "/api/traces?attribute=novalue",
        "/api/traces/xyz",
        "/api/stacks?trace=00",
        "/api/stacks?span=" + "0" * 16,
        "/api/stacks?state=asleep",
        "/api/stacks?prune=2",
        "/api/stacks?prune=nan",
        "/api/stacks?operation=noslash",
        "/api/compare?a=span:1:2&b=x",
        "/api/compare?a=query:1",
        "/api/source?file=/x.py&line=0",
        "/api/export?format=exe",
        "/api/traces?text=" + "x" * 2001,
    ],
)
def test_a_bad_parameter_is_an_error_with_a_sentence(client: Client, path: str) -> None:
    """Status 400, never a defect."""
    reply = client.page("GET", path)
    assert (reply.status, len(reply.json["error"]) > 10) == (400, True)


def test_hostile_profiles_leave_nothing_behind() -> None:
    """A stack of a million frames, times before 1970 and sums beyond 64 bits are left out."""
    from native_tables import StackTable
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
    from otlp_requests import encode

    table = StackTable()
    table.add([Frame("f", "/a.py", 1, 1)], wall_ns=10**7, link=(TRACE, QUERY))
    data = ProfilesData.FromString(b"".join(request.SerializeToString() for request in encode(table)))
    profile = next(p for p in data.resource_profiles[0].scope_profiles[0].profiles if p.samples)
    wall = profile.samples[0]
    deep = type(wall)()
    deep.CopyFrom(wall)
    stack = data.dictionary.stack_table.add()
    stack.location_indices.extend([1] * 1_000_000)
    deep.stack_index = len(data.dictionary.stack_table) - 1
    profile.samples.append(deep)
    huge = type(wall)()
    huge.CopyFrom(wall)
    huge.values[0] = (1 << 63) - 1
    huge.attribute_indices.append(0)
    profile.samples.append(huge)
    batch = decoded_profiles(data)
    assert (len(batch.samples), batch.rejected) == (1, 2)


def hostile() -> Recording:
    """Spans in circles, endless nesting, an end before the start, huge values, and weights that no clock gives."""
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    message = TracesData()
    spans = message.resource_spans.add().scope_spans.add().spans
    for number in range(1, 700):
        one = spans.add(trace_id=TRACE, span_id=number.to_bytes(8), name="<img src=x onerror=alert(1)>\0\u202e" * 9)
        one.parent_span_id = (number - 1 or 2).to_bytes(8)
        one.start_time_unix_nano, one.end_time_unix_nano = 10**18 + number, 10**18 + 10**9 - number % 7 * 10**9
    spans[5].parent_span_id = spans[5].span_id
    spans[0].attributes.add(key="big").value.string_value = "x" * 5_000_000
    spans[0].attributes.add(key="db.query.text").value.string_value = "SELECT '" + "(" * 200_000
    spans[0].attributes.add(key="number").value.int_value = -(1 << 63)
    spans[0].attributes.add(key="none").value.double_value = float("nan")
    value = spans[0].attributes.add(key="deep").value
    for _ in range(20):
        value = value.array_value.values.add()
    spans[0].events.add(name="early", time_unix_nano=1)
    profiles = ProfilesData()
    tables = profiles.dictionary
    tables.string_table.extend(["", "cpu", "nanoseconds", "<script>alert(1)</script>", "/a'\"><b>.py", "wall"])
    for table in ("mapping", "function", "location", "link", "attribute", "stack"):
        getattr(tables, f"{table}_table").add()
    tables.function_table.add(name_strindex=3, filename_strindex=4, start_line=-5)
    tables.location_table.add().lines.add(function_index=1, line=-(1 << 40))
    tables.stack_table.add(location_indices=[1] * 500)
    tables.link_table.add(trace_id=TRACE, span_id=(1).to_bytes(8))
    for kind, period in ((1, 1), (5, 0)):
        profile = profiles.resource_profiles.add().scope_profiles.add().profiles.add(period=period)
        profile.period_type.type_strindex, profile.period_type.unit_strindex = kind, 2
        times = [10**18 + 5] * 9
        place = {"stack_index": 1, "link_index": 1}
        for attributes in ([], [0, 0]):
            values = [1] * (1 if kind == 1 else 9)
            profile.samples.add(**place, values=values, timestamps_unix_nano=times, attribute_indices=attributes)
            profile.samples.add(**place, values=[1 << 60], attribute_indices=[0, *attributes])
        profile.samples.add(**place, values=[1 << 60] * 3, timestamps_unix_nano=[1, 1 << 61, 7])
        profile.samples.add(**place, values=[-1], timestamps_unix_nano=[10**18])
    return Recording([profiles], [message])


def test_no_answer_fails_over_hostile_telemetry() -> None:
    """Each page's data come, or an error says why; none is large, and none is a defect of the viewer."""
    trace = f"trace={TRACE.hex()}"
    asked = [
        *(f"/api/traces/{TRACE.hex()}{rest}" for rest in ("", "/lanes", "/spans/0000000000000001")),
        *(f"/api/{name}" for name in ("traces?q=x", "operations", "queries", "queries/1", f"holders?{trace}")),
        *(f"/api/{name}?{trace}&scope=trace&prune=0" for name in ("stacks", "functions", "markdown")),
        *(f"/api/stacks?{trace}&weight={weight}" for weight in ("elapsed", "task", "cpu")),
        *(f"/api/export?format={form}" for form in ("otlp-json", "pprof", "speedscope", "html")),
        "/api/stacks",
        f"/api/compare?a=trace:{TRACE.hex()}&b=trace:{TRACE.hex()}",
    ]
    sent = hostile()
    with running_viewer(grpc_port=None) as client:
        assert client.otlp("/v1/traces", sent.traces[0].SerializeToString()).status == 200
        assert client.otlp("/v1development/profiles", sent.profiles[0].SerializeToString()).status == 200
        assert client.get("/api/status")["samples"] > 0
        failed = {path: reply.body[:200] for path in asked if (reply := client.page("GET", path)).status >= 500}
        assert failed == {}
        assert len(client.page("GET", asked[2]).body) < 1_000_000
        attributes = client.get(asked[2])["attributes"]
        assert attributes["big"].startswith("xxx")
        assert attributes["big"].endswith(" more characters")
