"""Rows folded on a device of PyTorch give the factors that the kernels give."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import DynidError, NotApplicable, UnknownName
from dynid.identification import row_stream
from dynid.identification.observation import Observation
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from, identify
from dynid.identification.row_stream import Folding
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.elements import ForceElement
from dynid.signals.settings import Motion, Signals, prepare
from tests.support.errors import expect_error
from tests.support.partitions import runs, write_data_set
from tests.support.random_robots import random_robot
from tests.support.structured_robots import structured_robot
from tests.support.synthetic import arm, motion

SIGNALS = Signals(cutoff=20.0, min_velocity=0.2, stops=False)


@pytest.fixture
def device() -> str:
    pytest.importorskip("torch", reason="torch is not installed (it comes with the gpu extra)")
    return "cpu"


def same(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> None:
    """R'R agrees to rounding, relative to the norms of the columns; columns that are rounding count as zero."""
    for a, b in zip(ours, theirs, strict=True):
        size = np.linalg.norm(b, axis=0)
        size = np.where(size > 1e-7 * max(size.max(), 1e-300), size, np.inf)
        np.testing.assert_allclose((a / size).T @ (a / size), (b / size).T @ (b / size), atol=1e-12)


def motions(robot: dynid.Robot, settings: Signals, count: int = 2) -> list[Motion]:
    out = []
    for seed in range(count):
        t, q, *_ = motion(robot, seed, 3000 + 500 * seed, 10.0)
        torque = np.random.default_rng(seed).normal(size=q.shape)
        out.append(prepare(Run(t, q, torque=torque), settings))
    return out


def both(base: BaseParameters, settings: Signals, some: Sequence[Motion], device: str) -> tuple[Folding, Folding]:
    """The runs folded by the kernels and on a device, in three parts of the time."""
    out = Folding(base, settings, parts=3), Folding(base, settings, parts=3, device=device)
    for one in out:
        for k, each in enumerate(some):
            one.add(each, k / len(some), 1 / len(some))
    return out


ROBOTS = {
    "serial arm": lambda: dynid.load_robot("tx40", friction="viscous+coulomb+offset"),
    "branched, every drive term": lambda: random_robot(0, 6, drives=True),
    "branched, mimic joints": lambda: random_robot(2, 6, drives=True, mimics=2),
    "mimic joint beyond its leader": lambda: random_robot(5, 3, parents=(0, 1, 2), kinds="rrp", mimics=1),
    "prismatic axes": lambda: random_robot(1, 4, kinds="prpp", rotors=True),
    "right angles, motor side": lambda: structured_robot(3, 5, "fixed"),
    "smooth friction": lambda: random_robot(4, 3, drives=True).with_smooth_coulomb(20.0),
}


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("factors", [(), (5,), (4, 3)], ids=str)
def test_factors_are_those_of_the_kernels(name: str, factors: tuple[int, ...], device: str) -> None:
    robot, settings = ROBOTS[name](), replace(SIGNALS, decimate=factors)
    theirs, ours = both(base_parameters(robot), settings, motions(robot, settings), device)
    assert ours.rows == theirs.rows and min(ours.rows) > 0 and len(set(ours.rows)) > 1
    for a, b in zip(ours.factors(), theirs.factors(), strict=True):
        same(a, b)


