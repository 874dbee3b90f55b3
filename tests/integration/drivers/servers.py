"""Servers from the packages of this machine, each started for the tests alone and gone with them."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

START_SECONDS = 60.0
DEBIAN_POSTGRESQL = Path("/usr/lib/postgresql")


def find(program: str) -> str:
    """The path of a program; the test is skipped without it, which CI counts as a failure."""
    candidates = sorted(DEBIAN_POSTGRESQL.glob(f"*/bin/{program}"))
    path = shutil.which(program) or (str(candidates[-1]) if candidates else None)
    if path is None:
        pytest.skip(f"not installed: {program} (Debian: postgresql, redis-server)")
    return path


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder with a short path, as sockets need it, that belongs to the user who runs the server."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="driver-", ignore_cleanup_errors=True) as name:
        if "user" in as_user():
            os.chown(name, as_user()["user"], as_user()["group"])
        yield Path(name)


def as_user() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: then as nobody."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def serving(command: list[str], where: Path, is_ready: Callable[[], bool]) -> Iterator[None]:
    """Runs a server until the end of the block."""
    with (where / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=where, stdout=log, stderr=log, **as_user())
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready():
            ended, late = process.poll() is not None, time.monotonic() > deadline
            assert not ended, (where / "log").read_text()
            assert not late, (where / "log").read_text()
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """The folder of the socket at which a new PostgreSQL answers; user and database postgres, no password."""
    postgres, initdb, psql = find("postgres"), find("initdb"), find("psql")
    with folder() as where:
        options = [
            "--no-sync",
            "--no-instructions",
            "--auth=trust",
            "--username=postgres",
            "--locale=C",
            "--encoding=UTF8",
        ]
        made = subprocess.run(
            [initdb, *options, "--pgdata=data"], cwd=where, capture_output=True, text=True, check=False, **as_user()
        )
        assert made.returncode == 0, made.stderr
        settings = ["fsync=off", "shared_buffers=16MB", "listen_addresses=", f"unix_socket_directories={where}"]
        command = [postgres, "-D", "data", *(part for setting in settings for part in ("-c", setting))]

        def is_ready() -> bool:
            asked = [psql, "-h", str(where), "-U", "postgres", "-c", "SELECT 1"]
            return subprocess.run(asked, capture_output=True, check=False).returncode == 0

        with serving(command, where, is_ready):
            yield str(where)


@contextlib.contextmanager
def redis() -> Iterator[str]:
    """The socket at which a new Redis answers."""
    server = find("redis-server")
    with folder() as where:
        socket = where / "socket"
        command = [
            server,
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--unixsocketperm",
            "777",
            "--save",
            "",
            "--dir",
            ".",
        ]
        with serving([*command, "--enable-debug-command", "yes"], where, socket.is_socket):
            yield str(socket)
