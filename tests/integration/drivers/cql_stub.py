"""A Cassandra node as far as a driver asks: the native protocol, version 4, an empty system, one slow statement."""

from __future__ import annotations

import contextlib
import socketserver
import struct
import threading
import time
import uuid
from collections.abc import Iterator

RESPONSE = 0x84
READY, OPTIONS, SUPPORTED, QUERY, RESULT = 0x02, 0x05, 0x06, 0x07, 0x08
STARTUP, REGISTER, ERROR = 0x01, 0x0B, 0x00
ROWS, INVALID_QUERY = 0x0002, 0x2200
GLOBAL_TABLES_SPEC = 0x0001
VARCHAR, UUID, INET = 0x000D, 0x000C, 0x0010
SLOW_STATEMENT = "SELECT * FROM shop.orders"
SLOW_SECONDS = 0.3

LOCALHOST = bytes([127, 0, 0, 1])
LOCAL = [
    ("key", VARCHAR, b"local"),
    ("cluster_name", VARCHAR, b"stub"),
    ("data_center", VARCHAR, b"one"),
    ("rack", VARCHAR, b"one"),
    ("partitioner", VARCHAR, b"org.apache.cassandra.dht.Murmur3Partitioner"),
    ("release_version", VARCHAR, b"4.1.0"),
    ("rpc_address", INET, LOCALHOST),
    ("broadcast_address", INET, LOCALHOST),
    ("listen_address", INET, LOCALHOST),
    ("host_id", UUID, uuid.UUID(int=1).bytes),
    ("schema_version", UUID, uuid.UUID(int=2).bytes),
]


def string(text: str) -> bytes:
    """[string] of the protocol."""
    return struct.pack(">H", len(text)) + text.encode()


def rows(columns: list[tuple[str, int, bytes]], count: int) -> bytes:
    """A RESULT of rows that all have these values."""
    body = struct.pack(">iii", ROWS, GLOBAL_TABLES_SPEC, len(columns)) + string("system") + string("table")
    for name, kind, _ in columns:
        body += string(name) + struct.pack(">H", kind)
    body += struct.pack(">i", count)
    return body + b"".join(struct.pack(">i", len(value)) + value for _, _, value in columns) * count


def answer_query(statement: str) -> tuple[int, bytes]:
    """What a node of a cluster without others says."""
    if statement == SLOW_STATEMENT:
        time.sleep(SLOW_SECONDS)
        return RESULT, rows([("id", VARCHAR, b"1")], count=1)
    if "system.local" in statement:
        return RESULT, rows(LOCAL, count=1)
    if "system.peers_v2" in statement:
        return ERROR, struct.pack(">i", INVALID_QUERY) + string("unconfigured table peers_v2")
    return RESULT, rows(LOCAL, count=0)


class Connection(socketserver.StreamRequestHandler):
    """Answers one request after the other."""

    def handle(self) -> None:
        """Until the driver goes away."""
        while len(header := self.rfile.read(9)) == 9:
            _, _, stream, opcode, length = struct.unpack(">BBhBi", header)
            kind, body = self.answer(opcode, self.rfile.read(length))
            self.wfile.write(struct.pack(">BBhBi", RESPONSE, 0, stream, kind, len(body)) + body)

    def answer(self, opcode: int, body: bytes) -> tuple[int, bytes]:
        """The opcode and the body of the response."""
        if opcode == OPTIONS:
            options = {"CQL_VERSION": "3.4.5", "COMPRESSION": ""}
            pairs = (string(name) + struct.pack(">H", 1) + string(value) for name, value in options.items())
            return SUPPORTED, struct.pack(">H", len(options)) + b"".join(pairs)
        if opcode == QUERY:
            (length,) = struct.unpack(">i", body[:4])
            return answer_query(body[4 : 4 + length].decode())
        assert opcode in (STARTUP, REGISTER)
        return READY, b""


class Server(socketserver.ThreadingTCPServer):
    """One thread for each connection."""

    daemon_threads = True
    allow_reuse_address = True


@contextlib.contextmanager
def serving() -> Iterator[int]:
    """The port of a node on loopback."""
    with Server(("127.0.0.1", 0), Connection) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()
