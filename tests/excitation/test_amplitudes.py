"""Rules (a) to (f) of Halper (2024), equation 3.55, each by its printed formula."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import InvalidValue, Mismatch, NotApplicable
from dynid.excitation import Excitation, halper_rules
from dynid.excitation.problem import Problem
from tests.support.errors import expect_error

Array = NDArray[np.float64]

ROBOT = dynid.load_robot("twolink").with_drives("viscous+coulomb", rotor_inertia=False)
PERIOD, HARMONICS = 8.0, 5
W = 2 * np.pi / PERIOD
L = np.arange(1, HARMONICS + 1)


@pytest.fixture(scope="module")
def motion() -> Excitation:
    """A design by the rules."""
    return dynid.design_excitation(ROBOT, **halper_rules(ROBOT, PERIOD, HARMONICS), budget=100)


def harmonics(motion: Excitation) -> tuple[Array, Array]:
    """a and b (n, L), found from the velocities of one period by their Fourier transform, not from the coefficients."""
    _, v, _ = motion.at(np.arange(1000) * PERIOD / 1000)
    spectrum = np.fft.rfft(v, axis=0)[1 : HARMONICS + 1].T / 500
    return spectrum.real, -spectrum.imag


def test_a_the_condition_number_is_least(motion: Excitation) -> None:
    """Rule (a): it is the criterion, and no motion with random amplitudes within the same rules is better."""
    assert motion.criterion.name == "cond"
    rules = halper_rules(ROBOT, PERIOD, HARMONICS)
    problem = Problem(
        rules["family"], motion.criterion, motion.limits, 100, start=np.zeros(2), amplitudes=rules["amplitudes"]
    )
    rng = np.random.default_rng(1)
    for _ in range(20):
        X = problem.unit * rng.normal(size=problem.unit.shape)
        X *= 0.5 ** np.ceil(np.log2(max(1.0, 1.0 - problem.worst(X))))
        assert problem.worst(X) >= 0
        assert problem.value(X) > motion.value


def test_b_the_motion_is_a_series_without_offset(motion: Excitation) -> None:
    """Rule (b): q = sum a/(l w) sin - b/(l w) cos, and nothing beside it."""
    t = np.linspace(0, PERIOD, 77)
    phase = np.outer(t, W * L)
    a, b = harmonics(motion)
    q = (np.sin(phase) / (W * L)) @ a.T - (np.cos(phase) / (W * L)) @ b.T
    np.testing.assert_allclose(motion.at(t)[0], q, atol=1e-9)


def test_c_it_starts_at_zero_without_velocity_and_acceleration(motion: Excitation) -> None:
    """Rule (c): sum b/l = sum a = sum b l = 0."""
    a, b = harmonics(motion)
    for total in ((b / L).sum(axis=1), a.sum(axis=1), (b * L).sum(axis=1)):
        np.testing.assert_allclose(total, 0.0, atol=1e-9)
    assert max(np.abs(x).max() for x in motion.at(0.0)) < 1e-9


@pytest.mark.parametrize(("rule", "reach", "speed"), [("d", 0.2, 20.0), ("e", 1.5, 0.4), ("f", 0.5, 2.0)])
def test_amplitudes_keep_the_rule(rule: str, reach: float, speed: float) -> None:
    """Rules (d), (e) and (f) hold where each decides, and a design without them violates it."""

    def worst(motion: Excitation) -> float:
        a, b = harmonics(motion)
        amplitude = np.hypot(a, b)
        used = {
            "d": (amplitude / L).sum(axis=1) / (W * reach),
            "e": amplitude.sum(axis=1) / speed,
            "f": np.maximum(np.abs(a), np.abs(b)) / np.minimum(W * L * reach / HARMONICS, speed),
        }
        return float(1.0 - used[rule].max())

    limits = {"*": {"lower": -reach, "upper": reach, "velocity": speed}}
    # A large motion is a good one by criterion d, so its limits decide.
    rules = halper_rules(ROBOT, PERIOD, HARMONICS, limits=limits) | {"criterion": "d", "budget": 20}
    assert worst(dynid.design_excitation(ROBOT, **rules)) >= 0
    assert worst(dynid.design_excitation(ROBOT, **{k: x for k, x in rules.items() if k != "amplitudes"})) < 0


def test_gradients_are_exact() -> None:
    """Of every kind of limit, against central differences."""
    amplitudes = halper_rules(ROBOT, PERIOD, HARMONICS)["amplitudes"]
    rng = np.random.default_rng(0)
    X, step = rng.normal(size=(2, 2, amplitudes.series.size))
    for kind, slack in amplitudes.slacks(X).items():
        columns = np.arange(slack.size)
        ahead, behind = (amplitudes.slacks(X + h * step)[kind].ravel() for h in (1e-6, -1e-6))
        slope = np.sum(amplitudes.gradients(X, kind, columns) * step, axis=(1, 2))
        np.testing.assert_allclose((ahead - behind) / 2e-6, slope, rtol=1e-6, atol=1e-7)


def test_what_cannot_be_ruled_is_refused() -> None:
    """A range without zero, too few harmonics, another family."""
    with expect_error(NotApplicable, "rules"):
        halper_rules(ROBOT, limits={"joint2": {"lower": 0.1}})
    with expect_error(InvalidValue, "harmonics"):
        halper_rules(ROBOT, harmonics=2)
    rules = halper_rules(ROBOT, PERIOD, HARMONICS)
    with expect_error(Mismatch, "family"):
        dynid.design_excitation(ROBOT, PERIOD, amplitudes=rules["amplitudes"])
