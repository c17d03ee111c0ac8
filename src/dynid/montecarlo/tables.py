"""Tables of a Monte Carlo study: every fit, every estimate, and the summary in the layout of the papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.errors import UnknownName
from dynid.files import writing_bytes
from dynid.markup import HtmlFrame

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MonteCarlo"]

_CASE = ("robot", "noise", "filter", "start")
_FIT = (*_CASE, "method", "run")
OUTCOMES = ("converged", "not converged", "aborted", "failed", "no data")
_FIT_TYPES: dict[str, Any] = {
    "robot": str, "noise": str, "filter": str, "start": str, "method": str,
    "run": int, "outcome": str, "status": str, "iterations": int, "smallest": float,
    "seconds": float, "simulation_seconds": float, "solver_seconds": float,
}  # fmt: skip
_ESTIMATE_TYPES: dict[str, Any] = {
    "robot": str, "noise": str, "filter": str, "start": str, "method": str,
    "run": int, "kind": str, "parameter": str, "estimate": float, "std": float,
    "truth": float,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class MonteCarlo(HtmlFrame):
    """Results of a Monte Carlo study.

    Attributes
    ----------
    fits : polars.DataFrame
        One row per fit: robot, noise, filter, start, method, run, outcome (converged, not converged, aborted, failed,
        no data), status, iterations, smallest feasibility slack of any iteration, seconds, and the figures of the
        study's own `measure`. Methods that do not simulate have no start.
    estimates : polars.DataFrame
        One row per parameter and fit, of kind "base" or "standard": estimate, predicted standard deviation (`std`) and
        true value, in SI units.
    """

    fits: pl.DataFrame
    estimates: pl.DataFrame

    @staticmethod
    def from_units(units: Sequence[dict[str, Any]]) -> MonteCarlo:
        """Build the tables from the results of the recordings, in their order."""
        import polars as pl

        figures = sorted({name for unit in units for fit in unit["fits"] for name in fit.get("figures", {})})
        fits = [
            {key: {**unit, **fit}.get(key) for key in _FIT_TYPES}
            | {name: fit.get("figures", {}).get(name) for name in figures}
            for unit in units
            for fit in unit["fits"]
        ]
        estimates = pl.concat([_estimates(unit) for unit in units])
        return MonteCarlo(pl.DataFrame(fits, schema=_FIT_TYPES | dict.fromkeys(figures, float)), estimates)

    def to_frame(self) -> pl.DataFrame:
        """Every estimate joined with the row of its fit."""
        return self.estimates.join(self.fits, on=_FIT, how="left", nulls_equal=True, maintain_order="left")

    def methods(self) -> pl.DataFrame:
        """Runs and outcomes of every method, with mean iterations and seconds of the fits that converged."""
        import polars as pl

        good = pl.col("outcome") == "converged"
        counts = [(pl.col("outcome") == o).sum().alias(o) for o in OUTCOMES]
        means = [
            pl.col(c).filter(good).mean() for c in ("iterations", "seconds", "simulation_seconds", "solver_seconds")
        ]
        return self.fits.group_by(*_CASE, "method", maintain_order=True).agg(pl.len().alias("runs"), *counts, *means)

    def parameters(self, kind: str = "base") -> pl.DataFrame:
        """Statistics of every parameter by method, over the fits that converged.

        Parameters
        ----------
        kind : {"base", "standard"}, default "base"
            Base or standard parameters.

        Returns
        -------
        polars.DataFrame
            Columns truth, mean, std (of the estimates), predicted (mean of the predicted standard deviations) and
            bias_percent.
        """
        import polars as pl

        if kind not in ("base", "standard"):
            raise UnknownName(f"parameters are of kind 'base' or 'standard', not '{kind}'", "kind")
        converged = self.fits.filter(pl.col("outcome") == "converged").select(_FIT)
        rows = self.estimates.filter(pl.col("kind") == kind).join(
            converged, on=_FIT, how="semi", nulls_equal=True, maintain_order="left"
        )
        mean = pl.col("estimate").mean()
        truth = pl.col("truth").first()
        return rows.group_by(*_CASE, "method", "parameter", maintain_order=True).agg(
            pl.len().alias("fits"),
            truth,
            mean.alias("mean"),
            pl.col("estimate").std().alias("std"),
            pl.col("std").mean().alias("predicted"),
            pl.when(truth != 0).then(100 * (mean - truth) / truth.abs()).alias("bias_percent"),
        )

    def summary(self, parameters: Sequence[str] | None = None, kind: str = "base") -> str:
        """Summarise the study as Markdown.

        Parameters
        ----------
        parameters : sequence of str, optional
            Names of the parameters to show; all by default.
        kind : {"base", "standard"}, default "base"
            Base or standard parameters.

        Returns
        -------
        str
            One table per case: mean, standard deviation and bias of each method beside the truth, then the outcomes.
        """
        import polars as pl

        known = set(self.estimates.filter(pl.col("kind") == kind)["parameter"])
        for name in parameters or ():
            if name not in known:
                raise UnknownName(f"the study has no {kind} parameter '{name}'", "name")
        figures, methods = self.parameters(kind), self.methods()
        if parameters is not None:
            figures = figures.filter(pl.col("parameter").is_in(list(parameters)))
        return "\n".join(line for case in _cases(methods) for line in _case_text(case, figures, methods))

    def to_csv(self, path: str | Path) -> None:
        """Write `table` as CSV."""
        with writing_bytes(path) as file:
            self.to_frame().write_csv(file)

    def to_parquet(self, path: str | Path) -> None:
        """Write `table` as Parquet."""
        with writing_bytes(path) as file:
            self.to_frame().write_parquet(file)

    def __repr__(self) -> str:
        converged = int((self.fits["outcome"] == "converged").sum())
        return f"MonteCarlo({len(self.fits)} fits, {converged} converged)"


def _estimates(unit: dict[str, Any]) -> pl.DataFrame:
    """One row per parameter of every fit that has an estimate."""
    import polars as pl

    frames = [pl.DataFrame(schema=_ESTIMATE_TYPES)]
    for fit in unit["fits"]:
        label = {key: {**unit, **fit}[key] for key in _FIT}
        for kind in ("base", "standard"):
            if fit.get(kind) is None:
                continue
            values, std = fit[kind]
            columns = {
                "kind": kind,
                "parameter": unit[kind]["names"],
                "estimate": values,
                "std": std,
                "truth": unit[kind]["truth"],
            }
            frames.append(pl.DataFrame(label | columns, schema=_ESTIMATE_TYPES))
    return pl.concat(frames)


def _cases(methods: pl.DataFrame) -> Iterator[dict[str, str | None]]:
    """Every robot, noise, filter and start; the rows without a start belong to each start of their case."""
    import polars as pl

    cases = methods.select(_CASE).unique(maintain_order=True)
    for case in cases.iter_rows(named=True):
        others = cases.filter(*(pl.col(c) == case[c] for c in _CASE[:3]), pl.col("start").is_not_null())
        if case["start"] is not None or others.is_empty():
            yield case


def _case_text(case: dict[str, str | None], figures: pl.DataFrame, methods: pl.DataFrame) -> Iterator[str]:
    import polars as pl

    def of_case(frame: pl.DataFrame) -> pl.DataFrame:
        mine = [pl.col(c) == case[c] for c in _CASE[:3]]
        return frame.filter(*mine, pl.col("start").is_null() | pl.col("start").eq_missing(pl.lit(case["start"])))

    figures, methods = of_case(figures), of_case(methods)
    names = methods["method"].to_list()
    yield f"### {', '.join(f'{c} {case[c]}' for c in _CASE if case[c] is not None)}"
    yield ""
    yield f"| parameter | {' | '.join(f'{n} | bias % | std' for n in names)} | true |"
    yield f"|---|{'---|---|---|' * len(names)}---|"
    for parameter in figures["parameter"].unique(maintain_order=True):
        rows = {r["method"]: r for r in figures.filter(pl.col("parameter") == parameter).iter_rows(named=True)}
        truth = next(iter(rows.values()))["truth"]
        yield f"| {parameter} | {' | '.join(_cell(rows.get(n)) for n in names)} | {truth:.5g} |"
    yield ""
    yield f"| method | runs | {' | '.join(OUTCOMES)} | iterations | seconds |"
    yield f"|---|---|{'---|' * len(OUTCOMES)}---|---|"
    for row in methods.iter_rows(named=True):
        counts = " | ".join(str(row[o]) for o in OUTCOMES)
        costs = f"{_number(row['iterations'])} | {_number(row['seconds'])}"
        yield f"| {row['method']} | {row['runs']} | {counts} | {costs} |"
    yield ""


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "- | - | -"
    std, bias = _number(row["std"]), row["bias_percent"]
    return f"{row['mean']:.5g} ({std}) | {'-' if bias is None else f'{bias:+.2f}'} | {_number(row['predicted'])}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
