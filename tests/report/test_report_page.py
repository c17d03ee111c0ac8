"""The report: one file, well formed, small, and in the order that a reader needs."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

import dynid
from dynid.cli.demo import Demo, run_demo
from dynid.identification.bodies import total_mass
from dynid.report.charts import Chart, interval, ticks
from dynid.report.section_bodies import ellipsoid
from dynid.report.thinning import thinned
from tests.support import commands

VOID = {"meta", "link", "br", "hr", "img", "input", "path", "circle", "rect"}


class Page(HTMLParser):
    """Elements of a page, and what is wrong with how they are nested."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given[k] or "" for k in ("href", "src") if k in given]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def demo() -> Demo:
    return run_demo()


@pytest.fixture(scope="module")
def page(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert demo.report(path).verdict == "trusted"
    return path.read_text(encoding="utf-8")


def test_page_is_well_formed(page: str) -> None:
    """Every element is closed in its turn, no id is used twice, and links within the page lead somewhere."""
    found = Page(page)
    assert not found.wrong and not found.open
    assert len(set(found.ids)) == len(found.ids)
    assert {x[1:] for x in found.links if x.startswith("#")} <= set(found.ids)


def test_page_asks_for_nothing_outside_itself(page: str) -> None:
    """It opens without a network: no address but the names of formats, no script or picture of its own files."""
    assert all(x.startswith(("#", "data:")) for x in Page(page).links)
    addresses = set(re.findall(r"https?://[^\"'\s<>)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in page and "url(" not in page and "fetch(" not in page


def test_page_has_light_dark_and_paper(page: str) -> None:
    """Both colour schemes, a switch between them, and rules for print."""
    assert "prefers-color-scheme: dark" in page and 'data-theme="dark"' in page
    assert "@media print" in page and 'class="theme"' in page


def test_sections_stand_in_the_order_of_a_reader(page: str) -> None:
    """Verdict and its reasons, torques, motion, parameters, what is open, residuals, bodies, and the record last."""
    keys = ["checks", "torques", "simulation", "parameters", "uncertain", "residuals", "tests", "bodies", "friction"]
    keys += ["motion", "methods", "data", "settings"]
    assert re.findall(r'<section id="(\w+)"', page) == keys
    assert page.index('class="verdict trusted"') < page.index('class="figures-key"') < page.index("<section")
    assert page.count("data-chart=") == 3 * 6 and "dynid demo" in page


def test_every_axis_has_a_unit(page: str) -> None:
    """A label says in which unit, or that there is none."""
    labels = {html.unescape(x) for x in re.findall(r'<text class="axis"[^>]*>([^<]+)</text>', page)}
    plain = {"combination of parameters, strongest first"}
    assert {x for x in labels if " in " not in x and "no unit" not in x} <= plain
    assert {"torque in N m", "residual in N m", "time in s", "velocity in rad/s", "position error in m"} <= labels


def test_every_figure_has_its_data(page: str) -> None:
    """A table to download without a script: labels with units, then numbers; names of files differ."""
    files = re.findall(r'<a class="data" download="([^"]+)" href="data:text/csv;charset=utf-8,([^"]+)"', page)
    assert len(files) == page.count("<figure>") == len({name for name, _ in files})
    tables = {name: list(csv.reader(io.StringIO(unquote(html.unescape(text))))) for name, text in files}
    table = tables["torque-of-joint1-measured-and-predicted.csv"]
    assert table[0] == ["time in s", "measured: torque in N m", "predicted: torque in N m", "residual: residual in N m"]
    numbers = np.array(table[1:], dtype=float)
    # Five digits of torques up to 20 N m.
    assert len(numbers) > 300 and np.allclose(numbers[:, 1] - numbers[:, 2], numbers[:, 3], atol=2e-3)
    assert all(len(t) > 2 and len(t[0]) >= 2 for t in tables.values())


def test_legend_switches_series(page: str) -> None:
    """Every entry of a legend is a switch, and the style sheet has a rule for it."""
    kinds = set(re.findall(r'<label><input type="checkbox" value="(\w+)" checked>', page))
    assert {"measured", "predicted", "error", "limit", "prior"} <= kinds
    assert all(f'input[value="{kind}"]:not(:checked)' in page for kind in kinds)


def test_bodies_that_are_not_determined_are_outlines(demo: Demo, page: str) -> None:
    scene = json.loads(page.split('<script type="application/json">')[1].split("</script>")[0])
    drawn = {b["n"] for b in scene["bodies"] if b.get("o")}
    assert drawn == {"link1", "link2", "link6"} and all(b["k"] == "after" for b in scene["bodies"] if b.get("o"))
    mass = total_mass(demo.estimate)
    assert f"Total mass {mass.after:.4g} kg, a priori {mass.before:.4g} kg; 60 % of it" in page


def test_sentences_agree_with_tables(demo: Demo, page: str) -> None:
    """One condition number, the same mass in figure, section and check, and counts that the tables have."""
    shown = set(re.findall(r"ondition number ([0-9.]+)\.", page))
    assert shown == {f"{demo.estimate.condition_number:.4g}"}
    address = next(x for x in Page(page).links if "singular%20value" in x)
    table = [row.split(",") for row in unquote(address).splitlines()[1:]]
    # Five digits of each singular value.
    ratio = float(table[0][1]) / float(table[-1][1])
    assert ratio == pytest.approx(demo.estimate.condition_number, rel=2e-4)
    check = demo.assessment.check("unidentified_mass")
    mass = total_mass(demo.estimate)
    assert check.figure == pytest.approx(mass.open_share) and f"{mass.after:.3g} kg" in check.words
    block = page[page.index("61 base parameters by link") :]
    base = block[: block.index("87 standard parameters by link")]
    assert base.count("<tbody>") == base.count("<details>") == 7 and base.count("<tr><td>") == 61
    assert block[: block.index("</section>")].count("<tr><td>") == 61 + 87


def test_report_says_where_it_comes_from(demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Date, hashes of files, versions, and the project file to download."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    log, path = tmp_path / "run.csv", tmp_path / "report.html"
    log.write_text("t,q\n")
    dynid.report.write(demo.estimate, path, files=[log], project='[robot]\nfile = "a<b.urdf"\n')
    text = path.read_text(encoding="utf-8")
    assert "2023-11-14 22:13 UTC" in text and hashlib.sha256(b"t,q\n").hexdigest() in text
    assert 'download="dynid.toml"' in text and "a&lt;b.urdf" in text and "numpy" in text
    assert not Page(text).wrong


def test_names_with_markup_stay_text(demo: Demo, tmp_path: Path) -> None:
    """A joint's name is shown, never run."""
    path = tmp_path / "report.html"
    dynid.report.write(demo.estimate, path, command="<script>alert(1)</script></section>")
    text = path.read_text(encoding="utf-8")
    assert "<script>alert(1)" not in text and "&lt;script&gt;alert(1)" in text
    assert not Page(text).wrong


def test_report_without_recordings_says_what_it_lacks(demo: Demo, tmp_path: Path) -> None:
    """The estimate alone is reported too, and is not trusted."""
    path = tmp_path / "report.html"
    assessment = dynid.report.write(demo.estimate, path)
    assert assessment.verdict == "use with care" and "unseen motion were not given" in assessment.reasons[0]
    assert assessment.check("delay").result == "not checked"
    assert "was not given to the report" in path.read_text(encoding="utf-8")


def test_joints_that_stand_still_have_no_curve(tmp_path: Path) -> None:
    """The report of an arm that moved one of its joints: no row of the others was fitted."""
    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    t = np.arange(0.0, 10.0, 0.005)
    q = np.column_stack([0.8 * np.sin(2.0 * t) + 0.3 * np.sin(5.0 * t), 0.4 + 0.0 * t])
    v, a = (np.gradient(x, t, axis=0) for x in (q, np.gradient(q, t, axis=0)))
    torque = dynid.inverse_dynamics(robot, q, v, a) + 0.01 * np.random.default_rng(0).standard_normal(q.shape)
    recording = dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque),))
    estimate = dynid.identify(robot, recording)
    path = tmp_path / "report.html"
    dynid.report.write(estimate, path, recording=recording)
    text = path.read_text(encoding="utf-8")
    assert "friction of joint1" in text and not Page(text).wrong


@pytest.mark.slow
def test_a_long_recording_of_seven_joints_stays_small(tmp_path: Path) -> None:
    """100,000 samples of seven joints, none decimated away, in less than 3 MB."""
    robot = dynid.load_robot("iiwa14")
    rng = np.random.default_rng(0)
    t = np.arange(100_000) / 1000.0
    q = 0.8 * np.sin(np.outer(t, rng.uniform(0.5, 3.0, 7)) + rng.uniform(0, 6, 7))
    v, a = (np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0))
    torque = dynid.inverse_dynamics(robot, q, v, a) + 0.5 * rng.standard_normal(q.shape)
    recording = dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque, name="long"),))
    raw = dynid.Signals(cutoff=20.0, decimate=())
    estimate = dynid.identify(robot, recording, "wls", signals=raw)
    assert sum(estimate.rows) > 600_000
    path = tmp_path / "long.html"
    dynid.report.write(estimate, path, estimate.validate(recording))
    assert path.stat().st_size < 3_000_000
    assert not Page(path.read_text(encoding="utf-8")).wrong


