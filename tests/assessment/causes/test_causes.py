"""The cause of a residual: a fault is put into the torques, the positions or the model, and must be named alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.assessment.causes import cause_search
from dynid.assessment.causes.cause import Causes, Trial
from dynid.assessment.causes.cause_groups import Model
from dynid.assessment.causes.cause_rows import cause_rows
from dynid.assessment.causes.cause_search import _plus_minus, find_causes
from dynid.assessment.causes.deflection import BETWEEN, FREQUENCIES, GAPS, deflections
from dynid.assessment.causes.kinds import swapped
from dynid.assessment.causes.kinds.drives import sensor_groups
from dynid.assessment.causes.ripple import ripple_orders
from dynid.assessment.verdict.cause_checks import _fails
from dynid.errors import InvalidValue, MissingData
from dynid.identification.observing import observe
from dynid.robot.posture import tilted_gravity
from dynid.signals.settings import Motion
from studies.reproduce.verdict_logs import slipping_springs
from tests.support.check_data import recorded
from tests.support.errors import expect_error
from tests.support.synthetic import arm, motion

SIGNALS = dynid.Signals(cutoff=None, derivative="fourier", trim=0.0, decimate=(5,))
NOISE = 0.05
Log = tuple[np.ndarray, np.ndarray]
# What a fault makes of the positions and torques of a run, given also its velocities and its number.
Fault = Callable[[np.ndarray, np.ndarray, np.ndarray, int], Log]


def causes(
    fault: Fault | None = None,
    model: dynid.Robot | None = None,
    seed: int = 0,
    clock: float = 1.0,
    without: tuple[str, ...] = (),
) -> Causes:
    """Causes in two runs of an arm with a fault, with another model, or with a wrong clock."""
    truth = arm()
    robot = model or truth
    recordings = []
    for run in range(2):
        t, q, v, a = motion(truth, 2 * seed + run, 4000)
        torque = dynid.inverse_dynamics(truth, q, v, a)
        if fault is not None:
            q, torque = fault(q, v, torque, run)
        torque = torque + NOISE * np.random.default_rng([seed, run]).normal(size=q.shape)
        log = dynid.Run(clock * t, q, torque=torque, name=f"run{run}")
        recordings.append(dynid.Recording(truth.coordinates, (log,)))
    estimate = dynid.identify(robot, recordings[0], "wls", signals=SIGNALS)
    seen = [observe(robot, r, signals=SIGNALS, base=estimate.base) for r in recordings]
    return find_causes(estimate, seen, without=without)


def model_of(robot: dynid.Robot) -> Model:
    """A robot along its own motion."""
    t, q, v, a = motion(robot, 0, 4000)
    run = dynid.Run(t, q, torque=dynid.inverse_dynamics(robot, q, v, a))
    rows = cause_rows([observe(robot, dynid.Recording(robot.coordinates, (run,)), signals=SIGNALS)])
    return Model(rows.base.robot, robot.parameters, rows)


def only(joint: int, values: np.ndarray) -> np.ndarray:
    return values[:, None] * (np.arange(3) == joint)


def longer() -> dynid.Robot:
    """The arm with a third joint 5 cm too far out."""
    robot = arm()
    joints = list(robot.joints)
    placement = joints[2].placement.copy()
    placement[0, 3] += 0.05
    joints[2] = replace(joints[2], placement=placement)
    return replace(robot, joints=tuple(joints))


def payload(q: np.ndarray, v: np.ndarray, torque: np.ndarray, run: int) -> Log:
    loaded = arm().with_payload("link3", dynid.inertia.inertia_from_com(0.5, np.zeros(3) + 0.1, 1e-3 * np.eye(3)))
    a = np.gradient(v, 10.0 / len(v), axis=0)
    return q, torque + run * (dynid.inverse_dynamics(loaded, q, v, a) - dynid.inverse_dynamics(arm(), q, v, a))


def without_gravity(times: float) -> Fault:
    """Torques less the gravity of the arm: as of a controller that compensates it, or twice, of one upside down."""
    return lambda q, v, t, r: (q, t - times * dynid.inverse_dynamics(arm().with_drives("none"), q, 0 * q, 0 * q))


CASES: dict[str, tuple[Fault | None, dynid.Robot | None, str, tuple[str, ...], float]] = {
    "gain": (lambda q, v, t, r: (q, t * [1.0, 1.1, 1.0]), None, "torque_gain", ("joint2",), 10.0),
    "tilt": (
        None,
        arm().with_gravity(tilted_gravity(arm(), np.radians([3.0, -2.0]))),
        "tilt",
        (),
        float(np.hypot(3, 2)),
    ),
    "length": (None, longer(), "placement", ("joint3",), -50.0),
    "delay": (lambda q, v, t, r: (q, np.roll(t, 4, axis=0)), None, "delay", (), 10.0),
    "cogging": (
        lambda q, v, t, r: (q, t + only(1, 0.5 * np.sin(17 * q[:, 1]))),
        None,
        "ripple",
        ("joint2",),
        0.5,
    ),
    "load friction": (
        lambda q, v, t, r: (q, t + 0.1 * np.abs(t) * np.sign(v)),
        None,
        "load_friction",
        (),
        10.0,
    ),
    "gravity compensated": (without_gravity(1.0), None, "gravity_compensated", (), 100.0),
    "gravity reversed": (without_gravity(2.0), None, "gravity_reversed", (), 200.0),
    "gravity missing": (None, arm().with_gravity([0.0, 0.0, 0.0]), "gravity_missing", (), 9.81),
    "payload": (payload, None, "payload", (), 0.5),
    "asymmetric": (
        lambda q, v, t, r: (q, np.where((t > 0) & [False, False, True], 1.2 * t, t)),
        None,
        "torque_asymmetric",
        ("joint3",),
        20.0,
    ),
    # The mean gain is fitted beside it.
    "not proportional": (
        lambda q, v, t, r: (q, t * (1.0 + [0.0, 0.2, 0.0] * (t / np.abs(t).max(axis=0)) ** 2)),
        None,
        "torque_nonlinear",
        ("joint2",),
        15.0,
    ),
    "position gain": (
        lambda q, v, t, r: (q * [1.0, 1.08, 1.0], t),
        None,
        "position_gain",
        ("joint2",),
        8.0,
    ),
    "one torque is late": (
        lambda q, v, t, r: (q, np.where([False, True, False], np.roll(t, 6, axis=0), t)),
        None,
        "joint_delay",
        ("joint2",),
        15.0,
    ),
    "crosstalk": (
        lambda q, v, t, r: (q, t + only(2, 0.1 * t[:, 1])),
        None,
        "crosstalk",
        ("joint3",),
        10.0,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_cause_is_named_first_with_its_size(case: str) -> None:
    fault, model, code, joints, size = CASES[case]
    found = causes(fault, model)
    assert (found.causes[0].code, found.causes[0].joints) == (code, joints)
    # One step from the estimate: the size is right to a fifth.
    assert found.causes[0].size == pytest.approx(size, rel=0.2)
    assert found.causes[0].words in found.summary() and found.causes[0].advice in found.summary()


@pytest.mark.parametrize(("case", "option"), [("cogging", "ripple=joint2:17"), ("load friction", "load-friction")])
def test_an_effect_is_tried_before_it_is_advised(case: str, option: str) -> None:
    """The model with the option of the advice has the error on the unseen run that the advice states."""
    fault, model, *_ = CASES[case]
    cause = causes(fault, model).causes[0]
    assert cause.option == option and f"--effect {option}" in cause.advice
    assert cause.trial is not None and cause.trial.unseen and cause.trial.after < 0.5 * cause.trial.before
    better = causes(fault, arm().with_effects(option))
    assert not any(c.code is cause.code and c.option for c in better.causes)


def test_a_correction_that_gains_nothing_on_unseen_motion_has_no_option() -> None:
    gain, nothing = Trial("joint1", 0.1, 0.05, True), Trial("joint1", 0.1, 0.099, True)
    cause = replace(causes(CASES["cogging"][0]).causes[0], trial=gain)
    assert "falls from 10.0 to 5.0 % of its torque" in cause.advice
    assert "falls" not in replace(cause, trial=nothing).advice


def test_what_differs_between_runs_is_tried_on_parts_of_both() -> None:
    trial = causes(payload).causes[0].trial
    assert trial is not None and not trial.unseen and trial.after < 0.2 * trial.before
    assert "motion left out of the fit" in str(trial)


def test_a_cable_that_bends_before_it_slides() -> None:
    """Of another law, and a distance between those that are tried."""
    cable = causes(lambda q, v, t, r: (q, t + only(1, 0.8 * slipping_springs(q[:, 1:2], 0.15)[:, 0])))
    first = cable.causes[0]
    assert (first.code, first.joints) == ("hysteresis", ("joint2",)) and first.size == pytest.approx(0.8, rel=0.3)


def test_a_payload_that_is_picked_up_is_told_with_its_time() -> None:
    def later(q: np.ndarray, v: np.ndarray, torque: np.ndarray, run: int) -> Log:
        more = payload(q, v, torque, 1)[1] - torque
        return q, torque + (np.arange(len(q)) > 1600)[:, None] * more

    first = causes(later).causes[0]
    assert first.code == "payload" and first.size == pytest.approx(0.5, rel=0.2)
    assert float(first.words.split("t = ")[1].split(" s")[0]) == pytest.approx(4.0, abs=0.15)


def test_a_torque_of_zeros_has_no_causes() -> None:
    robot = arm()
    t, q, v, a = motion(robot, 0, 4000)
    log = dynid.Run(t, q, torque=dynid.inverse_dynamics(robot, q, v, a) * [1.0, 1.0, 0.0])
    recording = dynid.Recording(robot.coordinates, (log,))
    estimate = dynid.identify(robot, recording, "wls", signals=SIGNALS)
    with expect_error(MissingData):
        find_causes(estimate, observe(robot, recording, signals=SIGNALS, base=estimate.base))


def test_friction_that_builds_up_after_reversals_is_no_lag() -> None:
    """Of any law: here springs that slip one after the other. Beside it nothing else is named."""
    soft = causes(lambda q, v, t, r: (q, t + 0.7 * (slipping_springs(q, 0.02) - np.sign(v))))
    (cause,) = soft.causes
    assert cause.code == "presliding" and cause.share > 0.8 and "about 16 mrad" in cause.words
    assert cause.trial is not None and cause.trial.after < 0.5 * cause.trial.before


@pytest.mark.parametrize(("left", "sure"), [(0.05, True), (0.9, False)])
def test_a_cause_whose_correction_leaves_much_is_said_with_doubt(left: float, sure: bool) -> None:
    cause = replace(causes(CASES["tilt"][0], CASES["tilt"][1]).causes[0], trial=Trial("joint1", 0.1, 0.1 * left, True))
    assert (cause.probability > 0.9) is sure
    assert ("perhaps" in str(cause)) is ("none of the candidates" in str(cause)) is not sure
    assert _fails(replace(cause, unexplained=0.5, share=0.9), 1.0) is sure
    assert not _fails(replace(cause, unexplained=0.05, share=0.9), 1.0)


def test_kinds_that_are_known_not_to_be_the_cause_are_left_out() -> None:
    """Without the right kind, what is named instead is less probable."""
    fault, model, *_ = CASES["tilt"]
    first = causes(fault, model).causes[0]
    others = causes(fault, model, without=("tilt",)).causes
    assert first.code == "tilt" and first.probability > 0.5
    assert all(c.code != "tilt" and c.probability < first.probability for c in others)


def test_causes_that_explain_alike_are_told_together() -> None:
    """A clock of another rate and a link of another length both change the ratio of inertia and weight."""
    first = causes(clock=1.1).causes[0]
    named = {c.code: c for c in (first, *first.alternatives)}
    assert set(named) == {"clock_rate", "placement"}
    assert named["clock_rate"].size == pytest.approx(10.0, rel=0.25)
    assert all(c.words in str(first) for c in named.values()) and "these data cannot tell which" in str(first)
    assert "compare the time stamps" in first.advice and "; or check the length" in first.advice
    plain = causes(CASES["gain"][0]).causes[0]
    assert plain.alternatives == () and "cannot tell" not in str(plain)


@pytest.mark.parametrize(
    ("velocity", "words"),
    [(0.0, "is larger (Stribeck)"), (0.3, ""), (0.9, "is not that of its Stribeck law"), (0.1, "is not that of its")],
)
def test_friction_near_standstill_is_compared_with_the_law_of_the_model(velocity: float, words: str) -> None:
    """A model without a law, with the right one, and with laws that are three times too wide and too narrow."""
    robot = arm()
    model = robot.with_terms(robot.joint_term("joint2", "fs", 0.0, velocity=velocity)) if velocity else robot
    found = causes(lambda q, v, t, r: (q, t + only(1, np.sign(v[:, 1]) * np.exp(-((v[:, 1] / 0.3) ** 2)))), model)
    named = [c for c in found.causes if c.code == "stribeck"]
    assert [c.joints for c in named] == [("joint2",)] * bool(words)
    assert all(f"friction near standstill {words}" in c.words for c in named)
    assert words or not found.causes


@pytest.mark.parametrize("seed", range(4))
def test_a_good_recording_has_no_cause(seed: int) -> None:
    found = causes(seed=seed)
    assert found.causes == () and "none of" in found.verdict


@pytest.mark.parametrize(
    ("code", "q_order", "torque_order"),
    [
        ("torques_swapped", [0, 1, 2], [0, 2, 1]),
        ("positions_swapped", [0, 2, 1], [0, 1, 2]),
        ("joints_swapped", [0, 2, 1], [0, 2, 1]),
    ],
)
def test_exchanged_joints_are_named(code: str, q_order: list[int], torque_order: list[int]) -> None:
    found = causes(lambda q, v, t, r: (q[:, q_order], t[:, torque_order]))
    assert [(c.code, c.joints) for c in found.causes] == [(code, ("joint2", "joint3"))]


def test_a_low_pass_is_told_from_a_delay() -> None:
    """First-order low-pass of 6 Hz; periodic motion, so the filter has no transient."""

    def low_pass(q: np.ndarray, v: np.ndarray, torque: np.ndarray, run: int) -> Log:
        turn = 2j * np.pi * np.fft.rfftfreq(len(torque), 10.0 / len(torque)) / (2 * np.pi * 6.0)
        return q, np.fft.irfft(np.fft.rfft(torque, axis=0) / (1 + turn)[:, None], len(torque), axis=0)

    found = causes(low_pass).causes[0]
    assert found.code == "low_pass" and found.size == pytest.approx(1e3 / (2 * np.pi * 6.0), rel=0.2)


@pytest.mark.parametrize(
    "fault",
    [
        lambda q, v, t, r: (q, 1.15 * t),  # all masses scale with it
        lambda q, v, t, r: (q + only(0, np.full(len(q), 0.1)), t),  # gravity looks the same about a vertical axis
        lambda q, v, t, r: (q + only(2, np.full(len(q), 0.1)), t),  # the last body turned about its axis
    ],
)
def test_what_no_torque_can_tell_is_not_named(fault: Fault) -> None:
    """Nor is anything else: the torques are explained by other bodies."""
    assert causes(fault).causes == ()


def test_plain_data() -> None:
    data = json.loads(json.dumps(causes(CASES["gain"][0]).to_dict()))
    assert data["causes"][0]["code"] == "torque_gain" and data["causes"][0]["joints"] == ["joint2"]


@pytest.mark.filterwarnings("error")
def test_a_joint_without_positive_inertia_is_rigid() -> None:
    """An inconsistent estimate gives finite deflections: none for that joint, those of the truth for the others."""
    truth = arm()
    t, q, v, a = motion(truth, 0, 2000)
    load = dynid.inverse_dynamics(truth, q, v, a)
    moved = Motion(t, q, v, a, load, 1.0 / (t[1] - t[0]), None, (), "run", np.zeros(truth.n))
    wrong = np.array(truth.parameters)
    wrong[truth.parameter_names.index("Ia_joint3")] = -1.0
    (springs, gaps), (right, _) = (deflections(truth, moved, load, p) for p in (wrong, truth.parameters))
    assert np.all(springs[:, 2] == 0) and np.all(gaps[:, 2] == 0) and np.any(right[:, 2])
    assert np.all(np.isfinite(springs)) and np.all(np.isfinite(gaps))


def test_frequencies_between_those_of_the_grid() -> None:
    """They fill the gap to both neighbours, and the deflection at each is that of its own spring."""
    assert np.all(BETWEEN > 1 / 1.2) and np.all(BETWEEN < 1.2) and np.all(BETWEEN != 1.0)
    assert np.diff(np.sort([1 / 1.2, *BETWEEN, 1.0, 1.2])).max() < 0.045
    truth = arm()
    t, q, v, a = motion(truth, 0, 2000)
    load = dynid.inverse_dynamics(truth, q, v, a)
    moved = Motion(t, q, v, a, load, 1.0 / (t[1] - t[0]), None, (), "run", np.zeros(truth.n))
    chosen = FREQUENCIES[[2, 5]]
    springs, gaps = deflections(truth, moved, load, truth.parameters, chosen, GAPS[:0])
    everything, _ = deflections(truth, moved, load, truth.parameters)
    np.testing.assert_array_equal(springs, everything[:, :, [2, 5]])
    assert gaps.shape[2] == 0


@pytest.mark.parametrize(
    ("size", "std", "words"),
    [
        (93.94, 21.3, "94 \u00b1 21"),
        (0.2464, 0.0101, "0.25 \u00b1 0.01"),
        (5.0, 0.0, "5"),
        (1.07, 0.05, "1.07 \u00b1 0.05"),
    ],
)
def test_sizes_are_said_to_the_digits_that_are_known(size: float, std: float, words: str) -> None:
    assert _plus_minus(size, std) == words


@pytest.mark.slow
def test_the_search_knows_which_gains_it_can_see() -> None:
    """Twice the smallest visible gain is named, a third of it is not."""
    visible = causes().visible_gain
    assert set(visible) == set(arm().coordinates)
    for j, joint in enumerate(arm().coordinates):
        for factor, expected in ((2.0, [joint]), (1 / 3, [])):
            gain = 1.0 + factor * visible[joint] * (np.arange(3) == j)
            found = causes(lambda q, v, t, r, gain=gain: (q, t * gain))  # type: ignore[misc]
            assert [n for c in found.causes if c.code == "torque_gain" for n in c.joints] == expected


def test_a_joint_that_is_nowhere_away_from_its_reversals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its columns are zero: the share that is left stays finite, and no exchange with it is tried."""
    truth = arm()
    t, q, v, a = motion(truth, 0, 2000)
    recording = dynid.Recording(truth.coordinates, (dynid.Run(t, q, torque=dynid.inverse_dynamics(truth, q, v, a)),))
    rows = cause_rows([observe(truth, recording, signals=SIGNALS)])
    states, torque, far = swapped._thinned(rows)
    far[:, 2] = False
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert np.all(np.isfinite(swapped._left(rows, states, torque, far)))
    monkeypatch.setattr(swapped, "_thinned", lambda _: (states, torque, far))
    assert swapped.best_swap(rows, np.ones(3)) is None


