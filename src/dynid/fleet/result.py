"""Result of a fleet identification: estimates of entries, units and fleet, and the health of the units."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import NotApplicable, UnknownName, WrongFormat
from dynid.files import writing_bytes
from dynid.fleet.arrow import Arrow
from dynid.fleet.entries import EntryFault, shown_date
from dynid.fleet.health import Health
from dynid.fleet.kinds import ParameterKind, kinds_of, owners_of
from dynid.fleet.pooling import Pooled
from dynid.fleet.whitened import WhitenedEntry
from dynid.markup import html_table
from dynid.parameters.base import BASE, BaseParameters
from dynid.results import SavedResult, about
from dynid.terminal import rendered, table_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FleetEstimate"]

Array = NDArray[np.float64]

_FORMATS = (".parquet", ".csv")


@dataclass(frozen=True, eq=False)
class FleetEstimate(SavedResult):
    """Estimates of a fleet and the health of its units."""

    kind = "fleet"

    base: BaseParameters = field(metadata=about("The base parameters of the robot.", codec=BASE))
    units: tuple[str, ...] = field(metadata=about("Names of the units."))
    entries: tuple[WhitenedEntry, ...] = field(
        metadata=about("The estimate of every entry by itself, in order of units and dates.")
    )
    shared_names: tuple[str, ...] = field(
        metadata=about("Base parameters that are common to all units in the shared model.")
    )
    shared: Arrow = field(
        metadata=about(
            "The shared model: common parameters, and those of the units or entries beside them; NaN for "
            "entries whose bodies are not those of the fleet, which take no part."
        )
    )
    pooled: Pooled | None = field(
        metadata=about("Partial pooling: shrinkage estimates of the units; None for a single unit.")
    )
    health: Health = field(metadata=about("Changes of the units."))
    gains: Array | None = field(
        metadata=about(
            "Gain of the torque measurement of every unit relative to the mean of the fleet, where it was asked for.",
            size=("unit", "channel"),
        )
    )
    gains_std: Array | None = field(metadata=about("Standard deviation of the gains.", size=("unit", "channel")))
    noise_ratio: Array = field(
        metadata=about("Standard deviation relative to that of white noise, averaged over the fleet.", size=("b",))
    )
    faults: tuple[EntryFault, ...] = field(metadata=about("Entries that were left out."))
    seconds: float = field(metadata=about("Computing time in s."))

    @property
    def kinds(self) -> tuple[ParameterKind, ...]:
        """Kind of each base parameter."""
        return kinds_of(self.base)

    @property
    def left_out(self) -> int:
        """Number of entries that were left out."""
        return len(self.faults)

    def of_unit(self, unit: str) -> tuple[Array, Array]:
        """Shrinkage estimate of one unit and its standard deviations, both (b,)."""
        if unit not in self.units:
            raise UnknownName(f"no unit is named '{unit}', there are {', '.join(self.units)}", "unit")
        if self.pooled is None:
            raise NotApplicable("a fleet of one unit is not pooled: use the shared model")
        k = self.units.index(unit)
        return self.pooled.values[k], self.pooled.std[k]

    def to_frame(self) -> pl.DataFrame:
        """All estimates as a tidy table.

        Returns
        -------
        polars.DataFrame
            Columns unit, date, joint, parameter, value, std and kind. Kind is "entry" (by itself), "shared model",
            "pooled" (shrinkage estimate of a unit), "fleet mean", "between units" (standard deviation), "drift per 30
            days", "gain", or "change". SI units.
        """
        import polars as pl

        names, joints = self.base.names, owners_of(self.base)
        rows: list[tuple[str | None, str | None, str, str, float, float, str]] = []
        for k, one in enumerate(self.entries):
            day = shown_date(one.moment)
            for kind, values, std in (
                ("entry", one.beta, one.std),
                ("shared model", self.shared.values[k], self.shared.std[k]),
            ):
                rows += [
                    (one.unit, day, j, n, float(v), float(s), kind)
                    for j, n, v, s in zip(joints, names, values, std, strict=True)
                ]
        if self.pooled is not None:
            for k, unit in enumerate(self.units):
                own = zip(joints, names, self.pooled.values[k], self.pooled.std[k], strict=True)
                rows += [(unit, None, j, n, float(v), float(s), "pooled") for j, n, v, s in own]
            mean_std = np.sqrt(np.maximum(np.diag(self.pooled.mean_covariance), 0.0))
            fleet = zip(joints, names, self.pooled.mean, mean_std, np.sqrt(self.pooled.variance), strict=True)
            for j, n, v, s, b in fleet:
                rows.append((None, None, j, n, float(v), float(s), "fleet mean"))
                rows.append((None, None, j, n, float(b), float("nan"), "between units"))
        joint_of = dict(zip(names, joints, strict=True))
        for d in self.health.drifts:
            rows.append((d.unit, None, joint_of[d.parameter], d.parameter, d.per_month, d.std, "drift per 30 days"))
        for c in self.health.changes:
            rows.append((c.unit, c.date, c.joint, c.parameter, c.value, c.std, "change"))
        if self.gains is not None and self.gains_std is not None:
            for k, unit in enumerate(self.units):
                own_gains = zip(self.base.channels, self.gains[k], self.gains_std[k], strict=True)
                rows += [(unit, None, c, "gain", float(g), float(s), "gain") for c, g, s in own_gains]
        schema = {"unit": str, "date": str, "joint": str, "parameter": str, "value": float, "std": float, "kind": str}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def write(self, path: str | Path) -> None:
        """Write the table into a Parquet or CSV file.

        Parameters
        ----------
        path : str or Path
            File that ends with .parquet or .csv.

        Raises
        ------
        DataError
            If the file has another ending.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in _FORMATS:
            raise WrongFormat(f"the table of a fleet is written as {' or '.join(_FORMATS)}, not as '{suffix}'")
        table = self.to_frame()
        with writing_bytes(path) as file:
            table.write_parquet(file) if suffix == ".parquet" else table.write_csv(file)

    def summary(self) -> str:
        """Verdicts of the units, changed ones first, as wide as the terminal."""
        table = table_of("units", "unit", "verdict", "dates", "found", text=("unit", "verdict", "found"))
        quiet = [u for u in self.health.units if not u.changes and u.unlike is None and not u.untested]
        for unit in self.health.units:
            if unit not in quiet[3:]:
                for k, words in enumerate(unit.sentences):
                    first = (unit.unit, unit.code.value, str(unit.dates)) if k == 0 else ("", "", "")
                    table.add_row(*first, words)
        for code, count in Counter(u.code for u in quiet[3:]).items():
            table.add_row(f"{count} more", code.value, "", "")
        closing = (
            f"{len(self.units)} units, {len(self.entries)} entries, {self.left_out} left out; probability of any false "
            f"alarm {self.health.rate:g} over {self.health.tests} series; {self.seconds:.1f} s"
        )
        return rendered(table, closing, *self.health.notes, *(f"left out: {f.words}" for f in self.faults))

    def to_dict(self) -> dict[str, Any]:
        """Health and shared parameters as plain data."""
        std = np.sqrt(np.maximum(np.diag(self.shared.shared_covariance), 0.0))
        return {
            "robot": self.base.robot.name,
            "units": [
                {
                    "unit": u.unit,
                    "code": u.code.value,
                    "dates": u.dates,
                    "words": u.words,
                    "changes": [c.to_dict() for c in u.changes],
                }
                for u in self.health.units
            ],
            "shared": [
                {"name": n, "value": float(v) if np.isfinite(v) else None, "std": float(s) if np.isfinite(s) else None}
                for n, v, s in zip(self.shared_names, self.shared.shared, std, strict=True)
            ],
            "entries": len(self.entries),
            "left_out": [{"unit": f.unit, "date": f.date, "words": f.words} for f in self.faults],
            "notes": list(self.health.notes),
            "rate": self.health.rate,
            "tests": self.health.tests,
            "seconds": self.seconds,
        }

    def _repr_html_(self) -> str:
        rows = [(u.unit, u.code.value, u.dates, u.words) for u in self.health.units[:20]]
        return html_table(f"fleet of {len(self.units)} units", ("unit", "verdict", "dates", "found"), rows)

    def __repr__(self) -> str:
        changed = sum(bool(u.changes) for u in self.health.units)
        return f"FleetEstimate({len(self.units)} units, {len(self.entries)} entries, {changed} changed)"
