"""Is a term needed: F tests of nested models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.assessment.causes.nested import f_test, terms_needed
from dynid.errors import DynidError, InvalidValue, MissingArgument, MissingData, TooFew, UnknownName
from dynid.identification.observation import Observation
from tests.support.errors import expect_error
from tests.support.synthetic import EXACT, arm, base_of, motion, observation_of, record

OFFSETS = ("off_joint1", "off_joint2", "off_joint3")


def without_offsets() -> dynid.Robot:
    """The arm with offset columns, but offsets of zero: terms that the data do not need."""
    robot = arm()
    return robot.with_parameters(np.where(np.isin(robot.parameter_names, OFFSETS), 0.0, robot.parameters))


def test_statistic_is_that_of_two_fits() -> None:
    """The classical ratio from the sums of squares of the large and the small model, rows whitened."""
    import statsmodels.api as sm

    robot = arm()
    _, q, v, a = motion(robot, 0, 200)
    base = base_of(robot)
    W = base.regressor(q, v, a)
    noise = np.array([1.0, 2.0, 0.5])
    y = W @ base.values() + noise * np.random.default_rng(0).normal(size=(200, 3))
    rows, torque = (W / noise[None, :, None]).reshape(-1, base.count), (y / noise).ravel()
    small = [i for i, name in enumerate(base.names) if name not in OFFSETS]
    expected = sm.OLS(torque, rows).fit().compare_f_test(sm.OLS(torque, rows[:, small]).fit())
    for names in ("off_*", OFFSETS):
        test = f_test(observation_of(base, W, y), names, noise=noise)
        assert test.statistic == pytest.approx(expected[0], rel=1e-8)
        assert test.p_value == pytest.approx(expected[1], rel=1e-6)
        assert test.distribution == f"F(3, {600 - base.count})"
        assert all(name in test.null for name in OFFSETS)


@pytest.mark.slow
def test_size_and_power_on_a_decimated_recording() -> None:
    """Decimated rows of white noise are not independent; the default number of rows allows for it."""
    robot = without_offsets()
    clean = record(robot, (0,), samples=4000).runs[0]
    signals = dynid.Signals(cutoff=None, derivative="fourier", trim=0.0, min_velocity=0.0, decimate=(10,))
    base = base_of(robot)
    recording = dynid.Recording(robot.coordinates, (clean,))
    exact = dynid.identification.observe(robot, recording, signals=signals, base=base)
    assert clean.torque is not None
    # Decimation is linear: the noise is decimated alone and added to the rows that were.
    from dynid.signals.filters import decimate

    W = [np.vstack([b.W for b in exact.blocks() if b.channel == k]) for k in range(3)]
    y = [np.concatenate([b.y for b in exact.blocks() if b.channel == k]) for k in range(3)]
    kept = [np.concatenate([b.index for b in exact.blocks() if b.channel == k]) // 10 for k in range(3)]

    def observed(seed: int, offset: float = 0.0) -> Observation:
        noise = decimate(np.random.default_rng(seed).normal(size=(4000, 3)), (10,)) + offset
        rows = observation_of(base, np.stack(W, axis=1), np.column_stack([y[k] + noise[kept[k], k] for k in range(3)]))
        blocks = [replace(b, index=10 * b.index) for b in rows.blocks()]
        return replace(rows, blocks=lambda: iter(blocks))

    p = [f_test(observed(seed), "off_*").p_value for seed in range(400)]
    plain = [f_test(observed(seed), "off_*", rows=1200).p_value for seed in range(200)]
    # Three deviations of a rate of 0.05 over 400 draws.
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.033)
    assert np.mean(np.array(plain) < 0.05) > np.mean(np.array(p)[:200] < 0.05)
    assert np.mean([f_test(observed(seed, 0.2), "off_*").rejected for seed in range(20)]) == 1.0


def test_table_of_terms_tells_needed_from_not_needed() -> None:
    """Friction is real and offsets are not; a rotor inertia regrouped into a link is not in the table."""
    robot = without_offsets()
    test = terms_needed(dynid.identification.observe(robot, record(robot, (0, 1), noise=0.3), signals=EXACT))
    needed = {d.name for d in test.details if d.rejected}
    assert {f"{s}_joint{j}" for s in ("fv", "fc") for j in (1, 2, 3)} <= needed
    assert not needed & set(OFFSETS) and set(OFFSETS) <= {d.name for d in test.details}
    assert "Ia_joint1" not in {d.name for d in test.details}
    assert "fv_joint1" in test.summary()


def test_bad_input_is_named() -> None:
    robot = arm()
    observation = dynid.identification.observe(robot, record(robot, noise=0.1), signals=EXACT)
    with expect_error(UnknownName, "names"):
        f_test(observation, "fw_*")
    with expect_error(InvalidValue, "names"):
        f_test(observation, "*")
    with expect_error(MissingArgument, "names"):
        f_test(observation, [])
    with expect_error(InvalidValue, "noise"):
        f_test(observation, "off_*", noise=[1.0, -1.0, 1.0])
    with expect_error(MissingArgument, "rows"):
        f_test(replace(observation, blocks=lambda: iter(())), "off_*")
    with expect_error(TooFew):
        f_test(observation, "off_*", rows=10)
    still = replace(observation, factors=tuple(np.where(np.arange(f.shape[1]) == 3, 0, f) for f in observation.factors))
    with expect_error(DynidError, code="not_identifiable"):
        f_test(still, "off_*", noise=np.ones(3))
    bare = robot.without("fv_*", "fc_*", "off_*", "Ia_*")
    with expect_error(MissingData):
        terms_needed(dynid.identification.observe(bare, record(bare, noise=0.1), signals=EXACT))