def test_bad_input_is_named() -> None:
    truth = arm()
    t, q, v, a = motion(truth, 0, 2000)
    recording = dynid.Recording(truth.coordinates, (dynid.Run(t, q, torque=dynid.inverse_dynamics(truth, q, v, a)),))
    estimate = dynid.identify(truth, recording, "wls", signals=SIGNALS)
    seen = observe(truth, recording, signals=SIGNALS, base=estimate.base)
    with expect_error(MissingData, "observations"):
        find_causes(estimate, replace(seen, motions=()))
    with expect_error(InvalidValue, "level"):
        find_causes(estimate, seen, level=2.0)


def test_ripple_is_found_by_its_order_at_any_velocity() -> None:
    """In colored noise, by a joint that reverses."""
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 20.0, 4000)
    q = 1.5 * np.sin(t) + 0.4 * np.sin(2.7 * t)
    noise = np.convolve(rng.normal(size=len(t)), np.ones(20) / 4, "same")
    (order,) = ripple_orders([noise + 0.6 * np.sin(23 * q)], [q], most=1)
    assert order == pytest.approx(23, abs=1)


def test_the_edge_of_the_decimated_band_is_no_elastic_joint() -> None:
    """White torque noise of 30 % in few rows per second: its spectrum falls at the end of the band, and has no peak."""
    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    signals = dynid.Signals(cutoff=16.0, decimate=(5, 5))
    for seed in range(2):
        seen = observe(robot, recorded(robot, seed, rate=500.0, noise=0.3), signals=signals)
        estimate = dynid.identify(robot, seen, "wls")
        assert not find_causes(estimate, seen).causes


