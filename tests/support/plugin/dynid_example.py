"""A package that adds a method and two formats of log files to dynid, without a change in dynid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification import Method, MethodOptions, Outcome, Solution
from dynid.identification.estimators.least_squares import joint_noise, robust_scale, wls
from dynid.identification.estimators.options import check_at_least_one
from dynid.identification.estimators.solution import solve_factor
from dynid.identification.observation import Block, Observation, fold
from dynid.recording import Reader
from dynid.recording.files import read_bytes
from dynid.recording.table import Table

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class LadOptions(MethodOptions):
    """Options of method "lad": the largest number of iterations."""

    max_iterations: int = 200

    def __post_init__(self) -> None:
        check_at_least_one("max_iterations", self.max_iterations)


@dataclass(frozen=True, eq=False)
class Rooted:
    """The rows [W y] in units of the noise, divided by the root of their absolute residual, as one factor.

    A residual counts as at least a hundredth of the noise, so that the iteration converges.
    """

    beta: Array
    noise: Array

    def over(self, blocks: Iterable[Block]) -> Array:
        factor = np.zeros((0, self.beta.size + 1))
        for block in blocks:
            noise = self.noise[block.channel]
            size = np.maximum(np.abs(block.y - block.W @ self.beta) / noise, 1e-2)
            rows = np.column_stack([block.W, block.y]) / (noise * np.sqrt(size))[:, None]
            factor = fold(np.vstack([factor, rows]))
        return factor

    def join(self, first: Array, second: Array) -> Array:
        return fold(np.vstack([first, second]))


def lad(observation: Observation, options: LadOptions) -> Solution:
    """Minimise the sum of absolute residuals by weighted least squares, again and again."""
    start = wls(observation)
    beta, noise = start.beta, joint_noise(observation, start.beta)
    converged, iteration = False, 0
    while iteration < options.max_iterations and not converged:
        iteration += 1
        parts = observation.reduced(Rooted(beta, noise))
        factor = fold(np.vstack([observation.known_rows(1.0 / noise), *parts]))
        new, inverse = solve_factor(factor, observation.base)
        enough = np.maximum(1e-3 * np.linalg.norm(inverse, axis=1), 1e-9 * np.abs(new).max())
        converged = bool(np.all(np.abs(new - beta) < enough))
        beta = new
    scale = robust_scale(observation, beta)
    inverse = solve_factor(observation.stacked(1.0 / scale), observation.base)[1]
    return Solution(
        beta,
        0.5 * np.pi * inverse @ inverse.T,  # for Gaussian noise
        scale,
        "solved" if converged else "stopped at the iteration limit",
        Outcome.CONVERGED if converged else Outcome.NOT_CONVERGED,
        iteration,
    )


LAD = Method(
    name="lad",
    sentence="Least absolute deviations: the sum of absolute torque errors is smallest.",
    options=LadOptions,
    function=lad,
    reads_again=True,
    robust=True,
)


def read_transposed(path: Path) -> Table:
    """A column per line: its name and its numbers."""
    try:
        lines = [line.split() for line in read_bytes(path).decode().splitlines()]
        return Table(path.name, {name: np.array(values, dtype=float) for name, *values in lines})
    except ValueError as error:
        raise DataError(f"{path.name} is not a transposed table: {error}") from None


TRANSPOSED = Reader(
    name="transposed",
    title="transposed tables",
    sentence="A column per line: its name and its numbers.",
    endings=(".rows",),
    function=read_transposed,
    compressed=True,
)


def read_columns(path: Path) -> Table:
    """A file of numbers per column, and their names in order in `columns.list`."""
    names = (path / "columns.list").read_text().split()
    return Table(path.name, {name: np.loadtxt(path / name) for name in names})


COLUMNS = Reader(
    name="columns",
    title="folders of columns",
    sentence="A file of numbers per column, and their names in order in columns.list.",
    endings=(),
    function=read_columns,
    marks=("columns.list",),
)
