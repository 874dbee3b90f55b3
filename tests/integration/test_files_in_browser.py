"""Files for browsers in a real one: speedscope shows what was recorded, and a report is whole by itself."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path

import pytest
from recordings import ODD, profiles, recording

import otel_asyncprof
from otel_asyncprof.cli import main
from otel_asyncprof.formats.recording import to_recording
from otel_asyncprof.formats.speedscope import to_speedscope

pytestmark = pytest.mark.without_python
SPEEDSCOPE = Path(otel_asyncprof.__file__).with_name("viewer") / "static" / "speedscope" / "index.html"
PATIENCE_SECONDS = 240
QUIET = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
QUIET += ["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"]


class Text(HTMLParser):
    """The texts of a page that are not code."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._is_code = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._is_code = False

    def handle_data(self, data: str) -> None:
        if not self._is_code and data.strip():
            self.found.append(data.strip())


def opened(address: str, folder: Path) -> tuple[list[str], list[str]]:
    """The texts of a page after its scripts have run, and what the browser complained of."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium")
    options = [*QUIET, f"--user-data-dir={folder / 'browser'}", "--virtual-time-budget=20000", "--dump-dom"]
    done = subprocess.run(
        [browser, *options, address], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    page = Text()
    page.feed(done.stdout)
    return page.found, re.findall(r"CONSOLE\S* (\"(?:Refused|Uncaught|Loading|Failed|Content).*)", done.stderr)


def test_speedscope_opens_the_file_and_shows_every_frame_with_its_time(tmp_path: Path) -> None:
    """The tool itself: each state is a profile with its sum, each function a row."""
    content = b64encode(to_speedscope(profiles())).decode()
    script = tmp_path / "profile.js"  # how speedscope's own command hands files over
    script.write_text(f"speedscope.loadFileFromBase64('a.speedscope.json', '{content}')")
    texts, complaints = opened(f"file://{SPEEDSCOPE}#view=sandwich&localProfilePath={script}", tmp_path)
    assert complaints == []
    shown = dict(itertools.pairwise(texts))
    states = {name: shown.get(f"shop 4711: wall{name}") for name in ("", ", blocked", ", running", ", waiting")}
    assert states == {"": "200.00ms", ", blocked": "25.00ms", ", running": "15.00ms", ", waiting": "160.00ms"}
    rows = texts[texts.index("Symbol Name") + 1 :]
    sums = {rows[place + 2]: rows[place] for place in range(0, len(rows) - 2, 3)}
    assert sums == {
        "worker": "80.00ms (40%)",
        "Connection.fetch": "80.00ms (40%)",
        "fetch_lines": "80.00ms (40%)",
        "Shop.handler": "120.00ms (60%)",
        "main": "120.00ms (60%)",
        ODD.name: "25.00ms (13%)",
    }


def test_a_report_draws_itself_without_a_network(tmp_path: Path) -> None:
    """Its own policy makes the browser refuse, and say so, whatever it would load."""
    file, page = tmp_path / "a.jsonl", tmp_path / "a.html"
    file.write_bytes(to_recording(recording()))
    assert main(["report", "-o", str(page), str(file)]) == 0
    texts, complaints = opened(f"file://{page}", tmp_path)
    assert complaints == []
    assert {"GET /orders", "SELECT * FROM lines", "Shop.handler", "fetch_lines"} <= set(texts), texts
