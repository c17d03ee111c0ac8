"""Batches: samples do not see each other, threads change nothing, and bad input is refused in words."""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import DataError, Robot
from dynid.dynamics import batch
from dynid.dynamics.kernels import inverse
from dynid.errors import InvalidShape, InvalidType, InvalidValue, MissingArgument, NotFinite
from tests.support.errors import expect_error
from tests.support.random_robots import random_motion, random_robot, with_custom_terms

Array = NDArray[np.float64]

# Name -> result of every batch function for a robot and q, v, a.
FUNCTIONS: dict[str, Callable[[Robot, Array, Array, Array], Array | tuple[Array, ...]]] = {
    "regressor": dynid.regressor,
    "inverse dynamics": dynid.inverse_dynamics,
    "forward dynamics": dynid.forward_dynamics,
    "mass matrix": lambda robot, q, v, a: dynid.mass_matrix(robot, q),
    "coriolis matrix": lambda robot, q, v, a: dynid.dynamics.coriolis_matrix(robot, q, v),
    "coriolis torque": lambda robot, q, v, a: dynid.dynamics.coriolis_torque(robot, q, v),
    "gravity torque": lambda robot, q, v, a: dynid.dynamics.gravity_torque(robot, q),
    "bias torque": lambda robot, q, v, a: dynid.dynamics.bias_torque(robot, q, v),
    "kinetic energy": lambda robot, q, v, a: dynid.dynamics.kinetic_energy_regressor(robot, q, v),
    "potential energy": lambda robot, q, v, a: dynid.dynamics.potential_energy_regressor(robot, q),
    "frame placement": lambda robot, q, v, a: dynid.dynamics.frame_placement(robot, q, robot.links[-1].name),
    "frame jacobian": lambda robot, q, v, a: dynid.dynamics.frame_jacobian(robot, q, robot.links[-1].name),
    "adjoint": lambda robot, q, v, a: dynid.dynamics.regressor_adjoint(robot, weights(robot, v), q, v, a),
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def weights(robot: Robot, v: Array) -> Array:
    """Weights for the adjoint that go with a sample, not with its place in the batch."""
    shape = (len(robot.channels), len(robot.layout))
    return np.sin(v[..., :1, None] + np.arange(np.prod(shape)).reshape(shape))


def results(name: str, robot: Robot, q: Array, v: Array, a: Array) -> tuple[Array, ...]:
    out = FUNCTIONS[name](robot, q, v, a)
    return out if isinstance(out, tuple) else (out,)


def robot_of_all_sorts(base: str = "floating") -> Robot:
    return with_custom_terms(random_robot(51, 6, base=base, mimics=1, drives=True))


@every_function
def test_shuffled_samples_give_shuffled_results(name: str) -> None:
    """No sample sees another: any order of the samples gives the same numbers, bit for bit."""
    robot = robot_of_all_sorts()
    q, v, a = random_motion(robot, 52, samples=30)
    order = np.random.default_rng(53).permutation(30)
    shuffled = results(name, robot, q[order], v[order], a[order])
    for one, other in zip(results(name, robot, q, v, a), shuffled, strict=True):
        assert np.array_equal(one[order], other)


@every_function
@pytest.mark.parametrize("base", ["fixed", "floating", "instrumented"])
def test_one_sample_equals_its_row_of_the_batch(name: str, base: str) -> None:
    """A sample given alone, without its first axis, gives its row of the batch result, bit for bit."""
    robot = robot_of_all_sorts(base)
    q, v, a = random_motion(robot, 54, samples=5)
    alone = results(name, robot, q[3], v[3], a[3])
    for one, other in zip(results(name, robot, q, v, a), alone, strict=True):
        assert np.array_equal(one[3], other)


@every_function
def test_threads_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One, two and three threads give the same numbers, bit for bit."""
    robot = robot_of_all_sorts()
    q, v, a = random_motion(robot, 55, samples=1601)
    found = {}
    for threads in (1, 2, 3):
        monkeypatch.setenv("DYNID_THREADS", str(threads))
        assert batch.thread_count() == threads
        found[threads] = results(name, robot, q, v, a)
    for one, two, three in zip(*found.values(), strict=True):
        assert np.array_equal(one, two)
        assert np.array_equal(one, three)


@every_function
def test_any_layout_of_the_arrays_will_do(name: str) -> None:
    """Lists, strided and read-only arrays give what plain ones give, and leave the input as it was."""
    robot = robot_of_all_sorts()
    q, v, a = random_motion(robot, 56, samples=3)
    plain = results(name, robot, q, v, a)
    kept = [x.copy() for x in (q, v, a)]
    for make in (np.asfortranarray, read_only, lambda x: np.repeat(x, 2, axis=0)[::2]):
        for one, other in zip(plain, results(name, robot, *(make(x) for x in (q, v, a))), strict=True):
            assert np.array_equal(one, other)
    assert all(np.array_equal(x, y) for x, y in zip(kept, (q, v, a), strict=True))
    if name != "adjoint":  # its weights are made from arrays
        for one, other in zip(plain, results(name, robot, q.tolist(), v.tolist(), a.tolist()), strict=True):
            assert np.array_equal(one, other)


def read_only(x: Array) -> Array:
    out = x.copy()
    out.flags.writeable = False
    return out


def test_read_only_input_compiles_nothing_new() -> None:
    """Frozen arrays, as recordings hold them, run in the kernel that is there already."""
    robot = random_robot(57, 3)
    state = random_motion(robot, 58)
    dynid.inverse_dynamics(robot, *state)
    before = len(inverse.inverse_dynamics.signatures)
    dynid.inverse_dynamics(robot, *(read_only(x) for x in state))
    dynid.inverse_dynamics(robot, *(np.asfortranarray(x) for x in state))
    assert len(inverse.inverse_dynamics.signatures) == before


def _torque_sum(seed: int) -> float:
    robot = random_robot(59, 3)
    return float(dynid.inverse_dynamics(robot, *random_motion(robot, seed, samples=1500)).sum())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system cannot fork")
def test_threads_survive_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forked worker starts threads of its own; it does not wait for those of its parent."""
    monkeypatch.setenv("DYNID_THREADS", "2")
    here = [_torque_sum(seed) for seed in (1, 2)]  # the second call runs on the pool
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map_async(_torque_sum, [1, 2]).get(timeout=60) == here


@every_function
def test_no_samples_give_empty_results(name: str) -> None:
    """A batch of length zero is a batch: its result has the usual shape with zero samples."""
    robot = robot_of_all_sorts()
    q, v, a = random_motion(robot, 60, samples=2)
    for one, other in zip(results(name, robot, q, v, a), results(name, robot, q[:0], v[:0], a[:0]), strict=True):
        assert other.shape == (0, *one.shape[1:])


def test_a_wrong_shape_names_the_array_and_the_shape_it_needs() -> None:
    """q, v and a of other widths, ranks or lengths are refused with the shape that is needed."""
    robot = random_robot(61, 3, base="floating")
    q, v, a = random_motion(robot, 62)
    with expect_error(InvalidShape, "q"):
        dynid.regressor(robot, q[:, 1:], v, a)
    with expect_error(InvalidShape, "v"):
        dynid.regressor(robot, q, v[None], a)
    with expect_error(InvalidShape):
        dynid.regressor(robot, q, v, a[:3])
    with expect_error(InvalidShape):
        dynid.regressor(robot, q[0], v[:1], a[:1])
    with expect_error(MissingArgument, "a"):
        dynid.regressor(robot, q, v, None)
    with expect_error(InvalidType, "v"):
        dynid.regressor(robot, q, "fast", a)


def test_values_that_are_not_finite_are_found() -> None:
    """The error says in which array, at which sample and in which column."""
    robot = random_robot(63, 3)
    q, v, a = random_motion(robot, 64)
    a[2, 1] = np.inf
    with expect_error(NotFinite, "a"):
        dynid.inverse_dynamics(robot, q, v, a)


def test_a_quaternion_must_have_unit_length() -> None:
    """A scaled quaternion is refused with its sample; its negative is the same attitude."""
    robot = random_robot(65, 2, base="floating")
    q, v, a = random_motion(robot, 66)
    flipped = q.copy()
    flipped[:, 3:7] *= -1
    assert np.array_equal(dynid.regressor(robot, flipped, v, a), dynid.regressor(robot, q, v, a))
    q[3, 3:7] *= 1.1
    with expect_error(InvalidValue):
        dynid.regressor(robot, q, v, a)


def test_a_wrong_parameter_vector_is_refused() -> None:
    """Another length, or an entry that is not finite, which is named."""
    robot = random_robot(67, 2)
    q, v, a = random_motion(robot, 68)
    for nonsense in ("heavy", {"m": 1.0}, ["x"] * 20):
        with expect_error(InvalidType, "parameters"):
            dynid.inverse_dynamics(robot, q, v, a, nonsense)
    with expect_error(InvalidShape, "parameters"):
        dynid.inverse_dynamics(robot, q, v, a, np.ones(19))
    pi = robot.parameters.copy()
    pi[12] = np.nan
    with pytest.raises(DataError, match=f"'{robot.parameter_names[12]}'"):
        dynid.inverse_dynamics(robot, q, v, a, pi)


@pytest.mark.parametrize("given", ["0", "two", "-1", "1.5"])
def test_a_wrong_number_of_threads_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """DYNID_THREADS must be a positive whole number."""
    monkeypatch.setenv("DYNID_THREADS", given)
    with pytest.raises(DataError, match=f"DYNID_THREADS.*'{given}'"):
        batch.thread_count()


def test_threads_default_to_the_cores_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a setting every core that the process may use gets a thread."""
    monkeypatch.delenv("DYNID_THREADS", raising=False)
    assert 1 <= batch.thread_count() <= multiprocessing.cpu_count()


def test_a_long_first_call_is_explained_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A kernel whose first call takes long is said to be compiling; later calls are silent."""
    monkeypatch.setattr(batch, "_NOTICE_AFTER_S", 0.01)

    def slow(start: int, stop: int) -> int:
        time.sleep(0.2)
        return stop - start

    with caplog.at_level(logging.WARNING, logger="dynid"):
        assert batch.run(slow, 5, (), ()) == [5]
        assert batch.run(slow, 7, (), ()) == [7]
    assert [record.message for record in caplog.records] == ["compiling slow (once; later runs use the cache)"]


def test_two_robots_do_not_share_their_compiled_form() -> None:
    """Results belong to the robot they were asked for, however the two alternate."""
    one, two = random_robot(69, 3), random_robot(70, 3)
    q, v, a = random_motion(one, 71)
    first = dynid.inverse_dynamics(one, q, v, a), dynid.inverse_dynamics(two, q, v, a)
    again = dynid.inverse_dynamics(one, q, v, a), dynid.inverse_dynamics(two, q, v, a)
    assert all(np.array_equal(x, y) for x, y in zip(first, again, strict=True))
    assert not np.allclose(*first)
