"""Floating and instrumented bases: torques, base wrench, contacts at named frames, through the same door as arms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation

import dynid
import dynid.recording
import dynid.robot
from dynid import DataError, Estimate, Recording, Robot, Run, Signals
from dynid.errors import NotApplicable
from dynid.identification.observing import observe
from dynid.online import OnlineIdentification
from dynid.recording import WrenchSensor
from dynid.robot.spatial import inverse_placement, placement
from tests.support.errors import expect_error
from tests.support.humanoids import EXACT, dance, humanoid, standing
from tests.support.random_robots import random_inertia, random_robot

PLATE = placement(Rotation.from_euler("xyz", [0.1, -0.2, 0.7]).as_matrix(), [0.3, -0.5, 0.1])
CONTACTS = {
    "footL": WrenchSensor("footL"),
    "plate": WrenchSensor("world", placement=PLATE, link="legR_link6"),
    "wand": WrenchSensor("handL", "world", placement=placement(None, [0.0, 0.0, -0.3])),
    "belt": WrenchSensor("trunk_link2", "base"),
    "hook": WrenchSensor("base", placement=placement(None, [0.1, 0.0, 0.2])),
}


@pytest.fixture(scope="module")
def stood() -> tuple[Robot, Recording]:
    """A humanoid of thirty joints in motion, held by five contacts at once."""
    robot = humanoid(0)
    return robot, standing(robot, dance(robot), CONTACTS)


def test_wrench_and_torque_identification_agree(stood: tuple[Robot, Recording]) -> None:
    """Without noise both find the truth, and the same values of every combination that both can show."""
    robot, recording = stood
    by = {c: dynid.identify(robot, recording, "ols", signals=EXACT, channels=c) for c in ("torque", "wrench", "all")}
    assert [by[c].beta.size for c in by] == [210, 220, 220]
    for estimate in by.values():
        np.testing.assert_allclose(estimate.beta, estimate.base.values(), atol=1e-8)
    torque, wrench = by["torque"], by["wrench"]
    # Rows that are combinations of both: A K_torque = B K_wrench.
    mixed = null_space(np.vstack([torque.base.matrix, -wrench.base.matrix]).T).T
    shared = np.split(mixed, [torque.beta.size], axis=1)
    assert len(mixed) == 210
    np.testing.assert_allclose(shared[0] @ torque.beta, shared[1] @ wrench.beta, atol=1e-8)


def test_drives_are_seen_by_torques_alone() -> None:
    """Friction and rotors act between bodies of the robot: the wrench knows nothing of them, and is not disturbed."""
    robot = humanoid(1, limbs="LR")
    terms = [robot.joint_term(i, s, x) for i in range(robot.n) for s, x in (("fv", 2.0), ("fc", 3.0), ("Ia", 0.3))]
    robot = robot.with_terms(*terms)
    recording = standing(robot, dance(robot), {"footR": WrenchSensor("footR")})
    wrench = dynid.identify(robot, recording, "ols", signals=EXACT, channels="wrench")
    assert wrench.beta.size == 94
    assert all(wrench.base.classes[t.name] == "unidentifiable" for t in terms)
    both = dynid.identify(robot, recording, "ols", signals=EXACT)
    assert both.base.channels == robot.channels and both.beta.size == 94 + 36
    for estimate in (wrench, both):
        np.testing.assert_allclose(estimate.beta, estimate.base.values(), atol=1e-8)


@pytest.mark.slow
def test_every_contact_counts(stood: tuple[Robot, Recording]) -> None:
    """Without one of them, or with one in the wrong axes, the fit falls apart."""
    robot, recording = stood
    run = recording.runs[0]
    good = dynid.identify(robot, recording, "ols", signals=EXACT, channels="wrench").relative_error.max()
    for name in CONTACTS:
        less = {k: w for k, w in run.wrenches.items() if k != name}
        sensors = {k: s for k, s in run.sensors.items() if k != name}
        without = Recording(recording.joints, (replace(run, wrenches=less, sensors=sensors),))
        bad = dynid.identify(robot, without, "ols", signals=EXACT, channels="wrench").relative_error.max()
        assert good < 1e-9 and bad > 1e-3, name
    wrong = replace(run, sensors=dict(run.sensors) | {"plate": WrenchSensor("world", "base", PLATE)})
    bad = dynid.identify(robot, Recording(recording.joints, (wrong,)), "ols", signals=EXACT, channels="wrench")
    assert bad.relative_error.max() > 1e-2


def test_wrenches_can_be_summed_beforehand(stood: tuple[Robot, Recording]) -> None:
    """Run.wrench at the base's origin equals the contacts that make it."""
    robot, recording = stood
    motion = dance(robot)
    load = dynid.inverse_dynamics(robot, motion.q, motion.v, motion.a)[:, :6]
    run = replace(recording.runs[0], wrenches={}, sensors={}, wrench=load, torque=None)
    one = dynid.identify(robot, Recording(recording.joints, (run,)), "ols", signals=EXACT)
    many = dynid.identify(robot, recording, "ols", signals=EXACT, channels="wrench")
    assert one.base.channels == robot.channels[:6]
    np.testing.assert_allclose(one.beta, many.beta, atol=1e-8)