def test_thinning_keeps_every_peak() -> None:
    """A single sample that sticks out of 100,000 is still there."""
    rng = np.random.default_rng(0)
    t, y = np.arange(100_000) / 1000.0, rng.standard_normal(100_000)
    y[54_321], y[77_777] = 50.0, -60.0
    rows = thinned(t, (y,), 300)
    assert len(rows) <= 2 * 300 + 2 and {0, 54_321, 77_777, 99_999} <= set(rows.tolist())
    assert np.all(np.diff(rows) > 0)
    assert np.array_equal(thinned(t[:50], (y[:50],)), np.arange(50))


def test_charts_draw_what_they_are_given() -> None:
    """Lines, bars and bands are in the picture, ticks are round, and odd values do not break it."""
    assert ticks(0.0, 10.0, 5) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    chart = Chart("t", "y").band([0, 1], [0, 0], [1, 1], "predicted").line([0, 1], [0.0, np.nan], "measured", "m")
    svg = chart.bars([0, 1], [1, 2], 0.5, "residual").dots([0.5], [0.5], "measured").level(0.0, "zero").svg()
    assert svg.count("<path") >= 5 and "nan" not in svg.split("data-chart")[0]
    assert Chart("x", "y").line([1, 1], [2, 2], "measured").svg().endswith("</svg>")
    assert interval(1.0, 2.0, 1.5, 2.5).count("<path") == 3 and interval(None, np.nan, 0, 1) == ""


