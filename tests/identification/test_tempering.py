"""What rows are worth: in time, in state, and in the direction of each parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid.identification.observation import Observation
from dynid.identification.observing import observe
from dynid.identification.posterior import LeftOver, independent_shares, scatter
from dynid.identification.row_stream import Block
from tests.support.synthetic import EXACT, arm, record

Array = NDArray[np.float64]


def left(residual: Callable[[Block], Array]) -> Observation:
    """Rows of an arm whose torques are these residuals and nothing else."""
    observation = observe(arm(), record(arm(), (0,), noise=0.0, samples=6000), signals=EXACT)
    blocks = [Block(b.channel, b.W, residual(b), b.index) for b in observation.blocks()]
    factors = []
    for j in range(len(observation.factors)):
        mine = [np.column_stack([b.W, b.y]) for b in blocks if b.channel == j]
        factors.append(np.linalg.qr(np.vstack(mine), mode="r"))
    return replace(observation, factors=tuple(factors), blocks=lambda: iter(blocks))


def shares(observation: Observation) -> Array:
    count = observation.base.count
    return independent_shares(observation, np.zeros(count), np.zeros((count, 1)))


def test_lagged_products_skip_rows_that_are_left_out() -> None:
    rng = np.random.default_rng(1)
    e = rng.normal(size=50)
    index = np.delete(np.arange(0, 100, 2), [7, 8, 20])
    kept = np.delete(e, [7, 8, 20])
    one = LeftOver(np.zeros(1), np.zeros((1, 1)), np.ones((1, 1, 96)))
    sums, _ = one.over([Block(0, np.zeros((47, 1)), kept, index)])
    gaps = e.copy()
    gaps[[7, 8, 20]] = 0.0
    np.testing.assert_allclose(sums[0, :10], [gaps[: 50 - k] @ gaps[k:] for k in range(10)], atol=1e-9)


def test_sums_of_parts_are_those_of_the_whole() -> None:
    """A data set is reduced in parts; cells do not depend on where it is cut."""
    rng = np.random.default_rng(2)
    W, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    one = LeftOver(rng.normal(size=3), rng.normal(size=(3, 2)), rng.normal(size=(1, 3, 96)))
    whole = one.over([Block(0, W, y, np.arange(40))])
    cut = one.join(*(one.over([Block(0, W[k], y[k], np.arange(40)[k])]) for k in (slice(0, 15), slice(15, 40))))
    np.testing.assert_allclose(cut[1], whole[1], atol=1e-12)


def test_white_residuals_are_worth_all_their_rows() -> None:
    rng = np.random.default_rng(3)
    assert np.all(shares(left(lambda b: rng.normal(size=len(b.y)))) > 0.8)


def test_what_repeats_at_the_same_state_is_worth_little() -> None:
    """The same rows in random order: time shows nothing, the state shows a misfit."""
    rng = np.random.default_rng(4)

    def misfit(block: Block) -> Array:
        signs = np.sign(block.W @ np.linspace(-1.0, 1.0, block.W.shape[1]))
        return signs + 0.3 * rng.normal(size=len(block.y))

    structured = left(misfit)
    mixed = []
    for block in structured.blocks():
        order = rng.permutation(len(block.y))
        mixed.append(Block(block.channel, block.W[order], block.y[order], block.index))
    assert np.all(shares(replace(structured, blocks=lambda: iter(mixed))) < 0.1)


@pytest.mark.parametrize("kept", [0.6, 0.9])
def test_colored_residuals_are_worth_their_share(kept: float) -> None:
    rng = np.random.default_rng(5)

    def colored(block: Block) -> Array:
        white = rng.normal(size=len(block.y))
        e = np.empty_like(white)
        e[0] = white[0]
        for k in range(1, len(e)):
            e[k] = kept * e[k - 1] + np.sqrt(1 - kept**2) * white[k]
        return e

    expected = (1 - kept) / (1 + kept)
    found = shares(left(colored))
    assert np.all(found < 1.5 * expected) and np.all(found > 0.5 * expected)


def scattered(residual: Callable[[Block], Array]) -> tuple[Array, float, Observation]:
    observation = left(residual)
    noise = observation.residual_norms(np.zeros(observation.base.count)) / np.sqrt(observation.rows)
    rows = observation.stacked(1.0 / noise)
    root = np.linalg.pinv(rows[:, :-1])
    ratio, freedom = scatter(observation, root @ rows[:, -1], noise, rows[:, :-1], root, 1e-9 * np.eye(len(root)))
    return ratio, freedom, observation


def test_white_residuals_keep_the_covariance_of_the_posterior() -> None:
    rng = np.random.default_rng(6)
    ratio, freedom, _ = scattered(lambda b: rng.normal(size=len(b.y)))
    assert 0.8 < np.median(ratio) < 1.2 and freedom > 25


def test_a_parameter_that_drifts_is_less_certain_than_its_residuals_look() -> None:
    """Friction of joint 1 that falls over time: its residual is white in time, the parameter is not."""
    rng = np.random.default_rng(7)
    name = f"fv_{arm().coordinates[0]}"

    def drifting(block: Block) -> Array:
        noise = rng.normal(size=len(block.y))
        if block.channel:
            return noise
        return noise + np.linspace(1.0, -1.0, 6000)[block.index] * block.W[:, column]

    column = observe(arm(), record(arm(), (0,), noise=0.0, samples=100), signals=EXACT).base.names.index(name)
    ratio, freedom, observation = scattered(drifting)
    worst = observation.base.names[int(np.argmax(ratio))]
    assert worst == name and ratio.max() > 2.0
    assert freedom < 60