def test_channels_by_name() -> None:
    robot = humanoid(2, limbs="LR")
    recording = standing(robot, dance(robot), {"footL": WrenchSensor("footL")})
    some = dynid.identify(robot, recording, "ols", signals=EXACT, channels=["base.m?", "legL*"])
    assert some.base.channels == (*robot.channels[3:6], *robot.coordinates[:6])
    np.testing.assert_allclose(some.beta, some.base.values(), atol=1e-8)


@pytest.mark.parametrize("method", ["ols", "wls", "gls", "irls", "tls", "ridge", "feasible"])
def test_every_estimator_knows_the_base(method: str, tmp_path: Path) -> None:
    """Noisy plates and torques: the fit is as good as the noise, is saved with its channels, and validates."""
    robot = humanoid(3, limbs="LR")
    sensors = {"footL": WrenchSensor("footL"), "footR": WrenchSensor("footR")}
    recording = standing(robot, dance(robot), sensors, noise=1.0, torque_noise=0.1)
    other = standing(robot, dance(robot, seed=7), sensors, noise=1.0, torque_noise=0.1, seed=7)
    estimate = dynid.identify(robot, recording, method, signals=EXACT)
    assert estimate.base.channels == robot.channels and estimate.converged
    figures = estimate.validate(other)
    least = replace(estimate, beta=estimate.base.values()).validate(other)
    assert np.all(figures.rmse < 1.2 * least.rmse) and least.rmse[2] > 1.0
    estimate.save(tmp_path / "estimate.json")
    back = Estimate.load(tmp_path / "estimate.json", robot)
    assert back.base.channels == robot.channels
    np.testing.assert_array_equal(back.validate(other).rmse, figures.rmse)
    assert "base.fz" in back.summary()
    if method == "feasible":
        assert (
            estimate.identified_robot.base == "floating" and not dynid.assessment.audit(estimate.identified_robot).links
        )


def test_noise_of_each_channel_is_its_own() -> None:
    """Weighted least squares tells plates from torque sensors, and its deviations are the scatter of its errors."""
    robot = humanoid(4, limbs="L")
    motion = dance(robot, samples=1000)
    off = []
    for seed in range(8):
        recording = standing(robot, motion, {}, noise=2.0, torque_noise=0.05, seed=seed)
        estimate = dynid.identify(robot, recording, "wls", signals=EXACT, iterations=5)
        np.testing.assert_allclose(estimate.noise, [2.0] * 6 + [0.05] * 6, rtol=0.12)
        off.append((estimate.beta - estimate.base.values()) / estimate.std)
    # 8 runs of 52 values: the deviation of their root mean square is about 0.05.
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(1.0, abs=0.2)