def test_segments_are_those_of_the_kernels(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """Decimation filters segments with margins, which change the rows near their ends."""
    monkeypatch.setattr(row_stream, "_DECIMATED_BLOCK", 100)
    monkeypatch.setattr(row_stream, "_CHUNK", 500)
    monkeypatch.setattr(row_stream, "_NUMBERS", 1)
    robot = arm()
    for factors in ((), (5,)):
        settings = replace(SIGNALS, decimate=factors)
        theirs, ours = both(base_parameters(robot), settings, motions(robot, settings), device)
        assert ours.rows == theirs.rows
        for a, b in zip(ours.factors(), theirs.factors(), strict=True):
            same(a, b)


def test_rows_at_stops_and_of_joints_at_rest_are_left_out(device: str) -> None:
    robot = arm()
    some = motions(robot, SIGNALS)
    stopped = np.zeros(some[0].q.shape, dtype=bool)
    stopped[100:300, 0] = True
    still = [replace(m, q=np.hstack([m.q[:, :-1], 0 * m.q[:, -1:]]), v=m.v * (np.arange(robot.n) < robot.n - 1))
             for m in (replace(some[0], stopped=stopped), some[1])]  # fmt: skip
    theirs, ours = both(base_parameters(robot), SIGNALS, still, device)
    assert ours.rows == theirs.rows and ours.rows[-1] == 0 < ours.rows[0]
    for a, b in zip(ours.factors(), theirs.factors(), strict=True):
        assert [len(f) for f in a] == [len(f) for f in b]
        same(a, b)


def recorded(robot: dynid.Robot, samples: int = 2000) -> Recording:
    return Recording(robot.coordinates, tuple(runs(robot, 2, samples)))


@pytest.mark.parametrize("large", [False, True])
def test_an_observation_is_the_same_to_rounding(large: bool, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """Factors, blocks of time, the rows that are streamed again, and the estimate with its standard deviations."""
    if large:
        monkeypatch.setattr(row_stream, "_KEEP_BYTES", 0)
    robot = arm()
    recording = recorded(robot)
    theirs, ours = (observe(robot, recording, signals=SIGNALS, device=x) for x in (None, device))
    assert (theirs.device, ours.device) == (None, device) and ours.rows == theirs.rows
    same(ours.factors, theirs.factors)
    assert len(ours.time_blocks) == len(theirs.time_blocks) == (row_stream.BLOCKS if large else 0)
    for a, b in zip(ours.time_blocks, theirs.time_blocks, strict=True):
        same(a, b)
    expected = estimate_from(theirs, "irls" if large else "wls")
    found = estimate_from(ours, expected.method)
    np.testing.assert_allclose(found.beta, expected.beta, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.std, expected.std, rtol=1e-6)


def test_auto_chooses_the_same(device: str) -> None:
    robot = arm()
    theirs, ours = (identify(robot.with_drives(), recorded(robot), device=x) for x in (None, device))
    found, expected = ([(c.what, c.option, c.chosen) for c in one.choices] for one in (ours, theirs))
    assert found == expected
    # The cone program stops at its own tolerance.
    np.testing.assert_allclose(ours.beta, theirs.beta, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["wls", "feasible", "auto"])
def test_a_data_set_gives_the_same_estimate(method: str, tmp_path: Path, device: str) -> None:
    robot = arm()
    dataset = write_data_set(robot, tmp_path, runs(robot, 6))
    theirs, ours = (identify(robot, dataset, method, device=x) for x in (None, device))
    assert ours.rows == theirs.rows and ours.notes == theirs.notes
    # The cone program stops at its own tolerance.
    np.testing.assert_allclose(ours.beta, theirs.beta, rtol=1e-9 if method == "wls" else 1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.std, theirs.std, rtol=1e-3)


def test_a_data_set_is_folded_partition_by_partition(tmp_path: Path, device: str) -> None:
    robot = arm()
    dataset = write_data_set(robot, tmp_path, runs(robot, 3, 2000))
    theirs, ours = (observe(robot, dataset, signals=SIGNALS, device=x) for x in (None, device))
    assert ours.device == device and ours.rows == theirs.rows
    same(ours.factors, theirs.factors)
    for a, b in zip(ours.time_blocks, theirs.time_blocks, strict=True):
        same(a, b)


def test_values_that_are_not_finite_are_refused(device: str) -> None:
    robot = arm()
    bad = motions(robot, SIGNALS, 1)[0]
    bad.a[7, 1] = np.nan
    with pytest.raises(dynid.DataError, match="not finite, first at sample 7, column 1"):
        Folding(base_parameters(robot), SIGNALS, device=device).add(bad)


def no_work(*_: Any, **__: Any) -> Any:
    raise AssertionError("work was begun")


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any filtering of a run fails the test."""
    monkeypatch.setattr("dynid.identification.observing.prepare", no_work)
    monkeypatch.setattr("dynid.identification.observing.base_parameters", no_work)


def with_spring() -> dynid.Robot:
    robot = arm()
    links = robot.links[0].name, robot.links[-1].name
    return robot.with_elements(ForceElement("coil", links, ((0.0, 0.0, 1.0), (0.1, 0.0, 0.0)), stiffness=100.0))


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(
    ("robot", "message"),
    [
        (lambda: arm().with_base("floating"), "a base that is floating, which device= does not support"),
        (lambda: arm().with_base("instrumented"), "a base that is instrumented"),
        (with_spring, "the custom drive term"),
        (lambda: dynid.load_robot("fourbar"), "closed loops"),
    ],
)
def test_robots_that_are_not_supported_are_refused_before_any_work(robot: Any, message: str) -> None:
    """Without PyTorch as well."""
    recording = recorded(arm(), 100)
    for call in (observe, identify):
        with pytest.raises(dynid.DataError, match=message):
            call(robot(), recording, device="cuda")


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("didim", {}, "'didim' simulates or filters; device= is for methods that fit"),
        ("ekf", {}, "device= is for methods that fit"),
        ("irls", {}, "'irls' needs the samples again, which device= does not make"),
        ("gls", {}, "needs the samples again"),
        ("feasible", {"objective": "huber"}, "a robust objective needs the samples again"),
        ("wls", {"client": object()}, "device= folds in this process and client= on the workers"),
    ],
)
def test_methods_that_are_not_supported_are_refused_before_any_work(
    method: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(dynid.DataError, match=message):
        identify(arm(), recorded(arm(), 100), method, device="cuda", **options)


def test_an_observation_is_folded_already() -> None:
    seen: Observation = observe(arm(), recorded(arm()), signals=SIGNALS)
    with expect_error(NotApplicable, "device"):
        identify(arm(), seen, "wls", device="cuda")


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("name", ["abacus", "cuda:x", "", 3])
def test_an_unknown_device_is_refused(name: Any, device: str) -> None:
    with expect_error(UnknownName, "device"):
        observe(arm(), recorded(arm(), 100), device=name)


@pytest.mark.usefixtures("idle")
def test_a_missing_graphics_card_is_said_to_be_missing(device: str) -> None:
    with expect_error(DynidError, "device", "unknown_name"):
        observe(arm(), recorded(arm(), 100), device="cuda:99")


@pytest.mark.usefixtures("idle")
def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with expect_error(DynidError, "device", code="missing_package"):
        observe(arm(), recorded(arm(), 100), device="cuda")


def test_nothing_of_it_is_loaded_where_it_is_not_asked_for() -> None:
    code = "import sys, dynid.identification.pipeline; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_it_loads_from_its_file_without_the_package(device: str) -> None:
    """A computer with a graphics card may have none of what the rest of the package needs."""
    from benchmarks.scale_gpu import MODULE

    code = f"""
import sys, importlib.util
spec = importlib.util.spec_from_file_location("torch_rows", {str(MODULE)!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print([m for m in sys.modules if m.split(".")[0] in ("dynid", "numba", "scipy", "pinocchio")])
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
