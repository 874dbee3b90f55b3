"""The C tests of the guarded copy, the signal handling, the Linux calls and the clock, each built in several ways."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from native.base_sources import ROOT, SOURCES, STRICT

pytestmark = pytest.mark.without_python

SANITIZE = ["-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
PORTABLE = "-DSAFE_COPY_FORCE_PORTABLE"
# ASan's longjmp takes milliseconds, and the portable copy is exempt from it anyway: UBSan only.
BUILDS = {
    "plain": ["-O2"],
    "unoptimised": ["-O0"],
    "sanitized": ["-O1", "-fsanitize=address,undefined", *SANITIZE],
    "portable": ["-O2", PORTABLE],
    "portable-sanitized": ["-O1", "-fsanitize=undefined", *SANITIZE, PORTABLE],
}
TESTS = ["test_safe_copy", "test_signals", "test_signals_chain", "test_signals_reader", "test_os"]
LIMIT_SECONDS = 120


def build(compiler: str, test: str, flags: list[str], folder: Path) -> Path:
    """Compiles one C test with the sources it tests."""
    program = folder / test
    command: list[str | Path] = [
        compiler,
        *STRICT,
        *flags,
        *SOURCES,
        ROOT / "tests" / "native" / f"{test}.c",
        "-o",
        program,
    ]
    compiled = subprocess.run(command, check=False, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    return program


def run(*command: str | Path) -> None:
    """Runs a C test, with the signals left to it by the sanitizers, and wants its closing line."""
    environment = os.environ | {
        "ASAN_OPTIONS": "handle_segv=0:handle_sigbus=0",
        "UBSAN_OPTIONS": "handle_segv=0:handle_sigbus=0",
    }
    ended = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=LIMIT_SECONDS)
    assert (ended.returncode, ended.stdout) == (0, "passed\n"), ended.stderr


@pytest.mark.parametrize("flags", BUILDS.values(), ids=BUILDS.keys())
@pytest.mark.parametrize("test", TESTS)
def test_the_c_test_passes_on_this_machine(test: str, flags: list[str], tmp_path: Path) -> None:
    """Every C test passes in every build, without a compiler warning or a sanitizer report."""
    run(build("gcc", test, flags, tmp_path))


# test_signals_chain is not among them: hundreds of crashing children are more than qemu-user bears every time.
@pytest.mark.parametrize("test", ["test_safe_copy", "test_signals"])
def test_the_c_test_passes_on_64_bit_arm(test: str, tmp_path: Path) -> None:
    """The aarch64 copy is assembled by a cross compiler and its faults are taken under qemu-user."""
    compiler, emulator = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if platform.machine() == "aarch64":
        pytest.skip("this machine is aarch64: the native builds test that copy")
    if compiler is None or emulator is None:
        pytest.skip("aarch64-linux-gnu-gcc or qemu-aarch64 is not installed (Debian: gcc-aarch64-linux-gnu, qemu-user)")
    program = build(compiler, test, ["-O2", "-static"], tmp_path)
    run(emulator, program, "no-syscall")


def test_the_extension_needs_no_static_thread_local_storage(tmp_path: Path) -> None:
    """The library can be loaded at any time: no initial-exec storage, whose room may be taken by others."""
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("the portable copy keeps one pointer there")
    library = tmp_path / "base.so"
    subprocess.run(
        ["gcc", *STRICT, "-O2", "-fPIC", "-shared", "-fvisibility=hidden", *SOURCES, "-o", library], check=True
    )
    headers = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True, check=True).stdout
    assert "LOAD" in headers
    assert "TLS" not in headers
    relocations = subprocess.run(["readelf", "-rW", library], capture_output=True, text=True, check=True).stdout
    assert "safe_copy_guarded" not in relocations
