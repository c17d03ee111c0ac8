"""Torques of any model along the reference, alone or laid over what a controller does already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from tests.support.closed_loops import TX40, Array, refused, still, tx40_reference, wheel

RATE = 1000.0
PATH = tx40_reference(RATE, 0.3)
KP, KD = [2000.0, 2000, 600, 300, 300, 100], [60.0, 60, 20, 8, 8, 3]
PD = controllers.pd(RATE, KP, KD)
WRONG = TX40.with_parameters(0.7 * TX40.parameters)


class Difference:
    """What one model has beyond another, with Coulomb friction as the loop smooths it."""

    def __init__(self, right: dynid.Robot, wrong: dynid.Robot) -> None:
        self.right, self.wrong = (r.with_smooth_coulomb(100.0) for r in (right, wrong))

    def torques(self, q: Array, v: Array, a: Array) -> Array:
        return dynid.inverse_dynamics(self.right, q, v, a) - dynid.inverse_dynamics(self.wrong, q, v, a)


class Constant:
    """The same torques always."""

    def __init__(self, *torque: float) -> None:
        self.torque = torque

    def torques(self, q: Array, v: Array, a: Array) -> Array:
        return np.tile(self.torque, (len(q), 1))


def test_a_robot_as_torque_model_is_its_own_feed_forward() -> None:
    """Fed forward as such or by name, to the bit; Coulomb friction is smoothed as the loop asks in both."""
    for parts in ("full", "gravity"):
        for slope in (100.0, 30.0):
            by_name = simulate(TX40, ClosedLoop(controller=PD.with_feedforward(parts, TX40), coulomb_slope=slope), PATH)
            model = PD.with_feedforward(controllers.rigid(TX40, parts=parts))
            np.testing.assert_array_equal(
                simulate(TX40, ClosedLoop(controller=model, coulomb_slope=slope), PATH).q, by_name.q
            )
    assert isinstance(controllers.rigid(TX40), controllers.TorqueModel) and controllers.rigid(TX40).n == 6


def test_any_torque_model_is_fed_forward_along_the_reference() -> None:
    """It is asked once, with the whole reference, and its torques are added to the law's."""
    asked = []

    class Sine:
        def torques(self, q: Array, v: Array, a: Array) -> Array:
            asked.append((q, v, a))
            return np.sin(q) + 0.1 * v + 0.01 * a

    done = simulate(TX40, ClosedLoop(controller=PD.with_feedforward(Sine())), PATH)
    assert len(asked) == 1
    for given, whole in zip(asked[0], (PATH.q, PATH.v, PATH.a), strict=True):
        np.testing.assert_array_equal(given, whole)
    ahead = np.sin(PATH.q) + 0.1 * PATH.v + 0.01 * PATH.a
    expected = np.array(KP) * (PATH.q - done.measured_q) + np.array(KD) * (PATH.v - done.measured_v) + ahead
    np.testing.assert_allclose(done.torque, expected, atol=1e-9)


def test_an_exact_correction_makes_a_wrong_model_right() -> None:
    """Over the feed-forward of a wrong model: the torques of the right one, and not the wrong one twice."""
    loop = ClosedLoop(coulomb_slope=100.0)
    right = simulate(TX40, replace(loop, controller=PD.with_feedforward("full", TX40)), PATH)
    law = controllers.overlay(PD.with_feedforward("full", WRONG), Difference(TX40, WRONG))
    mended = simulate(TX40, replace(loop, controller=law), PATH)
    np.testing.assert_allclose(mended.q, right.q, atol=1e-12)
    np.testing.assert_allclose(mended.torque, right.torque, atol=1e-9)
    assert law.feedforward == "full" and law.model is WRONG
    wrong = simulate(TX40, ClosedLoop(controller=PD.with_feedforward("full", WRONG)), PATH)
    assert np.abs(wrong.q - right.q).max() > 1e-3
    # All torques over the model that is on already: the model counts twice, which is what a correction must not do.
    twice = simulate(
        TX40,
        ClosedLoop(controller=controllers.overlay(PD.with_feedforward("full", WRONG), controllers.rigid(TX40))),
        PATH,
    )
    assert np.abs(twice.q - right.q).max() > 2 * np.abs(wrong.q - right.q).max()


@pytest.mark.parametrize("bound", [2.0, [0.5, 1.0, 2.0, 3.0, 4.0, 0.0]])
def test_corrections_stay_within_their_bound(bound: float | list[float]) -> None:
    """Torque by torque, whatever the model says."""
    difference = Difference(TX40, WRONG)
    law = controllers.overlay(PD, difference, bound=bound)
    raw = difference.torques(PATH.q, PATH.v, PATH.a)
    assert np.any(np.abs(raw) > bound) and np.any(np.abs(raw) < np.maximum(bound, 1e-9))
    np.testing.assert_array_equal(law.torques_ahead(PATH.q, PATH.v, PATH.a), np.clip(raw, -np.array(bound), bound))