@pytest.mark.parametrize(("after", "told"), [(0.05, True), (0.099, False)])
def test_a_cause_that_corrects_nothing_elsewhere_is_not_named(
    after: float, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What explains the fitted motion, and lowers no error on motion that is not in the fit, is no cause."""
    monkeypatch.setattr(cause_search, "try_cause", lambda *_: Trial("joint2", 0.1, after, True))
    assert bool(causes(CASES["cogging"][0]).causes) is told
    # Gravity that is missing is to be corrected before anything else can be tried.
    fatal = causes(without_gravity(1.0)).causes
    assert [c.code for c in fatal] == ["gravity_compensated"]


def test_causes_that_correct_unseen_motion_alike_are_told_together() -> None:
    rows = model_of(arm()).rows
    first = Trial("joint2", 0.1, 0.05, True)
    assert cause_search._as_well(rows, first, replace(first, after=0.0505))
    assert not cause_search._as_well(rows, first, replace(first, after=0.06))
    assert not cause_search._as_well(rows, first, replace(first, joint="joint1"))


def test_a_torque_gain_below_zero_is_a_reversed_joint() -> None:
    """A factor is no remedy there: the words say what is reversed."""
    search = [g for g in sensor_groups(model_of(arm())) if g.code == "torque_gain" and g.joints == (1,)]
    assert "'joint2' is reversed" in search[0].words("138 \u00b1 22", -138.0)
    assert "12 \u00b1 2 % too small" in search[0].words("12 \u00b1 2", -12.0)
