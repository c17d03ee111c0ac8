"""Assessment: one of three verdicts, and the checks that led to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from dynid import results
from dynid.errors import UnknownName, did_you_mean
from dynid.identification.judgement import REASONS, Judgement
from dynid.results import Table, View, about, of_each

__all__ = ["RESULTS", "Assessment", "Check", "CheckCode", "Result", "Trust"]

Result = Literal["passed", "warned", "failed", "not checked"]
Trust = Literal["trusted", "use with care", "do not use"]
RESULTS: tuple[Result, ...] = ("failed", "warned", "passed", "not checked")


class CheckCode(StrEnum):
    """Stable code of a check of an estimate; names and messages may be reworded, codes are not."""

    SOLVER = "solver"
    EVIDENCE = "evidence"
    UNSEEN_MOTION = "unseen_motion"
    VALIDATION_ERROR = "validation_error"
    ERROR_GROWTH = "error_growth"
    PARAMETER_AGREEMENT = "parameter_agreement"
    PAYLOAD = "payload"
    PRIOR = "prior"
    SIMULATION_ERROR = "simulation_error"
    PHYSICALLY_CONSISTENT = "physically_consistent"
    PLAUSIBLE_BODIES = "plausible_bodies"
    UNIDENTIFIED_MASS = "unidentified_mass"
    MASS_MATRIX = "mass_matrix"
    SIGNS = "signs"
    EXCITATION = "excitation"
    RECORDING_LENGTH = "recording_length"
    PREDICTION_UNCERTAINTY = "prediction_uncertainty"
    GEOMETRY = "geometry"
    TORQUE_SCALE = "torque_scale"
    FLEXIBILITY = "flexibility"
    CHANGE = "change"
    DELAY = "delay"
    RESIDUAL = "residual"
    FEEDBACK = "feedback"
    INSTRUMENTS = "instruments"
    DATA = "data"
    CUTOFF = "cutoff"
    STANDSTILL = "standstill"
    DOMAIN = "domain"
    LAW = "law"
    GAINS = "gains"
    ARM_MODEL = "arm_model"
    UNCERTAINTY = "uncertainty"
    BOUNDS = "bounds"
    UNITS = "units"
    TEMPERATURE = "temperature"
    FLEET_SCATTER = "fleet_scatter"
    NOISE = "noise"
    OUTLIERS = "outliers"
    PLAUSIBLE_GEOMETRY = "plausible_geometry"


_NAMES = {
    CheckCode.SOLVER: "solver",
    CheckCode.EVIDENCE: "evidence",
    CheckCode.UNSEEN_MOTION: "unseen motion",
    CheckCode.VALIDATION_ERROR: "error on unseen motion",
    CheckCode.ERROR_GROWTH: "growth of the error",
    CheckCode.PARAMETER_AGREEMENT: "agreement of the recordings",
    CheckCode.PAYLOAD: "payload in unseen motion",
    CheckCode.PRIOR: "better than the a-priori model",
    CheckCode.SIMULATION_ERROR: "error of simulated motion",
    CheckCode.PHYSICALLY_CONSISTENT: "physically consistent",
    CheckCode.PLAUSIBLE_BODIES: "plausible bodies",
    CheckCode.UNIDENTIFIED_MASS: "mass that is not identified",
    CheckCode.MASS_MATRIX: "positive definite mass matrix",
    CheckCode.SIGNS: "signs",
    CheckCode.EXCITATION: "excitation",
    CheckCode.RECORDING_LENGTH: "length of the recording",
    CheckCode.PREDICTION_UNCERTAINTY: "uncertainty within the joint limits",
    CheckCode.GEOMETRY: "geometry",
    CheckCode.TORQUE_SCALE: "torques fit each other",
    CheckCode.FLEXIBILITY: "flexibility",
    CheckCode.CHANGE: "change with time",
    CheckCode.DELAY: "delay",
    CheckCode.RESIDUAL: "residual",
    CheckCode.FEEDBACK: "feedback",
    CheckCode.INSTRUMENTS: "instruments",
    CheckCode.DATA: "data",
    CheckCode.CUTOFF: "cut-off",
    CheckCode.STANDSTILL: "every joint moves",
    CheckCode.DOMAIN: "domain of validity",
    CheckCode.LAW: "law",
    CheckCode.GAINS: "gains of the drives",
    CheckCode.ARM_MODEL: "model of the arm",
    CheckCode.UNCERTAINTY: "standard deviation",
    CheckCode.BOUNDS: "within bounds",
    CheckCode.UNITS: "units that can be judged",
    CheckCode.TEMPERATURE: "friction or temperature",
    CheckCode.FLEET_SCATTER: "scatter of the units",
    CheckCode.NOISE: "noise of the sensors",
    CheckCode.OUTLIERS: "postures set aside",
    CheckCode.PLAUSIBLE_GEOMETRY: "plausible geometry",
}
# Checks that name a cause, and those that see an effect of whatever cause.
_CAUSES = frozenset(
    {
        *(CheckCode.SIGNS, CheckCode.GEOMETRY, CheckCode.TORQUE_SCALE, CheckCode.FLEXIBILITY, CheckCode.CHANGE),
        *(CheckCode.DELAY, CheckCode.RESIDUAL, CheckCode.PAYLOAD, CheckCode.DATA),
    }
)
_EFFECTS = frozenset(
    {
        *(CheckCode.VALIDATION_ERROR, CheckCode.ERROR_GROWTH, CheckCode.PARAMETER_AGREEMENT),
        *(CheckCode.SIMULATION_ERROR, CheckCode.PREDICTION_UNCERTAINTY),
    }
)
# Reasons of a trusted estimate, the most important first.
_IN_FAVOUR = (
    CheckCode.UNCERTAINTY,
    CheckCode.VALIDATION_ERROR,
    CheckCode.PARAMETER_AGREEMENT,
    CheckCode.PHYSICALLY_CONSISTENT,
    CheckCode.PREDICTION_UNCERTAINTY,
    CheckCode.DOMAIN,
    CheckCode.LAW,
    CheckCode.FLEET_SCATTER,
    CheckCode.PRIOR,
)


@dataclass(frozen=True)
class Check(results.Result):
    """Result of one check of an estimate."""

    views = MappingProxyType({"name": View("name", exact=True)})

    code: CheckCode = field(metadata=about("Stable code of the check."))
    result: Result = field(metadata=about('Outcome: "passed", "warned", "failed" or "not checked".'))
    words: str = field(metadata=about("What was found, in words."))
    figure: float | None = field(default=None, metadata=about("The measured figure, in `unit`."))
    limit: float | None = field(default=None, metadata=about("The check passes up to this figure."))
    failure: float | None = field(default=None, metadata=about("The check fails beyond this figure."))
    unit: str = field(default="", metadata=about("Unit of the figure, in words."))
    advice: str = field(default="", metadata=about('Recommended remedy; "" where the check passed.'))
    effects: tuple[str, ...] = field(
        default=(), metadata=about("Effects that the remedy adds to the model, as for `Robot.with_effects`.")
    )

    @property
    def name(self) -> str:
        """Name of the check for people."""
        return _NAMES[self.code]


@dataclass(frozen=True)
class Assessment(results.SavedResult):
    """Verdict on an estimate, with the reasons and every check."""

    kind = "assessment"
    views = MappingProxyType({"verdict": View("verdict", exact=True), "reasons": View("reasons", exact=True)})
    tables = (
        Table(
            "assessment",
            "check",
            of_each(
                "checks",
                code=str,
                result=str,
                words=str,
                figure=float,
                limit=float,
                failure=float,
                unit=str,
                advice=str,
            ),
        ),
    )

    robot: str = field(metadata=about("Name of the robot."))
    method: str = field(metadata=about("Method of the estimate."))
    checks: tuple[Check, ...] = field(metadata=about("All checks, with figures and limits.", least=1))

    @property
    def verdict(self) -> Trust:
        """ "trusted", "use with care" (a check warned) or "do not use" (a check failed)."""
        found = {c.result for c in self.checks}
        if "failed" in found:
            return "do not use"
        return "use with care" if "warned" in found else "trusted"

    @property
    def trusted(self) -> bool:
        """Whether no check warned or failed."""
        return self.verdict == "trusted"

    @property
    def against(self) -> tuple[Check, ...]:
        """Checks that failed or warned; those that name a cause before those that only detect its effect."""
        return tuple(sorted((c for c in self.checks if c.result in ("failed", "warned")), key=_rank))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Sentences of the checks that failed or warned; for a trusted estimate, the reasons to trust it."""
        in_favour = [c for code in _IN_FAVOUR for c in self.checks if c.code == code]
        return tuple(c.words for c in self.against or in_favour)

    def judgement(self) -> Judgement:
        """The verdict in short, for `Estimate.with_judgement` and the files made of the estimate."""
        unseen = any(c.code is CheckCode.UNSEEN_MOTION and c.result == "passed" for c in self.checks)
        return Judgement(self.verdict, self.reasons[:REASONS], unseen)

    def check(self, code: CheckCode | str) -> Check:
        """Return a check by its code.

        Parameters
        ----------
        code : CheckCode or str
            Code of the check, such as "physically_consistent".

        Returns
        -------
        Check

        Raises
        ------
        DataError
            If there is no such check in this assessment.
        """
        for check in self.checks:
            if check.code == code:
                return check
        known = [c.code.value for c in self.checks]
        raise UnknownName(f"check '{code}' is unknown: use {', '.join(known)}{did_you_mean(code, known)}", "code")

    def summary(self) -> str:
        """Return verdict and reasons as text, then one line per check."""
        lines = [f"verdict: {self.verdict}", *(f"  - {reason}" for reason in self.reasons)]
        width = max(len(c.name) for c in self.checks)
        return "\n".join([*lines, *(f"  {c.result:11}  {c.name:{width}}  {_shown(c)}" for c in self.checks)])


def _rank(check: Check) -> tuple[int, float]:
    """Place of a check among those against an estimate; causes in the order of what they add to the torques."""
    if check.code in _CAUSES:
        size = (check.figure or 0.0) if check.unit == "of the torque" else 0.0
        return 0 if check.result == "failed" else 2, -math.inf if check.code is CheckCode.SIGNS else -size
    if check.code in _EFFECTS:
        return 3 if check.result == "failed" else 5, 0.0
    return 1 if check.result == "failed" else 4, 0.0


def _shown(check: Check) -> str:
    """Figure, unit and limit of a check; "" where it has no figure."""
    if check.figure is None:
        return ""
    limit = "" if check.limit is None else f" (limit {check.limit:.3g})"
    return f"{check.figure:.3g} {check.unit}{limit}"
