"""Traces over HTTP, behind the guard: who gets them, what they hold, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.errors import MissingArgument, MissingFile
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.studio.guard import Guard
from dynid.studio.session import Session
from dynid.studio.traces import Trace
from dynid.studio.traces_marks import marks_of, whole_run_findings
from dynid.studio.traces_routes import add_routes
from dynid.studio.traces_source import LoggedRun, TraceSource, values_at
from dynid.studio.workspace import Workspace
from tests.support.errors import expect_error
from tests.support.gantry import gantry

HOST, TOKEN = "127.0.0.1:8123", "right-token"
VIEW = {"start": 0, "stop": 5, "columns": 100, "joints": "0,1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of two joints and the estimate from it."""
    place = tmp_path_factory.mktemp("traces")
    robot = dynid.load_robot("twolink")
    recording = synthetic_recording(robot, 0, duration=5.0)
    run = recording.runs[0]
    recording = Recording(recording.joints, (replace(run, v=np.gradient(run.q, run.t, axis=0)),))
    recording.to_csv(place / "run.csv")
    dynid.identify(robot, recording, "wls").save(place / "estimate.json")
    return place


@pytest.fixture
def session(folder: Path) -> Session:
    session = Session(Workspace(folder))
    session.choose("twolink")
    return session


@dataclass(frozen=True)
class Client:
    """A browser with or without the cookie of the page."""

    app: FastAPI

    def get(self, path: str, cookie: bool = True, **options: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            cookies = {"dynid_8123": TOKEN} if cookie else {}
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}", cookies=cookies) as client:
                return await client.get(path, **options)

        return asyncio.run(asked())


@pytest.fixture
def client(session: Session) -> Client:
    app = FastAPI()
    add_routes(app, TraceSource(session))
    app.add_middleware(Guard, token=TOKEN, hosts=(HOST,), limit=1000)
    return Client(app)


