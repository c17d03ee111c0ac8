"""What every hypothesis test returns, and the correction for asking many questions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError

__all__ = ["Detail", "Hypothesis", "HypothesisTest", "chi2_tail", "corrected", "f_ratio", "f_tail"]

Array = NDArray[np.float64]
Correction = Literal["holm", "bonferroni", "benjamini-hochberg", "none"]


@dataclass(frozen=True)
class Detail:
    """One of several questions of a test: `p_value` as it stands alone, `corrected` for the number of questions."""

    name: str
    statistic: float
    distribution: str
    p_value: float
    corrected: float
    rejected: bool


@dataclass(frozen=True)
class HypothesisTest:
    """A null hypothesis, the statistic that speaks against it, and what follows.

    `p_value` is the chance of such a statistic if the null is true; below `level` the null is rejected. A test of
    several questions has their `details`; its own figures are then those of the strongest, corrected for their number.
    """

    name: str
    null: str
    statistic: float
    distribution: str
    p_value: float
    level: float
    verdict: str
    advice: str
    correction: str = "none"
    details: tuple[Detail, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def rejected(self) -> bool:
        return self.p_value < self.level

    @property
    def rejected_names(self) -> tuple[str, ...]:
        """The details whose own null is rejected."""
        return tuple(d.name for d in self.details if d.rejected)

    def summary(self) -> str:
        """The test in words, with a line for each detail."""
        lines = [
            self.name,
            f"  null:      {self.null}",
            f"  statistic: {self.statistic:.4g}, under the null {self.distribution}",
            f"  p-value:   {self.p_value:.3g} against {self.level:g}",
            f"  verdict:   {self.verdict}",
            f"  advice:    {self.advice}",
            *(f"  note:      {note}" for note in self.notes),
        ]
        if self.details:
            width = max(len(d.name) for d in self.details)
            lines.append(f"  p-values alone and corrected ({self.correction}), * where rejected:")
            lines += [
                f"    {d.name:{width}}  {d.statistic:10.4g}  {d.distribution:14}  {d.p_value:9.3g}  {d.corrected:9.3g}"
                + ("  *" if d.rejected else "")
                for d in self.details
            ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {**asdict(self), "rejected": self.rejected}


@dataclass(frozen=True)
class Hypothesis:
    """The words of a test: what is assumed, what is said when it holds or breaks, and what to do then."""

    name: str
    null: str
    holds: str
    breaks: str
    if_holds: str
    if_breaks: str

    def judge(
        self, statistic: float, distribution: str, p_value: float, level: float, notes: tuple[str, ...] = ()
    ) -> HypothesisTest:
        """One question."""
        rejected = p_value < _checked_level(level)
        return HypothesisTest(
            self.name,
            self.null,
            float(statistic),
            distribution,
            float(p_value),
            level,
            self.breaks if rejected else self.holds,
            self.if_breaks if rejected else self.if_holds,
            notes=notes,
        )

    def judge_each(
        self,
        names: Sequence[str],
        tails: Sequence[tuple[float, str, float]],
        level: float,
        correction: Correction = "holm",
        notes: tuple[str, ...] = (),
    ) -> HypothesisTest:
        """Several questions: `tails` holds statistic, distribution and p-value of each name."""
        _checked_level(level)
        adjusted = corrected([p for _, _, p in tails], correction)
        details = tuple(
            Detail(name, float(s), d, float(p), float(a), bool(a < level))
            for name, (s, d, p), a in zip(names, tails, adjusted, strict=True)
        )
        strongest = min(details, key=lambda d: (d.corrected, d.p_value))
        worst = [d.name for d in sorted(details, key=lambda d: d.p_value) if d.rejected]
        shown = ", ".join(worst[:6]) + (f" and {len(worst) - 6} more" if len(worst) > 6 else "")
        return HypothesisTest(
            self.name,
            self.null,
            strongest.statistic,
            strongest.distribution,
            strongest.corrected,
            level,
            f"{self.breaks}: {shown}" if worst else self.holds,
            self.if_breaks if worst else self.if_holds,
            correction,
            details,
            notes,
        )


def corrected(p_values: ArrayLike, correction: Correction = "holm") -> Array:
    """p-values (k,) corrected for their number.

    "holm" and "bonferroni" bound the chance of any false rejection, "benjamini-hochberg" the expected share of false
    ones among the rejections; "none" leaves them.
    """
    p = np.atleast_1d(np.asarray(p_values, dtype=float))
    if p.ndim != 1 or not p.size or not np.all((p >= 0) & (p <= 1)):
        raise DataError("p-values must be numbers between 0 and 1")
    # statsmodels has these too, but collects garbage at every call, which takes longer than most tests here.
    if correction == "none":
        return p
    if correction == "bonferroni":
        return np.minimum(1.0, p.size * p)
    if correction == "benjamini-hochberg":
        return np.asarray(scipy.stats.false_discovery_control(p))
    if correction != "holm":
        raise DataError(f"correction '{correction}' is unknown: use holm, bonferroni, benjamini-hochberg or none")
    order = np.argsort(p)
    out = np.empty_like(p)
    out[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return out


def f_tail(statistic: float, columns: int, freedom: float) -> tuple[float, str, float]:
    """Statistic, distribution in words and p-value of an F statistic."""
    return statistic, f"F({columns}, {freedom:.0f})", float(scipy.stats.f.sf(statistic, columns, freedom))


def chi2_tail(statistic: float, freedom: int) -> tuple[float, str, float]:
    """Statistic, distribution in words and p-value of a chi-square statistic."""
    return statistic, f"chi2({freedom})", float(scipy.stats.chi2.sf(statistic, freedom))


def f_ratio(explained: float, columns: int, rest: float, rows: float) -> tuple[float, str, float]:
    """F test of a sum of squares that `columns` explain against the `rest`, of which `rows` are free."""
    if rows < 1:
        raise DataError(f"too few independent rows: {columns} columns leave {rows:.0f} to judge them by")
    if explained == 0:
        return f_tail(0.0, columns, rows)
    return f_tail(explained / columns / (rest / rows) if rest > 0 else np.inf, columns, rows)


def _checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise DataError(f"a significance level lies between 0 and 1, got {level}")
    return level