def test_a_correction_lies_over_every_kind_of_law() -> None:
    """Computed torque, impedance, a function: the torque at a state is larger by the correction; two add up."""
    push = Constant(1.0, -2.0, 3.0, -4.0, 5.0, -6.0)
    gains = (np.array(KP), np.array(KD))
    laws: list[controllers.Controller] = [
        controllers.computed_torque(RATE, TX40, 400.0, 40.0),
        controllers.impedance(RATE, TX40, 400.0, 40.0),
        controllers.compensation(RATE, TX40, share=0.5, stiffness=100.0),
        controllers.model_position(RATE, TX40, 400.0),
        controllers.function(RATE, 6, lambda t, q_ref, v_ref, a_ref, q, v: gains[0] * (q_ref - q) - gains[1] * v),
        PD,
    ]
    for law in laws:
        once = controllers.overlay(law, push)
        plain, over, double = (
            simulate(TX40, ClosedLoop(controller=x), PATH).torque[0]
            for x in (law, once, controllers.overlay(once, push, bound=2.0))
        )
        np.testing.assert_allclose(over - plain, push.torque, atol=1e-9)
        np.testing.assert_allclose(double - plain, np.array(push.torque) + np.clip(push.torque, -2, 2), atol=1e-9)


@pytest.mark.parametrize("count", [1, 20, 25])
def test_a_slow_model_is_held_between_its_samples(count: int) -> None:
    """Every tenth row is the model's own, the rows up to the next one repeat it, also at an end that is cut off."""
    q, v, a = np.random.default_rng(0).normal(size=(3, count, 6))
    ours = controllers.held(controllers.rigid(TX40), 10).torques(q, v, a)
    exact = dynid.inverse_dynamics(TX40, q, v, a)
    np.testing.assert_allclose(ours, exact[10 * (np.arange(count) // 10)], atol=1e-12)


def test_a_held_model_is_fed_forward_at_its_own_rate() -> None:
    """Torques of every fifth period, held, fed forward or laid over a law; friction of the model is smoothed too."""
    every = PATH.q[::5], PATH.v[::5], PATH.a[::5]
    ahead = np.repeat(dynid.inverse_dynamics(TX40.with_smooth_coulomb(30.0), *every), 5, axis=0)
    slow = controllers.held(controllers.rigid(TX40), 5)
    for law in (PD.with_feedforward(slow), controllers.overlay(PD, slow)):
        run = simulate(TX40, ClosedLoop(controller=law, coulomb_slope=30.0), PATH)
        feedback = np.array(KP) * (PATH.q - run.measured_q) + np.array(KD) * (PATH.v - run.measured_v)
        np.testing.assert_allclose(run.torque, ahead + feedback, atol=1e-8)


def test_what_cannot_be_held_is_refused() -> None:
    model = controllers.rigid(TX40)
    for ticks in (0, -3, 2.5, True, "ten"):
        refused(lambda t=ticks: controllers.held(model, t), "control periods")  # type: ignore[misc]
    refused(lambda: controllers.held(TX40, 10), "torques(q, v, a)")  # type: ignore[arg-type]
    refused(lambda: controllers.held(controllers.RigidModel, 10), "torques(q, v, a)")  # type: ignore[arg-type]
    refused(lambda: controllers.computed_torque(RATE, controllers.held(model, 10), KP, KD), "held")


def test_bad_torque_models_are_refused(tmp_path: Path) -> None:
    """What is none, what gives the wrong shape or no numbers, and files that cannot hold one."""
    one = controllers.pd(RATE, 1.0, 1.0)
    refused(lambda: controllers.overlay(one, wheel()), "torques(q, v, a)")  # type: ignore[type-var]
    refused(lambda: controllers.overlay(PATH, Constant(1.0)), "controllers")  # type: ignore[type-var]
    refused(lambda: controllers.overlay(one, Constant(1.0), bound=-1.0), "bound", "negative")
    refused(lambda: controllers.overlay(one, Constant(1.0), bound=[1.0, 2.0]), "bound", "(1)")
    refused(lambda: controllers.overlay(one, Constant(1.0), bound=np.nan), "bound")
    refused(lambda: one.with_feedforward(wheel()), "torque model")  # type: ignore[arg-type]
    refused(lambda: one.with_feedforward(Constant), "torque model")  # type: ignore[arg-type]
    refused(lambda: one.with_feedforward(3.0), "torque model", "3.0")  # type: ignore[arg-type]
    refused(lambda: one.with_feedforward("full"), "needs a robot model")
    refused(lambda: one.with_feedforward(Constant(1.0), wheel()), "without a robot model")
    refused(lambda: controllers.computed_torque(RATE, wheel(), 1.0, 1.0).with_feedforward(Constant(1.0)), "computed")
    refused(lambda: controllers.rigid("tx40"), "Robot")  # type: ignore[arg-type]
    refused(lambda: controllers.rigid(TX40, parts="friction"), "friction")  # type: ignore[arg-type]
    path = still(1, RATE, 0.1)
    for bad in (Constant(1.0, 2.0), Constant(np.nan), Constant("east")):  # type: ignore[arg-type]
        for law in (one.with_feedforward(bad), controllers.overlay(one, bad)):
            refused(lambda law=law: simulate(wheel(), ClosedLoop(controller=law), path), "Constant")  # type: ignore[misc]
    for law in (one.with_feedforward(Constant(1.0)), controllers.overlay(one, Constant(1.0))):
        refused(lambda law=law: controllers.save_controller(law, tmp_path / "x.toml"), "torque model")  # type: ignore[misc]
    assert not (tmp_path / "x.toml").exists()
