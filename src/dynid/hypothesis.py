"""Results of hypothesis tests, and the correction of p-values for multiple tests.

    bonferroni: p_i <- k p_i,    holm: p_(i) <- max over j <= i of (k - j + 1) p_(j)
    F = (explained / k) / (rest / freedom)

Sources: Holm, A Simple Sequentially Rejective Multiple Test Procedure (1979); Benjamini and Hochberg, Controlling the
False Discovery Rate (1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidValue, TooFew, UnknownName
from dynid.results import Result, Table, View, about, of_each

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Detail",
    "Hypothesis",
    "HypothesisTest",
    "TestCode",
    "chi2_tail",
    "corrected",
    "f_ratio",
    "f_tail",
    "probability",
]

Array = NDArray[np.float64]
Correction = Literal["holm", "bonferroni", "benjamini-hochberg", "none"]


class TestCode(StrEnum):
    """Stable code of a hypothesis test; names and messages may be reworded, codes are not."""

    __test__ = False  # not a class of test cases, whatever its name suggests to pytest

    WHITENESS = "whiteness"
    NORMALITY = "normality"
    HOMOSCEDASTICITY = "homoscedasticity"
    INSTRUMENT_VALIDITY = "instrument_validity"
    EXOGENEITY = "exogeneity"
    SARGAN = "sargan"
    HANSEN = "hansen"
    HAUSMAN = "hausman"
    NESTED_MODELS = "nested_models"
    DRIVE_TERMS = "drive_terms"


@dataclass(frozen=True)
class Detail(Result):
    """One of several null hypotheses that are tested together, such as one per joint."""

    name: str = field(metadata=about("Name of the joint, parameter or column."))
    statistic: float = field(metadata=about("Test statistic."))
    distribution: str = field(metadata=about("Distribution of the statistic under the null hypothesis."))
    p_value: float = field(metadata=about("p-value of this hypothesis alone."))
    corrected: float = field(metadata=about("p-value corrected for the number of hypotheses."))
    rejected: bool = field(metadata=about("Whether the corrected p-value is below the significance level."))


@dataclass(frozen=True)
class HypothesisTest(Result):
    """Result of a hypothesis test.

    A test of several hypotheses has one `Detail` for each. Its own statistic and p-value are then those of the
    smallest corrected p-value.
    """

    views = MappingProxyType({"rejected": View("rejected", exact=True)})
    tables = (
        Table(
            "hypothesis test",
            "hypothesis",
            of_each(
                "_hypotheses",
                name=str,
                statistic=float,
                distribution=str,
                p_value=float,
                corrected=float,
                rejected=bool,
            ),
        ),
    )

    code: TestCode = field(metadata=about("Stable code of the test."))
    name: str = field(metadata=about("Name of the test for people."))
    null: str = field(metadata=about("The null hypothesis in words."))
    statistic: float = field(metadata=about("Test statistic."))
    distribution: str = field(metadata=about("Distribution of the statistic under the null hypothesis."))
    p_value: float = field(
        metadata=about("Probability of a statistic at least this large if the null hypothesis is true.")
    )
    level: float = field(metadata=about("Significance level; the null hypothesis is rejected below it."))
    verdict: str = field(metadata=about("Conclusion in words."))
    advice: str = field(metadata=about("Recommended next step."))
    correction: str = field(
        default="none",
        metadata=about('Correction for multiple tests: "holm", "bonferroni", "benjamini-hochberg" or "none".'),
    )
    details: tuple[Detail, ...] = field(default=(), metadata=about("Results of the single hypotheses."))
    notes: tuple[str, ...] = field(default=(), metadata=about("Remarks on the validity of the test."))

    @property
    def rejected(self) -> bool:
        """Whether the null hypothesis is rejected."""
        return self.p_value < self.level

    @property
    def rejected_names(self) -> tuple[str, ...]:
        """Names of the details whose own null hypothesis is rejected."""
        return tuple(d.name for d in self.details if d.rejected)

    @property
    def _hypotheses(self) -> tuple[Detail, ...]:
        """The details, or the test itself where it has a single hypothesis."""
        own = Detail(self.name, self.statistic, self.distribution, self.p_value, self.p_value, self.rejected)
        return self.details or (own,)

    def summary(self) -> str:
        """Return the test as text, with one line per detail."""
        lines = [
            self.name,
            f"  null:      {self.null}",
            f"  statistic: {self.statistic:.4g}, under the null {self.distribution}",
            f"  p-value:   {self.p_value:.3g}, significance level {self.level:g}",
            f"  verdict:   {self.verdict}",
            f"  advice:    {self.advice}",
            *(f"  note:      {note}" for note in self.notes),
        ]
        if self.details:
            width = max(len(d.name) for d in self.details)
            lines.append(f"  p-values, single and corrected ({self.correction}); * marks a rejection:")
            lines += [
                f"    {d.name:{width}}  {d.statistic:10.4g}  {d.distribution:14}  {d.p_value:9.3g}  {d.corrected:9.3g}"
                + ("  *" if d.rejected else "")
                for d in self.details
            ]
        return "\n".join(lines)


def tests_frame(tests: Sequence[HypothesisTest]) -> pl.DataFrame:
    """Tests as a table, one row each: code, name, statistic, distribution, p_value, level, rejected and verdict."""
    import polars as pl

    names = ("name", "statistic", "distribution", "p_value", "level", "rejected", "verdict")
    rows = [(t.code.value, *(getattr(t, name) for name in names)) for t in tests]
    numbers = dict.fromkeys(("statistic", "p_value", "level"), float)
    words = {"code": str, **dict.fromkeys(names, str), **numbers, "rejected": bool}
    return pl.DataFrame(rows, schema=words, orient="row")


@dataclass(frozen=True)
class Hypothesis:
    """Code and texts of a test: the null hypothesis, and conclusion and advice for both outcomes."""

    code: TestCode
    name: str
    null: str
    holds: str
    breaks: str
    if_holds: str
    if_breaks: str

    def judge(
        self, statistic: float, distribution: str, p_value: float, level: float, notes: tuple[str, ...] = ()
    ) -> HypothesisTest:
        """Return the result of a single test."""
        rejected = p_value < _checked_level(level)
        return HypothesisTest(
            code=self.code,
            name=self.name,
            null=self.null,
            statistic=float(statistic),
            distribution=distribution,
            p_value=float(p_value),
            level=level,
            verdict=self.breaks if rejected else self.holds,
            advice=self.if_breaks if rejected else self.if_holds,
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
        """Return the result of several tests; `tails` holds statistic, distribution and p-value of each name."""
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
            code=self.code,
            name=self.name,
            null=self.null,
            statistic=strongest.statistic,
            distribution=strongest.distribution,
            p_value=strongest.corrected,
            level=level,
            verdict=f"{self.breaks}: {shown}" if worst else self.holds,
            advice=self.if_breaks if worst else self.if_holds,
            correction=correction,
            details=details,
            notes=notes,
        )


def corrected(p_values: ArrayLike, correction: Correction = "holm") -> Array:
    """Correct p-values for the number of tests.

    Parameters
    ----------
    p_values : array_like, shape (k,)
        p-values between 0 and 1.
    correction : {"holm", "bonferroni", "benjamini-hochberg", "none"}
        "holm" and "bonferroni" bound the probability of any false rejection, "benjamini-hochberg" the expected share
        of false rejections among all rejections. "none" returns the p-values unchanged.

    Returns
    -------
    ndarray, shape (k,)
        Corrected p-values.

    Raises
    ------
    DataError
        If a p-value lies outside [0, 1] or the correction is unknown.

    Examples
    --------
    >>> corrected([0.01, 0.04, 0.5], "bonferroni").round(3).tolist()
    [0.03, 0.12, 1.0]
    """
    p = np.atleast_1d(np.asarray(p_values, dtype=float))
    if p.ndim != 1 or not p.size or not np.all((p >= 0) & (p <= 1)):
        raise InvalidValue("p-values must be numbers between 0 and 1", "p_values")
    # statsmodels offers these too, but collects garbage at every call, which takes longer than most tests here.
    if correction == "none":
        return p
    if correction == "bonferroni":
        return np.minimum(1.0, p.size * p)
    if correction == "benjamini-hochberg":
        return np.asarray(scipy.stats.false_discovery_control(p))
    if correction != "holm":
        raise UnknownName(
            f"correction '{correction}' is unknown: use holm, bonferroni, benjamini-hochberg or none", "correction"
        )
    order = np.argsort(p)
    out = np.empty_like(p)
    out[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return out


def probability(p: float) -> str:
    """A p-value as text; nobody reads the exponents of small ones."""
    return "< 0.001" if p < 1e-3 else f"{p:.2g}"


def f_tail(statistic: float, columns: int, freedom: float) -> tuple[float, str, float]:
    """Return an F statistic with the name of its distribution and its p-value."""
    return statistic, f"F({columns}, {freedom:.0f})", float(scipy.stats.f.sf(statistic, columns, freedom))


def chi2_tail(statistic: float, freedom: int) -> tuple[float, str, float]:
    """Return a chi-square statistic with the name of its distribution and its p-value."""
    return statistic, f"chi2({freedom})", float(scipy.stats.chi2.sf(statistic, freedom))


def f_ratio(explained: float, columns: int, rest: float, rows: float) -> tuple[float, str, float]:
    """F test of the sum of squares explained by `columns` against the residual sum with `rows` degrees of freedom."""
    if rows < 1:
        raise TooFew(f"too few independent rows: {rows:.0f} degrees of freedom are left to test {columns} columns")
    if explained == 0:
        return f_tail(0.0, columns, rows)
    return f_tail(explained / columns / (rest / rows) if rest > 0 else np.inf, columns, rows)


def _checked_level(level: float) -> float:
    """Return a significance level, refusing one outside (0, 1)."""
    if not 0 < level < 1:
        raise InvalidValue(f"the significance level must lie between 0 and 1, got {level}", "level")
    return level