def unpacked(content: bytes) -> dict[tuple[str, int], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Times, lows and highs by signal and joint."""
    (size,) = struct.unpack("<I", content[:4])
    assert (4 + size) % 8 == 0
    numbers = np.frombuffer(content[4 + size :], "<f8")
    out, at = {}, 0
    for block in json.loads(content[4 : 4 + size])["blocks"]:
        n = block["points"]
        times, at = numbers[at : at + n], at + n
        for signal, joint in block["columns"]:
            out[signal, joint] = times, numbers[at : at + n], numbers[at + n : at + 2 * n]
            at += 2 * n
    assert at == len(numbers)
    return out


def test_only_holders_of_the_token_get_traces(client: Client) -> None:
    address = "/traces/run.csv/window"
    assert client.get(address, params=VIEW).status_code == 200
    assert client.get(address, params=VIEW, headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get(address, cookie=False, params=VIEW).status_code == 403
    assert client.get("/traces/run.csv/about", cookie=False).status_code == 403


def test_a_window_holds_the_extremes_of_the_file(client: Client, session: Session) -> None:
    answer = client.get("/traces/run.csv/window", params=VIEW)
    assert answer.headers["cache-control"] == "no-store" and "content-security-policy" in answer.headers
    found = unpacked(answer.content)
    run = session.recording("run.csv").runs[0]
    assert set(found) == {(s, j) for s in ("q", "v", "torque") for j in (0, 1)}
    assert run.torque is not None
    times, low, high = found["torque", 1]
    assert len(times) == 100 and low.min() == run.torque[:, 1].min() and high.max() == run.torque[:, 1].max()
    one = unpacked(client.get("/traces/run.csv/window", params={**VIEW, "joints": "1"}).content)
    assert {joint for _, joint in one} == {1}


def test_axes_have_units_and_the_prediction_an_axis_for_its_residual(client: Client) -> None:
    about = client.get("/traces/run.csv/about", params={"predicted": True}).json()
    assert about["joints"] == ["joint1", "joint2"] and about["duration"] == pytest.approx(5.0, abs=0.01)
    axes = [(a["label"], a["unit"], a["signals"]) for a in about["axes"]]
    assert axes == [
        ("position", "rad", ["q"]),
        ("velocity", "rad/s", ["v"]),
        ("torque", "N m", ["torque", "predicted"]),
        ("residual", "N m", ["residual"]),
    ]
    found = unpacked(client.get("/traces/run.csv/window", params={**VIEW, "predicted": True}).content)
    for joint in (0, 1):
        times, residual, _ = found["residual", joint]
        measured = np.ptp(found["torque", joint][2])
        assert len(times) > 20 and 0 < times[0] < times[-1] < 5
        assert 0 < np.nanmax(np.abs(residual)) < 0.3 * measured


@pytest.mark.parametrize(
    ("name", "more", "code"),
    [
        ("missing.csv", {}, 400),
        ("..%2Fsecret.csv", {}, 404),
        ("run.csv", {"start": 3, "stop": 3}, 400),
        ("run.csv", {"start": "nan"}, 400),
        ("run.csv", {"stop": "inf"}, 400),
        ("run.csv", {"columns": 0}, 400),
        ("run.csv", {"columns": 10**9}, 400),
        ("run.csv", {"columns": "many"}, 422),
        ("run.csv", {"joints": "0,7"}, 400),
        ("run.csv", {"joints": "0,-1"}, 400),
        ("run.csv", {"joints": "x"}, 400),
        ("run.csv", {"joints": "²"}, 400),
        ("run.csv", {"run": 1}, 400),
        ("run.csv", {"run": -1}, 400),
    ],
)
def test_bad_requests_are_told_in_a_sentence(client: Client, name: str, more: dict[str, Any], code: int) -> None:
    answer = client.get(f"/traces/{name}/window", params={**VIEW, **more})
    assert answer.status_code == code and "Traceback" not in answer.text


def test_without_robot_or_estimate_there_is_a_reason(tmp_path: Path, session: Session) -> None:
    session.recording("run.csv").to_csv(tmp_path / "run.csv")
    other = Session(Workspace(tmp_path))
    with expect_error(MissingArgument):
        TraceSource(other).run("run.csv")
    other.choose("twolink")
    with expect_error(MissingFile, "name"):
        TraceSource(other).prediction("run.csv")
    session.choose("tx40")
    with pytest.raises(dynid.DataError):
        TraceSource(session).prediction("run.csv")


def test_a_file_that_changes_is_read_again(tmp_path: Path, session: Session) -> None:
    short = session.recording("run.csv").runs[0].rows(0, 200)
    other = Session(Workspace(tmp_path))
    other.choose("twolink")
    source = TraceSource(other)
    Recording(("joint1", "joint2"), (short,)).to_csv(tmp_path / "run.csv")
    first = source.run("run.csv")
    assert source.run("run.csv") is first
    Recording(("joint1", "joint2"), (short.rows(0, 100),)).to_csv(tmp_path / "run.csv")
    os.utime(tmp_path / "run.csv", ns=(10**18, 10**18))
    assert len(source.run("run.csv").run) == 100
    before = source.run("run.csv")
    other.choose("twolink", "none")
    assert source.run("run.csv") is not before  # another robot may read other columns


def test_joints_of_another_unit_have_axes_of_their_own() -> None:
    robot = gantry()
    t = np.arange(0.0, 1.0, 0.01)
    q = np.tile(t[:, None], (1, robot.n))
    traces = {"q": Trace(t, q), "torque": Trace(t, q)}
    logged = LoggedRun(robot, Run(t, q, torque=q), ("run",), tuple(robot.coordinates), traces)
    kinds = {j.name: j.kind for j in robot.joints}
    for axis in logged.axes(False):
        linear = {kinds[robot.coordinates[j]] == "prismatic" for j in axis["joints"]}
        assert len(linear) == 1
        expected = {"position": ("rad", "m"), "torque": ("N m", "N m"), "force": ("N", "N")}[axis["label"]]
        assert axis["unit"] == expected[linear.pop()]


def test_findings_are_marked_where_they_apply(session: Session) -> None:
    """Time of a gap on all axes, spikes on the torque of their joint, and sentences for the rest."""
    logged = TraceSource(session).run("run.csv")
    common = {"severity": "warning", "run": logged.run.name, "what": "Something.", "how_much": "1 sample"}
    found = [
        {**common, "code": "samples_missing", "joint": "", "rows": [[10, 12]]},
        {**common, "code": "torque_spikes", "joint": "joint2", "rows": [[20, 21], [30, 31]]},
        {**common, "code": "torque_sign", "joint": "joint1", "rows": []},
        {**common, "code": "torque_spikes", "joint": "joint2", "rows": [[1, 2]], "run": "another"},
    ]
    gap, spikes = marks_of(logged, found)
    t = logged.run.t - logged.run.t[0]
    assert (gap["signal"], gap["joint"], gap["intervals"]) == ("", -1, [(t[10], t[11])])
    assert (spikes["signal"], spikes["joint"]) == ("torque", 1)
    assert spikes["intervals"] == [(t[20], t[20]), (t[30], t[30])] and "torque spikes of joint2" in spikes["label"]
    assert whole_run_findings(found) == ["warning: joint1: Something. 1 sample"]


def test_values_at_the_cursor_are_those_of_the_file(session: Session) -> None:
    source = TraceSource(session)
    logged, model = source.run("run.csv"), source.prediction("run.csv")
    heads, first, _ = values_at(logged, model, 2.5)
    assert heads == [
        "joint",
        "position, rad",
        "velocity, rad/s",
        "torque, N m",
        "predicted, N m",
        "filtered residual, N m",
    ]
    row = logged.traces["q"].row(2.5)
    assert first[:2] == ["joint1", f"{logged.run.q[row, 0]:.4g}"]
    assert values_at(logged, model, 0.0)[1][4:] == ["-", "-"]  # the ends of a run give no rows
    assert len(values_at(logged, None, 0.0)[0]) == 4
    np.testing.assert_array_equal(logged.pose(2.5), logged.run.q[row])