def test_raw_signals_are_cleaned_on_the_way() -> None:
    """The usual filters, quaternions of either sign, and noise of markers: total mass within a percent."""
    robot = humanoid(5, limbs="LR")
    motion = dance(robot, samples=2400, period=12.0, turns=3)
    recording = standing(robot, motion, {"plate": WrenchSensor("world", placement=PLATE)}, noise=1.0)
    run = recording.runs[0]
    rng = np.random.default_rng(0)
    base = np.array(run.base)
    base[:, :3] += 1e-3 * rng.normal(size=(len(base), 3))
    shake = Rotation.from_rotvec(2e-3 * rng.normal(size=(len(base), 3)))
    base[:, 3:] = (Rotation.from_quat(base[:, 3:]) * shake).as_quat() * rng.choice([-2.0, 1.0], (len(base), 1))
    noisy = replace(run, base=base, q=run.q + 1e-3 * rng.normal(size=run.q.shape), torque=None)
    estimate = dynid.identify(robot, Recording(robot.coordinates, (noisy,)), "wls", signals=Signals(cutoff=5.0))
    assert estimate.base.channels == robot.channels[:6]
    mass = estimate.beta[estimate.base.kept.index(0)] if 0 in estimate.base.kept else None
    assert mass is not None and mass == pytest.approx(dynid.dynamics.total_mass(robot), rel=0.01)
    assert estimate.relative_error[:3].max() < 0.2 and estimate.relative_error[2] < 0.02


def captured(robot: Robot, seed: int, runs: int = 8) -> Recording:
    """Motion capture on a plate: markers off by 1 mm (3 mrad of a limb, 1 mm of the base), a plate by 1 N and 1 N m."""
    out = []
    for k in range(runs):
        motion = dance(robot, seed=100 * seed + k, samples=800, period=8.0)
        run = standing(robot, motion, {"plate": WrenchSensor("world")}, noise=1.0, seed=100 * seed + k).runs[0]
        rng = np.random.default_rng(100 * seed + k)
        base = np.array(run.base)
        base[:, :3] += 1e-3 * rng.normal(size=(len(base), 3))
        shake = Rotation.from_rotvec(3e-3 * rng.normal(size=(len(base), 3)))
        base[:, 3:] = (Rotation.from_quat(base[:, 3:]) * shake).as_quat()
        out.append(replace(run, base=base, q=run.q + 3e-3 * rng.normal(size=run.q.shape), torque=None))
    return Recording(robot.coordinates, tuple(out))


def test_deviations_hold_with_noise_of_markers_and_plates() -> None:
    """Three deviations hold all base parameters; the centre of mass is predicted far better than by a poor prior."""
    robot = humanoid(5, limbs="LR")
    rng = np.random.default_rng(0)
    # A table's masses and lengths: every body scaled by its own 15 %, its centre moved by some centimetres.
    guess = np.array(robot.parameters)
    for k in range(0, len(guess), 10):
        mass, centre, tensor = dynid.inertia.inertia_to_com(guess[k : k + 10])
        scale = 1 + 0.15 * rng.normal()
        guess[k : k + 10] = dynid.inertia.inertia_from_com(
            scale * mass, centre + 0.03 * rng.normal(size=3), scale * tensor
        )
    prior = robot.with_parameters(guess)
    settings = Signals(trim=0.5)
    recording = captured(robot, 0)
    plain = dynid.identify(prior, recording, "wls", signals=settings)
    off = np.abs(plain.beta - plain.base.values(robot.parameters)) / plain.std
    # At the nominal rate 0.3 % of 94 lie beyond.
    assert np.count_nonzero(off > 3) <= 1 and np.count_nonzero(off > 2) <= 9
    possible = dynid.identify(prior, recording, "feasible", signals=settings).identified_robot
    unseen = dance(robot, seed=77).q
    truth = dynid.dynamics.center_of_mass(robot, unseen)
    before, after = (
        np.linalg.norm(dynid.dynamics.center_of_mass(x, unseen) - truth, axis=1) for x in (prior, possible)
    )
    assert np.sqrt(np.mean(before**2)) > 10 * np.sqrt(np.mean(after**2))


