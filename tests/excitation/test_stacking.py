"""Motions designed for what earlier recordings leave uncertain: the information, the design, and when it ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.errors import DynidError, InvalidType, InvalidValue, Mismatch, NotApplicable, NotIdentifiable
from dynid.excitation import Information, StackEnd, earlier_information, stack_excitations, stacking
from dynid.excitation.stacking import ExcitationStack
from dynid.identification import observe
from dynid.robot.model import Robot
from tests.support.errors import Error, expect_error

LIMITS = {"*": {"acceleration": 10.0}}
NOISE = np.array([0.3, 0.05])


@pytest.fixture(scope="module")
def robot() -> Robot:
    return dynid.load_robot("twolink")


@pytest.fixture(scope="module")
def recordings(robot: Robot) -> list[dynid.Recording]:
    return [synthetic_recording(robot, seed, duration=5.0) for seed in (0, 1)]


def stack(robot: Robot, **settings: object) -> ExcitationStack:
    given = {"family": "cubic", "limits": LIMITS, "budget": 30, "noise": NOISE} | settings
    return stack_excitations(robot, 2.0, **given)  # type: ignore[arg-type]


def test_information_is_the_sum_over_rows_weighted_by_the_noise_of_their_joint(
    robot: Robot, recordings: list[dynid.Recording]
) -> None:
    """W' S^-1 W from the rows themselves, of both recordings together, and of their concatenation."""
    base = dynid.base_parameters(robot)
    expected = np.zeros((base.count, base.count))
    for one in recordings:
        for block in observe(robot, one).blocks():
            expected += block.W.T @ block.W / NOISE[block.channel] ** 2
    for sources in (recordings, [recordings[0] + recordings[1]], [observe(robot, x) for x in recordings]):
        found = earlier_information(base, sources, noise=NOISE)
        np.testing.assert_allclose(found.matrix, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(found.std, np.sqrt(np.diag(np.linalg.inv(expected))), rtol=1e-8)
    equal = earlier_information(base, recordings, noise=0.3)
    assert np.abs(equal.matrix - expected).max() > 0.1 * np.abs(expected).max()


def test_information_of_an_estimate_is_the_inverse_of_its_covariance(
    robot: Robot, recordings: list[dynid.Recording]
) -> None:
    """Also for the posterior of "auto", for its own drive terms."""
    for method in ("wls", "auto"):
        estimate = dynid.identify(robot, recordings[0], method=method)
        found = earlier_information(dynid.base_parameters(estimate.robot), estimate)
        product = found.matrix @ estimate.covariance
        np.testing.assert_allclose(product, np.eye(estimate.base.count), atol=1e-6)
        np.testing.assert_allclose(found.std, estimate.std, rtol=1e-8)
        # Autocorrelated rows tell less than as many independent ones.
        assert np.all(found.noise >= estimate.noise)
    with expect_error(Mismatch):
        earlier_information(dynid.base_parameters(robot), estimate)
    singular = replace(estimate, covariance=np.ones_like(estimate.covariance))
    with expect_error(NotIdentifiable):
        earlier_information(dynid.base_parameters(estimate.robot), singular)


def test_noise_of_recordings_is_found_from_their_residuals(robot: Robot, recordings: list[dynid.Recording]) -> None:
    """The same as that of weighted least squares, and the rate is that of the rows."""
    seen = observe(robot, recordings[0])
    found = earlier_information(seen.base, recordings[0])
    np.testing.assert_allclose(found.noise, dynid.identify(robot, recordings[0], method="wls").noise, rtol=0.01)
    assert seen.domain is not None and found.rate == max(seen.rows) / seen.domain.seconds


def test_nothing_known_leaves_the_design_as_it_is(robot: Robot) -> None:
    """To the last bit, whether nothing is given or information of no rows."""
    base = dynid.base_parameters(robot)
    nothing = earlier_information(base, noise=NOISE)
    assert nothing.rows.shape == (0, base.count) and np.all(np.isinf(nothing.std))
    motions = [
        dynid.design_excitation(robot, 3.0, limits=LIMITS, budget=20, noise=NOISE, after=after)
        for after in ((), nothing, [nothing])
    ]
    for motion in motions[1:]:
        assert np.array_equal(motion.coefficients, motions[0].coefficients) and motion.value == motions[0].value


def test_a_motion_complements_what_is_known(robot: Robot) -> None:
    """After recordings that show all but one joint's friction, the design gains more there than one from scratch."""
    base = dynid.base_parameters(robot)
    weak = base.names.index("fv_joint2")
    rows = np.diag(np.where(np.arange(base.count) == weak, 1e-3, 1e3))
    known = Information(base, rows, NOISE)
    settings = {"limits": LIMITS, "budget": 60, "noise": NOISE, "criterion": "a"}
    fresh, aimed = (dynid.design_excitation(robot, 3.0, after=after, **settings) for after in ((), known))  # type: ignore[arg-type]
    first, second = (known.with_motion(motion).std[weak] for motion in (fresh, aimed))
    assert second < 0.9 * first


def test_rows_of_a_recording_and_of_a_design_grid_have_the_same_weight(robot: Robot) -> None:
    """A criterion on few samples of a motion sees what its recording adds to the earlier ones."""
    motion = dynid.design_excitation(robot, 4.0, limits=LIMITS, budget=10, noise=NOISE)
    base = motion.criterion.base
    known = earlier_information(base, noise=NOISE, rate=250.0).with_motion(motion)
    again = dynid.design_excitation(robot, 4.0, limits=LIMITS, budget=1, noise=NOISE, after=known, samples=100)
    stacked = again.criterion.known
    # One second of 250 rows counts as 25 of the 100 rows of the grid.
    W = motion.base_regressor(250.0)[:-1] / NOISE[:, None]
    expected = np.einsum("tci,tcj->ij", W, W) * 100 / 1000
    np.testing.assert_allclose(stacked.T @ stacked, expected, rtol=1e-9, atol=1e-9 * expected.max())


def test_stack_is_that_of_all_motions_in_one(robot: Robot) -> None:
    """Information of the motions one by one equals that of their rows together; they join without a move."""
    found = stack(robot, most=3, least_gain=0.0)
    assert found.end is StackEnd.MOST and "3 motions are the most" in found.reason
    W = np.concatenate([m.base_regressor(100.0)[:-1] / NOISE[:, None] for m in found.motions])
    information = np.einsum("tci,tcj->ij", W, W)
    np.testing.assert_allclose(found.std[-1], np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-9)
    assert found.condition_numbers[-1] == pytest.approx(np.sqrt(np.linalg.cond(information)), rel=1e-6)
    assert found.motion.duration == pytest.approx(6.0) and np.all(np.isinf(found.std[0]))
    assert all(worst >= -1e-6 for m in found.motions for worst in m.slacks.values())
    for after, before in zip(found.motions[1:], found.motions, strict=False):
        np.testing.assert_allclose(after.at(0.0)[0], before.at(2.0)[0], atol=1e-9)
    assert np.all(found.std[2] < found.std[1]) and np.all(found.std[3] < found.std[2])


def test_it_ends_where_nothing_is_gained(robot: Robot) -> None:
    """The gain is that of Algorithm 1 for condition numbers: (previous - now) / now."""
    found = stack(robot, criterion="cond", least_gain=0.3, most=9)
    assert found.end is StackEnd.NO_GAIN and "less than 30 %" in found.reason
    assert 1 < len(found.motions) < 9 and np.isinf(found.gains[0])
    assert np.all(found.gains[:-1] >= 0.3) and found.gains[-1] < 0.3
    # The criterion rounds off the corners of the condition number.
    weighted = found.condition_numbers[1:-1] / found.condition_numbers[2:] - 1
    np.testing.assert_allclose(found.gains[1:], weighted, atol=0.15)


def test_it_ends_at_the_target_and_not_before(robot: Robot) -> None:
    """Every standard deviation is below that share of its size for the first time."""
    found = stack(robot, target=0.3, least_gain=0.0)
    assert found.end is StackEnd.TARGET and f"after {len(found.motions)} motion" in found.reason
    worst = found.relative_std.max(axis=1)
    assert worst[-1] <= 30 < worst[-2]
    known = found.before.with_rows(np.diag(1e6 / found.sizes))
    ready = stack(robot, target=0.3, after=known, noise=None)
    assert not ready.motions and ready.end is StackEnd.TARGET and "earlier recordings alone" in ready.reason
    assert "earlier recordings alone" in ready.summary()


def test_the_sum_of_condition_numbers_has_a_gain_too(robot: Robot) -> None:
    """It is no logarithm, unlike the other criteria."""
    found = stack(robot, criterion="sum-cond", most=2)
    sums = []
    for motions in (found.motions[:1], found.motions):
        W = np.concatenate([m.base_regressor()[:-1] / NOISE[:, None] for m in motions])
        parts = found.motions[0].criterion.parts
        sums.append(sum(np.linalg.cond(W[:, :, list(columns)].reshape(-1, len(columns))) for _, columns in parts))
    assert found.gains[1] == pytest.approx(sums[0] / sums[1] - 1, abs=0.05)


def test_plans_take_all_that_is_known(robot: Robot, recordings: list[dynid.Recording]) -> None:
    """Recordings and their observations count the same, and what is planned agrees with the stack."""
    motion = dynid.design_excitation(robot, 3.0, limits=LIMITS, budget=10, noise=NOISE)
    first, second = (
        motion.plan(NOISE, rate=50, previous=x) for x in (recordings, [observe(robot, r) for r in recordings])
    )
    np.testing.assert_array_equal(first.std, second.std)
    known = earlier_information(motion.criterion.base, recordings, noise=NOISE, rate=50)
    np.testing.assert_allclose(first.std, known.with_motion(motion).std, rtol=1e-8)


def test_progress_says_which_motion(robot: Robot) -> None:
    """The share grows over all motions."""
    seen: list[dynid.progress.Progress] = []
    stack(robot, most=2, budget=5, progress=seen.append)
    assert any("motion 2 of at most 2" in x.message for x in seen)
    shares = [x.share for x in seen if x.share is not None]
    assert shares == sorted(shares) and shares[-1] == 1.0


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"target": 0.0}, (InvalidValue, "target")),
        ({"least_gain": 1.0}, (InvalidValue, "least_gain")),
        ({"most": 0}, (InvalidValue, "most")),
        ({"family": "fourier-free"}, (NotApplicable, "family")),
        ({"rate": 0.0}, (InvalidValue, "rate")),
        ({"after": "run.csv"}, (InvalidType, "")),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], error: Error, robot: Robot) -> None:
    """Before any search."""
    with expect_error(*error):
        stack(robot, **settings)


