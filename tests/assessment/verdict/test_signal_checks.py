"""Checks of the signals: a low-pass that removes motion is found, joints that stand still are named."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid import Recording, Run, Signals
from dynid.errors import MissingData
from tests.support.check_data import recorded as sound
from tests.support.errors import expect_error
from tests.support.pendulum_plant import INERTIA, inertia, pendulum, recorded
from tests.support.synthetic import arm


@pytest.mark.slow
@pytest.mark.parametrize("rate", [200, 500])
@pytest.mark.parametrize(
    ("frequency", "amplitude", "chirp"),
    [(6.0, 0.05, False), (8.0, 0.02, False), (12.0, 0.05, False), (15.0, 0.02, False), (15.0, 0.05, True)],
)
def test_fast_components_do_not_bias_the_inertia(frequency: float, amplitude: float, chirp: bool, rate: int) -> None:
    """A slow swing with 6 to 15 Hz or a chirp to 15 Hz: within 1 %, and the check agrees."""
    recording = recorded(frequency, amplitude, chirp, seed=1, rate=rate)
    estimate = dynid.identify(pendulum(), recording, "wls")
    assert inertia(estimate) == pytest.approx(INERTIA, rel=0.01)
    assert dynid.assess(estimate, recording=recording).check("cutoff").result == "passed"


@pytest.mark.parametrize(("frequency", "chirp"), [(8.0, False), (12.0, False), (15.0, True)])
def test_a_cutoff_within_the_motion_is_found(frequency: float, chirp: bool) -> None:
    """With a low-pass just below the component and full torques the inertia is far too large: the check fails."""
    recording = recorded(frequency, 0.05, chirp)
    estimate = dynid.identify(pendulum(), recording, "wls", signals=Signals(cutoff=0.9 * frequency, decimate=(5,)))
    assert inertia(estimate) > 1.3 * INERTIA
    found = dynid.assess(estimate, recording=recording).check("cutoff")
    assert found.result == "failed" and found.figure is not None and found.figure > 0.1


def test_the_decimation_keeps_what_the_low_pass_keeps() -> None:
    """Rows that end an octave below the cut-off hold nothing that the low-pass attenuates."""
    estimate = dynid.identify(pendulum(), recorded(12.0, 0.005), "wls", signals=Signals(cutoff=10.8))
    assert inertia(estimate) == pytest.approx(INERTIA, rel=0.02)


def test_without_a_recording_or_a_filter_the_cutoff_is_not_checked() -> None:
    """What is not known is not checked, never failed."""
    recording = recorded(6.0, 0.05)
    estimate = dynid.identify(pendulum(), recording, "wls")
    assert dynid.assess(estimate).check("cutoff").result == "not checked"
    raw = dynid.identify(pendulum(), recording, "wls", signals=Signals(cutoff=None, decimate=(10,)))
    assert dynid.assess(raw, recording=recording).check("cutoff").result == "not checked"


def held(seed: int, joint: int = 2, noise: float = 2e-5) -> Recording:
    """A sound recording in which one joint is held: its position shows only noise, its torque an unknown stiction."""
    robot = arm()
    run = sound(robot, seed, duration=10.0).runs[0]
    rng = np.random.default_rng(seed)
    q = run.q.copy()
    q[:, joint] = 0.3 + noise * rng.normal(size=len(q))
    still = np.ones(robot.n)
    still[joint] = 0.0
    t = run.t
    v, a = (np.gradient(x, t, axis=0) * still for x in (run.q, np.gradient(run.q, t, axis=0)))
    level = np.where(still, run.q, 0.3)
    torque = dynid.inverse_dynamics(robot, level, v, a)
    torque[:, joint] += 0.5 * np.sin(t)
    return Recording(robot.coordinates, (Run(t, q, torque=torque, name=f"held{seed}"),))


@pytest.mark.parametrize("method", ["wls", "ols", "irls", "ridge", "feasible"])
def test_a_joint_that_stands_still_keeps_the_prior(method: str) -> None:
    """Friction of the held joint is the prior's with infinite deviation, in the file too; the verdict is careful."""
    prior = arm().with_parameters(1.1 * arm().parameters)
    recording = held(0)
    estimate = dynid.identify(prior, recording, method)
    name = prior.coordinates[2]
    mine = [i for i, n in enumerate(estimate.base.names) if n in (f"fc_{name}", f"fv_{name}")]
    assert len(mine) == 2
    assert np.all(np.isposinf(estimate.std[mine])) and np.any(np.isfinite(estimate.std))
    np.testing.assert_allclose(estimate.beta[mine], estimate.base.values()[mine], rtol=1e-6)
    values = dict(zip(prior.parameter_names, prior.parameters, strict=True))
    kept = dict(zip(prior.parameter_names, estimate.parameters, strict=True))
    assert kept[f"fc_{name}"] == pytest.approx(values[f"fc_{name}"], rel=1e-5)
    assert estimate.rows[2] == 0 and any("still" in note for note in estimate.notes)
    found = dynid.assess(estimate, recording=recording, findings=[]).check("standstill")
    assert found.result == "warned" and name in found.words
    assert estimate.to_dict()["base_parameters"][mine[0]]["std"] == "inf"


def test_a_joint_held_still_in_the_validation_is_not_checked() -> None:
    """The other joints are validated; tables, plain data and the verdict say that one is not."""
    robot = arm()
    recording = sound(robot, 0)
    estimate = dynid.identify(robot, recording, "wls")
    unseen = held(1)
    found = estimate.validate(unseen)
    assert found.checked.tolist() == [True, True, False]
    assert np.isnan(found.relative[2]) and np.all(found.relative[:2] < 0.05)
    assert found.to_dict()[robot.coordinates[2]]["rmse"] is None
    assert robot.coordinates[2] in found.summary().splitlines()[-1]
    judged = dynid.assess(estimate, unseen, recording=recording)
    assert judged.check("validation_error").result == "passed"
    assert judged.check("standstill").result == "passed"


def test_every_joint_still_is_refused() -> None:
    """Then nothing can be validated."""
    estimate = dynid.identify(pendulum(), recorded(6.0, 0.05), "wls")
    t = np.arange(0.0, 5.0, 0.002)
    rest = Recording(("joint1",), (Run(t, np.zeros((len(t), 1)), torque=np.ones((len(t), 1))),))
    with expect_error(MissingData, "min_velocity"):
        estimate.validate(rest)
