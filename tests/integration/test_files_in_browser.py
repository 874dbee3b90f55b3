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
    assert any(text.startswith("1 run, p50 ") for text in texts), texts
    assert not any(re.search(r"\b1 (runs|samples|spans|frames)\b", text) for text in texts), texts


# Notes what each label is written on, as the canvas holds it, and then shows the graph's other colours.
BEFORE = """<script>
const labels = [], fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const { a, d } = this.getTransform();
  const ground = this.getImageData((x - 2) * a, y * d, 1, 1).data;
  labels.push(["label", text, this.fillStyle, ...ground].join("|"));
  fillText.call(this, text, x, y);
};
</script>"""
AFTER = """<script>
query = "fetch"; draw(); query = "";
for (const frame of DATA.frames) frame[3] = true; // all of libraries
draw();
top_ = [...root.children.values()].sort((a, b) => b.children.size - a.children.size)[0]; draw();
for (const button of document.querySelectorAll("#split button")) {
  const { color, backgroundColor } = getComputedStyle(button);
  labels.push(["button", button.textContent, color, backgroundColor].join("|"));
}
document.body.append(...labels.map((text) => make("p", text)));
</script>"""


def luminance(rgb: list[int]) -> float:
    """As WCAG 2 has it."""
    red, green, blue = (part / 3294.6 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: list[int], other: list[int]) -> float:
    """From 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_label_of_a_report_can_be_read_on_its_colour(scheme: str, tmp_path: Path) -> None:
    """At 4.5:1 (WCAG 2, AA): on states, on pale library frames, on what is found and on what is above the zoom."""
    file, page = tmp_path / "a.jsonl", tmp_path / "a.html"
    file.write_bytes(to_recording(recording()))
    assert main(["report", "-o", str(page), str(file)]) == 0
    text = page.read_text().replace("(prefers-color-scheme: dark)", "all" if scheme == "dark" else "not all")
    page.write_text(text.replace("<script>", BEFORE + "<script>", 1).replace("</body>", AFTER + "</body>"))
    texts, complaints = opened(f"file://{page}", tmp_path)
    assert complaints == []
    found = {}
    for kind, name, colour, *ground in (line.split("|") for line in texts if re.match("(label|button)\\|", line)):
        if kind == "label":
            words, on = [int(colour[at : at + 2], 16) for at in (1, 3, 5)], [int(part) for part in ground[:3]]
        else:
            words, on = ([int(part) for part in re.findall(r"\d+", colour)] for colour in (colour, *ground))
        found[kind, name, tuple(on)] = round(contrast(words, on), 2)
    assert len({on for _, _, on in found}) == 9, found
    assert {name for _, name, _ in found} >= {"fetch_lines", "Connection.fetch", "running 8%"}, found
    assert {key: ratio for key, ratio in found.items() if ratio < 4.5} == {}
