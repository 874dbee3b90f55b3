"""What users install: the wheel and the sdist, used from another folder in an environment of their own."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

HAS_HEADERS = pytest.mark.skipif(
    not Path(sysconfig.get_path("include"), "Python.h").exists(),
    reason="this Python came without headers: it gets the wheel that an older one builds",
)
ROOT = Path(__file__).resolve().parents[2]
OLDEST = "3.11"  # the wheel is built here and serves all later versions

BEHAVIOUR = ["tests/behaviour/test_awaiters.py", "tests/behaviour/test_links.py", "tests/unit/test_read_threads.py"]

# Profiles a coroutine that sleeps, and prints the functions of every stack.
PROGRAM = """
import asyncio
from otel_asyncprof.testing import capture

async def sleeper():
    await asyncio.sleep(0.3)

with capture() as profile:
    asyncio.run(sleeper())
for sample in profile.samples:
    print(*sample.functions)
"""
STACK = "<module> sleeper sleep"


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command; its errors are shown when it fails."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT, cwd=folder)
    (made,) = folder.glob("*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist on the oldest supported Python: nothing left over in the tree can get into it."""
    folder = tmp_path_factory.mktemp("wheel")
    python = run(ROOT / ".ci" / "find_pythons", OLDEST, cwd=ROOT).strip()
    run(python, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder, sdist, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


def installed_python(archive: Path, folder: Path, *, with_dependencies: bool) -> Path:
    """An interpreter of the running version in whose environment the archive is installed.

    Its dependencies are installed too, or else found in the running environment.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", *([] if with_dependencies else ["--no-deps"]), archive, cwd=folder)
    if not with_dependencies:
        (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


def test_the_wheel_of_the_oldest_python_profiles_on_this_one(wheel: Path, tmp_path: Path) -> None:
    """One abi3 wheel serves every supported version."""
    assert wheel.name.split("-")[2:4] == ["cp311", "abi3"]
    python = installed_python(wheel, tmp_path, with_dependencies=True)
    assert STACK in run(python, "-c", PROGRAM, cwd=tmp_path).splitlines()
    assert run(python.with_name("otel-asyncprof"), "--version", cwd=tmp_path).startswith("otel-asyncprof ")


def test_the_behaviour_is_that_of_the_wheel_of_the_oldest_python_too(wheel: Path, tmp_path: Path) -> None:
    """Stacks, awaiters and links on this version, with the wheel and without the tree's package in the path."""
    python = installed_python(wheel, tmp_path, with_dependencies=False)
    where = run(python, "-P", "-c", "import otel_asyncprof._native as n; print(n.__file__)", cwd=ROOT)
    assert Path(where.strip()).is_relative_to(tmp_path)
    options = ["-q", "-p", "no:cacheprovider", "-k", "not uvloop and not eager"]
    told = run(python, "-P", "-m", "pytest", *options, *BEHAVIOUR, cwd=ROOT)
    assert re.search(r"^\d+ passed", told, re.MULTILINE), told


def test_one_wheel_is_built_for_each_platform() -> None:
    """By cibuildwheel's own reading of its table, which knows every option; that it tests them by files that exist."""
    command = (sys.executable, "-m", "cibuildwheel", "--print-build-identifiers", "--platform", "linux", ROOT)
    libraries, processors = ("manylinux", "musllinux"), ("x86_64", "aarch64")
    platforms = {f"cp311-{library}_{processor}" for library in libraries for processor in processors}
    assert set(run(*command, cwd=ROOT).split()) == platforms
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]
    tests = re.findall(r"\{project\}/(\S+)", table["test-command"])
    assert tests
    assert [each for each in tests if not (ROOT / each).exists()] == []


@HAS_HEADERS
def test_the_sdist_builds_and_profiles(sdist: Path, tmp_path: Path) -> None:
    """Everything that the build needs is in the sdist."""
    python = installed_python(sdist, tmp_path, with_dependencies=False)
    assert str(tmp_path) in run(python, "-c", "import otel_asyncprof; print(otel_asyncprof.__file__)", cwd=tmp_path)
    assert STACK in run(python, "-c", PROGRAM, cwd=tmp_path).splitlines()


def test_the_sdist_holds_every_source_and_header_of_the_extension(sdist: Path) -> None:
    """Headers are easily forgotten: setuptools packs only the sources by itself."""
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "ext").rglob("*.[ch]")}
    assert sources - packed == set()
    assert {"LICENSE", "README.md"} - packed == set()


def test_the_wheel_holds_every_module_and_no_source_of_the_extension(wheel: Path) -> None:
    """Types, demo and command are shipped; C files and tests are not."""
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if not name.partition("/")[0].endswith(".dist-info")}
    shipped = {
        str(path.relative_to(ROOT)) for path in (ROOT / "otel_asyncprof").rglob("*.py*") if path.suffix != ".pyc"
    }
    static = ROOT / "otel_asyncprof" / "viewer" / "static"
    shipped |= {str(path.relative_to(ROOT)) for path in static.rglob("*") if path.is_file()}
    page = {f"otel_asyncprof/cli/page/page.{suffix}" for suffix in ("css", "html", "js")}
    assert packed == shipped | page | {"otel_asyncprof/py.typed", "otel_asyncprof/_native.abi3.so"}
