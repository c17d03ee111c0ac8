"""Friction that is a function of velocity, in the closed loop: Stribeck, asymmetric and other laws as drive terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import dynid
from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.sensors import Sensors
from dynid.simulation.unmodeled import UnmodeledEffects
from tests.support.closed_loops import wheel

Array = NDArray[np.float64]

RATE, SLOPE = 1000.0, 50.0
KP, KD = 40.0, 4.0
LAW = controllers.pd(RATE, KP, KD)
EXACT = Sensors(velocity="exact")
T = np.arange(2000) / RATE
PATH = (0.6 * np.sin(4.0 * T) + 0.2 * np.sin(9.0 * T))[:, None]


def stribeck(v: Array) -> Array:
    return np.sign(v) * np.exp(-((v / 0.3) ** 2))


def asymmetric(v: Array) -> Array:
    """Another torque in each direction, with a mean that is not zero, and a viscous part."""
    return np.where(v > 0, 1.0, -0.4) + 0.2 * v


def quadratic(v: Array) -> Array:
    return v * np.abs(v)


LAWS: dict[str, Callable[[Array], Array]] = {"stribeck": stribeck, "asymmetric": asymmetric, "quadratic": quadratic}
# Half the jump at zero velocity.
JUMPS = {"stribeck": 1.0, "asymmetric": 0.7, "quadratic": 0.0}


def rubbing(name: str, value: float = 0.8) -> dynid.Robot:
    """A wheel with this friction beside its own."""
    bare = wheel(fc=0.5, fv=0.3)
    return bare.with_terms(bare.custom_term(name, 0, lambda q, v, a: LAWS[name](v), value))


def torque(name: str, v: Array, slope: float, value: float = 0.8) -> Array:
    """All friction of `rubbing`, with both jumps as tanh(slope v), written down for one joint."""
    s = np.where(v == 0, 1e-12, v)
    smooth = LAWS[name](s) + JUMPS[name] * (np.tanh(slope * s) - np.sign(s))
    return np.asarray(0.3 * v + 0.5 * np.tanh(slope * v) + value * smooth)


@pytest.mark.parametrize("name", LAWS)
def test_dynamics_and_regressor_of_a_smooth_column(name: str) -> None:
    """The jump of the column, and no more of it, becomes tanh; the sign comes back with slope 0."""
    v = np.append(np.linspace(-1, 1, 41), 0.0)[:, None]
    sharp = rubbing(name)
    smooth = sharp.with_smooth_coulomb(SLOPE)
    zero = np.zeros_like(v)
    bare = sharp.without("f*", f"{name}*")
    friction = dynid.inverse_dynamics(smooth, zero, v, zero) - dynid.inverse_dynamics(bare, zero, v, zero)
    np.testing.assert_allclose(friction[:, 0], torque(name, v[:, 0], SLOPE), atol=1e-9)
    np.testing.assert_allclose(
        dynid.regressor(smooth, zero, v, zero) @ smooth.parameters, dynid.inverse_dynamics(smooth, zero, v, zero)
    )
    back = smooth.with_smooth_coulomb(0.0)
    again, before = (dynid.inverse_dynamics(robot, zero, v, zero) for robot in (back, sharp))
    np.testing.assert_array_equal(again, before)
    term = next(t for t in smooth.drives if t.function is not None)
    assert term.jumps == bool(JUMPS[name]) and term.slope == (SLOPE if JUMPS[name] else 0.0)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(
    ("loop", "bound"),
    [
        (ClosedLoop(integrator="dopri5", tolerance=1e-11), 3e-7),
        (ClosedLoop(integrator="rk4"), 3e-7),
        (ClosedLoop(integrator="implicit", substeps=50), 2e-4),
    ],
    ids=["dopri5", "rk4", "implicit"],
)
def test_the_loop_agrees_with_scipy(name: str, loop: ClosedLoop, bound: float) -> None:
    """DOP853 over every control period, on the equation of the wheel written down here."""
    robot = rubbing(name)
    done = simulate(robot, replace(loop, controller=LAW, sensors=EXACT, coulomb_slope=SLOPE), PATH[:600])
    inertia = float(dynid.mass_matrix(robot, [0.0])[0, 0])
    q, v = float(PATH[0, 0]), float(done.v[0, 0])
    reference_v = np.gradient(PATH[:, 0], 1 / RATE)
    for k in range(600):
        assert abs(done.q[k, 0] - q) < bound and abs(done.v[k, 0] - v) < 50 * bound
        u = KP * (PATH[k, 0] - q) + KD * (reference_v[k] - v)

        def motion(_: float, x: Array, u: float = u) -> list[float]:
            return [x[1], (u - float(torque(name, np.array(x[1]), SLOPE))) / inertia]

        q, v = solve_ivp(motion, (0, 1 / RATE), [q, v], "DOP853", rtol=1e-10, atol=1e-12).y[:, -1]


def test_the_term_is_the_stribeck_effect() -> None:
    """Stribeck friction as a drive term, and as an effect beyond the model: the same motion, sticking included."""
    loops = {
        1e-6: ClosedLoop(controller=LAW, integrator="rk4", coulomb_slope=SLOPE),
        1e-4: ClosedLoop(controller=LAW, integrator="implicit", substeps=20, coulomb_slope="exact"),
    }
    effects = UnmodeledEffects(stiction=0.8, stribeck_velocity=0.3)
    for bound, loop in loops.items():
        term = simulate(rubbing("stribeck"), loop, PATH)
        effect = simulate(wheel(fc=0.5, fv=0.3), loop, PATH, unmodeled=effects)
        assert np.abs(term.q - effect.q).max() < bound
        assert np.abs(term.q - simulate(wheel(fc=0.5, fv=0.3), loop, PATH).q).max() > 1e-3


def test_exact_friction_of_a_column_sticks() -> None:
    """A torque below the sum of Coulomb and Stribeck friction at rest moves nothing, one beyond it does."""
    loop = ClosedLoop(controller=controllers.pd(RATE, 1e-9, 0.0), integrator="implicit", coulomb_slope="exact")
    robot = rubbing("stribeck")
    for push, moves in ((1.25, False), (1.35, True)):
        done = simulate(robot, loop, np.zeros((200, 1)), disturbance=np.full((200, 1), push))
        assert (np.abs(done.v).max() > 0) == moves