def test_known_loads_are_taken_off(stood: tuple[Robot, Recording]) -> None:
    """What is known of the robot leaves torques and wrench alike; what is left identifies as zero."""
    robot, recording = stood
    left = observe(robot, recording, signals=EXACT, known=robot.parameters)
    assert left.torque_norms().max() < 1e-6
    half = observe(robot, recording, signals=EXACT, channels="wrench", known=0.5 * robot.parameters)
    estimate = dynid.identify(robot, half, "ols")
    np.testing.assert_allclose(estimate.beta, 0.5 * estimate.base.values(), atol=1e-8)


def test_an_arm_on_a_force_plate() -> None:
    """An instrumented base: the reaction wrench of a plate below the arm, in plate axes, or with its torques too."""
    robot = random_robot(4, 5, base="instrumented", kinds="rrrrr", mounts=False)
    sensors = {"plate": WrenchSensor("base", placement=PLATE)}
    recording = standing(robot, dance(robot), sensors)
    counts = {}
    for channels in ("torque", "wrench", "all"):
        estimate = dynid.identify(robot, recording, "ols", signals=EXACT, channels=channels)
        np.testing.assert_allclose(estimate.beta, estimate.base.values(), atol=1e-8)
        counts[channels] = estimate.beta.size
    assert counts["torque"] < counts["wrench"] <= counts["all"]
    fixed = dynid.identify(robot.with_base("fixed"), _plain(recording), "ols", signals=EXACT)
    assert fixed.beta.size == counts["torque"]


def test_a_hand_contact_of_a_fixed_arm() -> None:
    """Pushes on the tool load the joints: taken into account, they leave no trace."""
    robot = random_robot(4, 6, kinds="rrrrrr")
    motion = dance(robot)
    sensors = {"base": WrenchSensor("base"), "tool6": WrenchSensor("tool6")}
    pushed = standing(robot.with_base("instrumented"), motion, sensors).runs[0]
    hand = {"tool6": pushed.wrenches["tool6"]}
    run = replace(pushed, wrenches=hand, sensors={"tool6": sensors["tool6"]})
    estimate = dynid.identify(robot, Recording(robot.coordinates, (run,)), "ols", signals=EXACT)
    np.testing.assert_allclose(estimate.beta, estimate.base.values(), atol=1e-8)
    blind = dynid.identify(robot, _plain(Recording(robot.coordinates, (run,))), "ols", signals=EXACT)
    assert blind.relative_error.max() > 0.01


def test_a_wrist_sensor_weighs_the_tool() -> None:
    """A tool on a wrist sensor is a robot of one floating body, whose motion the arm's joints tell."""
    arm = random_robot(6, 6, kinds="rrrrrr")
    motion = dance(arm)
    tool = Robot(
        "tool", (dynid.robot.Link("tool", random_inertia(np.random.default_rng(3))),), (), arm.drives, arm.gravity
    )
    tool = tool.with_base("floating")
    poses = dynid.recording.base_from_matrices(dynid.dynamics.frame_placement(arm, motion.q, "tool6"))
    run = poses.on(Run(motion.t, np.zeros((len(motion.t), 0))))
    # The wrench by Newton and Euler on the body itself: from its pose alone, differentiated in the world.
    mass, com, inertia = dynid.inertia.inertia_to_com(tool.parameters)
    turn = Rotation.from_quat(poses.pose[:, 3:])
    rate = 1 / motion.t[1]

    def slope(x: np.ndarray) -> np.ndarray:
        w = 2j * np.pi * np.fft.rfftfreq(len(x), 1 / rate)
        return np.fft.irfft(np.fft.rfft(x, axis=0) * w[:, None], n=len(x), axis=0)

    centre = poses.pose[:, :3] + turn.apply(com)
    force = mass * (slope(slope(centre)) - arm.gravity)
    spin = turn.as_matrix() @ np.swapaxes(slope(turn.as_matrix().reshape(-1, 9)).reshape(-1, 3, 3), 1, 2)
    w = np.column_stack([spin[:, 1, 2], spin[:, 2, 0], spin[:, 0, 1]])
    moment = slope(turn.apply(turn.inv().apply(w) @ inertia)) + np.cross(turn.apply(com), force)
    wrench = np.hstack([turn.inv().apply(force), turn.inv().apply(moment)])
    estimate = dynid.identify(tool, Recording((), (replace(run, wrench=wrench),)), "feasible", signals=EXACT)
    np.testing.assert_allclose(estimate.parameters, tool.parameters, atol=1e-6)
    sensor = WrenchSensor("base", placement=PLATE)
    seen = inverse_placement(PLATE)
    at_sensor = np.hstack([wrench[:, :3] @ seen[:3, :3].T, wrench[:, 3:] @ seen[:3, :3].T])
    at_sensor[:, 3:] += np.cross(seen[:3, 3], at_sensor[:, :3])
    moved = replace(run, wrenches={"wrist": at_sensor}, sensors={"wrist": sensor})
    again = dynid.identify(tool, Recording((), (moved,)), "ols", signals=EXACT)
    np.testing.assert_allclose(again.beta, again.base.values(), atol=1e-7)


