"""The plan of a calibration: the postures to measure, the path through them, and the accuracy that they give."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid.files import write_text
from dynid.results import Result, about
from dynid.terminal import rendered, table_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PosturePlan"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PosturePlan(Result):
    """Postures for a geometric calibration, in the order in which to measure them."""

    robot: str = field(metadata=about("Name of the robot."))
    joints: tuple[str, ...] = field(metadata=about("Names of its joints.", size=("n",)))
    q: Array = field(metadata=about("Postures (rad or m).", size=("N", "n")))
    labels: dict[str, tuple[str, ...]] = field(
        metadata=about("Labels of each posture by their name, such as the socket in which the ball is.")
    )
    frame: str = field(metadata=about("Frame of the robot that is measured."))
    criterion: str = field(metadata=about("What the choice is best for: i, d, e or a."))
    value: float = field(metadata=about("The criterion, which is made small."))
    accuracy: float = field(
        metadata=about("95 % of the errors of the tool's position over the workspace are below this.", unit="m")
    )
    absolute: bool = field(
        metadata=about("Whether errors are those in the base of the file, or those left after the base is placed best.")
    )
    counts: NDArray[np.intp] = field(metadata=about("Numbers of postures.", size=("k",)))
    accuracies: Array = field(
        metadata=about("The accuracy with so many of the candidates, chosen for each number.", unit="m", size=("k",))
    )
    random: Array = field(
        metadata=about("The accuracy with so many random candidates, median of several draws.", unit="m", size=("k",))
    )
    best: float = field(metadata=about("The accuracy that no number of these postures improves.", unit="m"))
    points: Array = field(metadata=about("Positions of the tool in the workspace (m).", size=("W", "3")))
    errors: Array = field(metadata=about("Expected root mean square error of each.", unit="m", size=("W",)))
    unknowns: tuple[str, ...] = field(metadata=about("Names of the unknowns, those of sensors included.", size=("X",)))
    prior_std: Array = field(
        metadata=about("Standard deviations that are expected before, infinite where nothing is known.", size=("X",))
    )
    std: Array = field(metadata=about("Standard deviations that the postures give.", size=("X",)))
    path: Array = field(
        metadata=about("Stops of the path: the start, the postures, and what lies in between.", size=("m", "n"))
    )
    stops: NDArray[np.intp] = field(
        metadata=about("Which posture each stop is; -1 where nothing is measured.", size=("m",))
    )
    unsafe: tuple[tuple[int, int], ...] = field(
        metadata=about("Moves between postures, by number (-1: the start), without a path that keeps the clearances.")
    )
    candidates: int = field(metadata=about("Number of candidates from which the postures were chosen."))
    notes: tuple[str, ...] = field(default=(), metadata=about("What was not checked or assumed, in words."))

    def to_frame(self) -> pl.DataFrame:
        """The postures as a table.

        Returns
        -------
        polars.DataFrame
            One row per posture, one column per joint (rad or m), then those of the labels.
        """
        import polars as pl

        columns = {name: self.q[:, k] for k, name in enumerate(self.joints)}
        return pl.DataFrame(columns | {name: list(values) for name, values in self.labels.items()})

    def to_csv(self, path: str | Path) -> None:
        """Write the postures, one column per joint with its name, then those of the labels.

        Parameters
        ----------
        path : str or Path
            File to write.
        """
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow([*self.joints, *self.labels])
        for k, posture in enumerate(self.q):
            table.writerow([*(f"{x:.17g}" for x in posture), *(values[k] for values in self.labels.values())])
        write_text(path, out.getvalue())

    def summary(self) -> str:
        """The postures, and the accuracy against their number."""
        shown = table_of(
            f"{self.robot}: {len(self.q)} postures of {self.candidates}", "posture", *self.joints, *self.labels
        )
        for k, posture in enumerate(self.q):
            shown.add_row(str(k + 1), *(f"{x:.3f}" for x in posture), *(v[k] for v in self.labels.values()))
        curve = table_of("95 % tool error (mm)", "postures", "chosen", "random")
        for count, chosen, random in zip(self.counts, self.accuracies, self.random, strict=True):
            curve.add_row(str(count), f"{1e3 * chosen:.3g}", f"{1e3 * random:.3g}")
        where = "in the base of the file" if self.absolute else "after the base is placed best"
        lines = [
            f"95 % of the tool's errors over the workspace are below {1e3 * self.accuracy:.3g} mm, {where}; "
            f"no number of postures leaves less than {1e3 * self.best:.3g} mm"
        ]
        lines += [f"no free path was found from posture {a + 1} to {b + 1}" for a, b in self.unsafe]
        return rendered(shown, curve, *lines, *(f"note: {x}" for x in self.notes))