def test_ellipsoid_has_the_inertia_it_stands_for() -> None:
    """A box-like body comes back from its ellipsoid's axes; impossible bodies have none."""
    tensor = np.diag([0.02, 0.03, 0.04])
    shape = ellipsoid(dynid.inertia.inertia_from_com(2.0, [0.1, 0.2, 0.3], tensor))
    assert shape is not None
    second = 2.0 * shape[1] @ shape[1].T / 5
    assert np.allclose(np.trace(second) * np.eye(3) - second, tensor) and np.allclose(shape[0], [0.1, 0.2, 0.3])
    assert ellipsoid(dynid.inertia.inertia_from_com(2.0, [0, 0, 0], np.diag([0.01, 0.01, 0.05]))) is None


@pytest.mark.slow
def test_command_reports_and_compares(tmp_path: Path) -> None:
    """`identify` leaves report and verdict beside its estimate; `report` makes them again and sets two side by side."""
    from dynid.cli.demo import synthetic_recording

    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    for seed in (0, 1):
        synthetic_recording(robot, seed).to_csv(tmp_path / f"run{seed}.csv")

    def run(*arguments: str) -> str:
        done = commands.dynid(*arguments, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    law = ("--friction", "viscous+coulomb")
    first = ("identify", "twolink", "run0.csv", "--validate", "run1.csv", "--method", "feasible", *law)
    assert "verdict: trusted" in run(*first, "-o", "first.json")
    assert json.loads((tmp_path / "first.verdict.json").read_text())["verdict"] == "trusted"
    assert "Measured and predicted torque" in (tmp_path / "first.report.html").read_text()
    run("identify", "twolink", "run1.csv", "-o", "second.json", "--report", "none", *law)
    assert not (tmp_path / "second.report.html").exists()
    told = run("report", "first.json", "run0.csv", "--validate", "run1.csv", "--json")
    assert json.loads(told)["verdict"] == json.loads((tmp_path / "verdict.json").read_text())["verdict"] == "trusted"
    run("report", "first.json", "--compare", "second.json", "--validate", "run1.csv", "-o", "both.html")
    both = (tmp_path / "both.html").read_text()
    assert both.count('class="verdict') == 2 and not Page(both).wrong and "difference / std" in both