def test_bad_recordings_are_refused_in_words(stood: tuple[Robot, Recording]) -> None:
    robot, recording = stood
    run = recording.runs[0]

    def refused(words: str, channels: str | None = None, **changes: object) -> None:
        with pytest.raises(DataError, match=words):
            changed = replace(run, **changes)  # type: ignore[arg-type]
            dynid.identify(robot, Recording(recording.joints, (changed,)), "wls", signals=EXACT, channels=channels)

    refused("run 'run' has no motion of its base, which floats", base=None)
    refused("run 'run' has no torques", "torque", torque=None)
    refused("run 'run' has no wrench, of the base or of named sensors", "wrench", wrenches={}, sensors={})
    world = {"plate": WrenchSensor("world", placement=PLATE)}
    refused("'plate' is fixed to the world: say which link it acts on", sensors=dict(run.sensors) | world)
    toe = {"plate": WrenchSensor("toe")}
    refused("no link or frame 'toe', where the wrench of 'plate' is said to be", sensors=dict(run.sensors) | toe)
    with expect_error(NotApplicable, "base"):
        dynid.identify(robot.with_base("fixed"), recording, "wls", signals=EXACT, channels="wrench")
    law = dynid.controllers.pd(1000.0, np.full(robot.n, 100.0), np.full(robot.n, 10.0))
    loop = dynid.ClosedLoop(controller=law)
    with expect_error(NotApplicable):
        dynid.identify(robot, recording, "didim", loop=loop)
    with expect_error(NotApplicable, "channels"):
        still = robot.with_base("instrumented")
        dynid.identify(still, recording, "didim", loop=loop, channels="all")


def test_pieces_join_as_for_arms(stood: tuple[Robot, Recording]) -> None:
    """Recordings that arrive one after the other, and folds of cross-validation."""
    robot = humanoid(6, limbs="L")
    first, second = (standing(robot, dance(robot, seed=s), {}) for s in (0, 1))
    steps = OnlineIdentification(robot, channels="all")
    steps.add(first, signals=EXACT)
    steps.add(second, signals=EXACT)
    whole = dynid.identify(robot, first + second, "wls", signals=EXACT)
    np.testing.assert_allclose(steps.estimate("wls").beta, whole.beta, atol=1e-7)
    folds = dynid.identification.cross_validate(
        robot, first + second, folds=2, signals=Signals(cutoff=None, derivative="central5", decimate=())
    )
    assert max(f.relative.max() for f in folds) < 0.05


def _plain(recording: Recording) -> Recording:
    return Recording(recording.joints, tuple(replace(r, wrenches={}, sensors={}) for r in recording.runs))