def test_motions_that_need_not_join(robot: Robot) -> None:
    """A family without a start posture, each motion for itself."""
    found = stack(robot, family="fourier-free", size=3, joined=False, most=2)
    assert len(found.motions) == 2
    page = found.to_dict()
    assert page["end"] == "most" and page["condition_numbers"][0] is None and len(page["motions"]) == 2


def test_where_limits_leave_no_room_the_next_motion_begins_elsewhere(robot: Robot) -> None:
    """A motion that ends on its limit is not the last one; the first must begin where it was told to."""
    corner = robot.limits["joint1"].upper * np.array([1.0, 0.0])
    settings = {"duration": 2.0, "family": "cubic", "limits": LIMITS, "budget": 5}
    motion = stacking._next(robot, corner, True, settings, None)
    assert abs(motion.at(0.0)[0][0, 0] - corner[0]) > 0.01 and min(motion.slacks.values()) >= -1e-6
    with expect_error(DynidError, "start", code="infeasible"):
        stacking._next(robot, corner, False, settings, None)


def test_motions_apart_have_a_move_in_between(robot: Robot) -> None:
    """Also where they end on their limits."""
    found = stack(robot, most=2, joined=False)
    first, second = found.motions
    assert not np.allclose(first.at(2.0)[0], second.at(0.0)[0], atol=0.01)
    assert found.motion.duration > 4.0 and len(found.motion.parts) == 3
