"""The running score: exact, never worse with more samples, and advice that helps."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Recording, Run, Signals
from dynid.errors import InvalidShape, InvalidValue, MissingArgument, NotFinite, UnknownName
from dynid.excitation.live import LiveExcitation
from dynid.excitation.replay import replay
from dynid.export.urdf import write_urdf
from dynid.identification.loads import state
from dynid.identification.observation import fold
from dynid.identification.observing import observe_motions
from dynid.signals.settings import prepare
from tests.support import commands
from tests.support.errors import expect_error
from tests.support.humanoids import EXACT, dance, humanoid, standing

Array = NDArray[np.float64]


def triangle(rows: Array) -> Array:
    """Factor with a positive diagonal, as the running one has."""
    R = fold(np.asfortranarray(rows))
    return R * np.where(np.diag(R) < 0, -1.0, 1.0)[:, None]


def test_factor_is_that_of_the_batch_observation() -> None:
    """A 30-joint humanoid: one sample at a time, a few, and all, against the folded recording."""
    robot = humanoid(0)
    moved = dance(robot, samples=300)
    seen = dynid.identification.observe(robot, standing(robot, moved, {}), signals=EXACT, channels="wrench")
    live = LiveExcitation(robot, channels="wrench", base=None)
    run = prepare(standing(robot, moved, {}).runs[0], EXACT)
    q, v, a = state(robot, run)
    for k in range(40):
        live.update(moved.t[k], q[k], v[k], a[k])
    live.update(moved.t[40:100], q[40:100], v[40:100], a[40:100])
    live.update(moved.t[100:], q[100:], v[100:], a[100:])
    batch = triangle(np.vstack([f[:, :-1] / s for f, s in zip(seen.factors, live.noise, strict=True)]))
    np.testing.assert_allclose(live.factor, batch, atol=1e-10 * np.abs(batch).max())
    assert live.samples == 300 and live.score().count == seen.base.count


@pytest.mark.parametrize(("method", "reach"), [("central", 1), ("central5", 2), ("savgol", 4)])
def test_samples_alone_are_differentiated_as_whole_runs_are(method: str, reach: int) -> None:
    """Joints and a base that turns round; the first and last samples are those that windows need."""
    robot = humanoid(1, limbs="LA")
    moved = dance(robot, samples=200, period=4.0)
    signs = np.where(np.arange(200) % 7 < 3, -1.0, 1.0)
    q = moved.q.copy()
    q[:, 3:7] *= signs[:, None]
    live = LiveExcitation(robot, derivative=method)
    for t, x in zip(moved.t, q, strict=True):
        live.update(t, x)
    settings = Signals(cutoff=None, derivative=method, trim=0.0, resample=None, decimate=())
    run = prepare(Run(moved.t, moved.q[:, 7:], base=moved.q[:, :7]), settings)
    inside = slice(2 * reach, 200 - 2 * reach)
    W = live.base.regressor(*(x[inside] for x in state(robot, run))) / live.noise[:, None]
    batch = triangle(W.reshape(-1, live.base.count))
    np.testing.assert_allclose(live.factor, batch, atol=1e-10 * np.abs(batch).max())
    assert live.samples == 200 - 4 * reach and live.time == pytest.approx(moved.t[-1 - 2 * reach])


def test_more_samples_never_know_less_and_the_score_is_bayes() -> None:
    """What is left of each uncertainty falls; it is the posterior deviation of a prior as large as each parameter."""
    robot = humanoid(2, limbs="HA")
    moved = dance(robot, samples=200)
    live = LiveExcitation(robot, noise=0.5, target=0.2)
    assert live.score().known == 0 and live.score().progress == 0.0
    last = np.full(live.base.count, 100.0)
    for part in np.array_split(np.arange(200), 8):
        live.update(moved.t[part], moved.q[part], moved.v[part], moved.a[part])
        now = live.score()
        assert np.all(now.relative_std <= last + 1e-7)
        last = now.relative_std
    W = live.base.regressor(moved.q, moved.v, moved.a).reshape(-1, live.base.count) / 0.5
    posterior = np.linalg.inv(W.T @ W + np.diag(live.sizes**-2.0))
    np.testing.assert_allclose(now.relative_std, 100 * np.sqrt(np.diag(posterior)) / live.sizes, rtol=1e-6)
    assert now.known == np.count_nonzero(now.relative_std <= 20) and sum(s.known for s in now.segments) == now.known
    assert sum(s.count for s in now.segments) == live.base.count


@pytest.mark.slow
def test_following_the_advice_shows_the_segment_about_as_well_as_the_best_joint() -> None:
    """After moving all but one arm, that arm is asked for; its joint is near the best, far above the median."""
    human = dynid.human.human_model("male", 1.8, 80.0)
    moved = dance(human, samples=300)
    joints = moved.q.copy(), moved.v.copy(), moved.a.copy()
    arm = [i for i, c in enumerate(human.coordinates) if c.startswith(("left_shoulder", "left_elbow", "left_wrist"))]
    for x, first in zip(joints, (7, 6, 6), strict=True):
        x[:, first + np.array(arm)] = 0.0
        if first == 6:
            x[:, :6] = 0.0
    joints[0][:, :7] = [0, 0, 0, 0, 0, 0, 1]
    live = LiveExcitation(human)
    live.update(moved.t, *joints)
    advice = live.score().advice
    assert advice.segment in ("left_hand", "left_forearm", "left_upper_arm")
    assert advice.joint is not None and advice.joint.startswith("left_") and advice.joint in str(advice)
    before = {s.name: s.relative_std for s in live.score().segments}[advice.segment]
    t = np.arange(1, 101) * 0.01
    after = {}
    for name in human.coordinates:
        more = LiveExcitation(human, base=None)
        more._factor = live.factor
        q = np.tile(joints[0][-1], (100, 1))
        v, a = np.zeros((2, 100, human.nv))
        i = human.coordinates.index(name)
        q[:, 7 + i] += 0.4 * np.sin(2 * np.pi * t)
        v[:, 6 + i] = 0.4 * 2 * np.pi * np.cos(2 * np.pi * t)
        a[:, 6 + i] = -0.4 * (2 * np.pi) ** 2 * np.sin(2 * np.pi * t)
        more.update(t, q, v, a)
        after[name] = before - {s.name: s.relative_std for s in more.score().segments}[advice.segment]
    assert after[advice.joint] > 0
    carrying = [n for n in after if after[n] >= 0.5 * max(after.values())]
    assert advice.joint in carrying and after[advice.joint] > 3 * np.median(list(after.values()))


def test_a_replayed_recording_ends_where_the_batch_does() -> None:
    """Runs one after another, in steps; the clock goes on."""
    robot = humanoid(2, base="instrumented", limbs="HA")
    moved = dance(robot, samples=300, period=3.0)
    run = Run(moved.t, moved.q)
    live = LiveExcitation(robot)
    steps = list(replay(live, Recording(robot.coordinates, (run, run)), signals=EXACT, every=1.0))
    assert len(steps) == 6 and live.samples == 600
    assert all(b.progress >= a.progress and b.time > a.time for a, b in pairwise(steps))
    motions = [prepare(Run(moved.t, moved.q, wrench=np.zeros((300, 6))), EXACT)] * 2
    seen = observe_motions(live.base, motions, EXACT)
    batch = triangle(np.vstack([f[:, :-1] / s for f, s in zip(seen.factors, live.noise, strict=True)]))
    np.testing.assert_allclose(live.factor, batch, atol=1e-10 * np.abs(batch).max())
    # Shorter than a row: one score per row, whatever number of scores the time asks for.
    short = replay(LiveExcitation(robot), Recording(robot.coordinates, (run.rows(0, 40),)), signals=EXACT, every=1e-15)
    assert len(list(short)) <= 40


def test_a_gap_is_not_differentiated_over_and_bad_samples_are_refused() -> None:
    """Windows begin anew after a pause; clocks that run back, wrong widths and half a state are named."""
    robot = dynid.load_robot("box2", base="instrumented")
    t = np.arange(40) * 0.01
    t[20:] += 5.0
    q = np.column_stack([np.sin(t), np.cos(t)])
    live = LiveExcitation(robot, derivative="central")
    live.update(t, q)
    assert live.samples == 2 * (20 - 4)
    with expect_error(InvalidValue):
        live.update(1.0, q[0])
    with expect_error(InvalidShape):
        live.update(9.0, [1.0, 2.0, 3.0])
    with expect_error(MissingArgument):
        live.update(9.0, q[0], v=[0.0, 0.0])
    with expect_error(NotFinite):
        live.update(9.0, [np.nan, 0.0])
    with expect_error(InvalidValue, "target"):
        LiveExcitation(robot, target=2.0)
    with expect_error(UnknownName, "derivative"):
        LiveExcitation(robot, derivative="fourier")


def test_command_replays_a_log(tmp_path: Path) -> None:
    """A person's motion with its base: lines on the way, the last state as JSON."""
    human = dynid.human.human_model("female", 1.7, 60.0)
    moved = dance(human, samples=400, period=4.0)
    write_urdf(human, tmp_path / "human.urdf")
    run = Run(moved.t, moved.q[:, 7:], base=moved.q[:, :7])
    Recording(human.coordinates, (run,)).to_csv(tmp_path / "motion.csv")
    command = ("live", "human.urdf", "motion.csv", "--json", "--every", "1")
    done = commands.dynid(*command, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sum("next: move" in line for line in done.stderr.splitlines()) == 4
    found = json.loads(done.stdout)
    assert found["count"] == 141 and 0 < found["progress"] < 1 and found["samples"] > 300
    assert found["advice"]["segment"] in found["segments"]
    wrong = commands.dynid(*command, "--base", "flying", folder=tmp_path)
    assert wrong.returncode != 0 and "--base 'flying' is unknown" in wrong.stderr
