"""Verdicts on spoiled and on good recordings of independent plants.

Nothing here is published. A user identifies with default settings from one recording and assesses with another. Of
good recordings nearly all should be trusted, of spoiled ones none, and the right cause should be named. Half of the
kinds of faults and half of the seeds are held back while limits are set.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause import Cause
from dynid.assessment.causes.cause_code import UNKNOWN
from dynid.assessment.causes.cause_search import find_causes
from dynid.assessment.causes.cause_source import cause_codes
from dynid.assessment.verdict.assess import assess_evidence, evidence_of
from dynid.assessment.verdict.evidence import Evidence
from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import DataError, DynidError
from dynid.identification.pipeline import identify
from studies.reproduce.study import Figure, finished_rows, rows_file
from studies.reproduce.verdict_advice import error_by_advice, unseen_error
from studies.reproduce.verdict_causes import INVISIBLE, RIGHT_CAUSES, named_codes
from studies.reproduce.verdict_faults import Fault, make_case
from studies.reproduce.verdict_plants import PLANTS

__all__ = ["SPOILED_PLANTS", "Half", "Outcome", "figures", "half_of", "judged"]

Array = NDArray[np.float64]
Half = Literal["development", "held back"]

SPOILED_PLANTS = ("ur10", "tx40")
FAULTS = tuple(fault for fault in Fault if fault is not Fault.NONE)
FEW, MANY = 2, 20  # seeds
SMALL_EFFECT = 0.02  # on predicted torque
NAMED, TRUSTED = 0.8, 0.95
# Kinds that scale the torque of a joint.
_SCALED = (Fault.TORQUE_GAIN, Fault.TORQUE_ASYMMETRIC, Fault.TORQUE_NONLINEAR)
_LAGS = frozenset({"delay", "low_pass"})
# Stated probabilities are compared with how often they are right in these classes.
_CLASSES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
# A cause below this probability is told with doubt.
_SURE = 0.5
_RECORD = "for the record"
_VERDICTS = ("trusted", "use with care", "do not use", "refused")


@dataclass(frozen=True)
class Outcome:
    """What is said of one case.

    `verdict` is "refused" where the recording could not be identified from. `named` are the codes of everything that
    was named. `effect` is the rms error of predicted torques on the true unseen states over the rms torque, of the
    joint where it is largest, NaN where nothing was predicted. `logged_effect` is the same against torques with the
    gain and sign of the log, as a drive needs them whose commands are wrong by the same factor. `told` are the first
    causes that were named, with all candidates and without the right ones: probability, whether it is right, code.
    `first` is the first cause that the verdict tells, likewise, None where it tells none.
    `followed` is the error of unseen motion after the advice of the first cause over that before; NaN where that advice
    cannot be followed from the log.
    """

    plant: str
    seed: int
    fault: Fault
    words: str
    verdict: str
    named: tuple[str, ...]
    effect: float
    logged_effect: float
    seconds: float
    told: tuple[tuple[float, bool, str], ...] = ()
    followed: float = np.nan
    first: tuple[float, bool, str] | None = None

    @property
    def right(self) -> bool:
        """Whether a right cause is among those that were named."""
        return bool(RIGHT_CAUSES[self.fault] & set(self.named))

    @property
    def wrong(self) -> bool:
        """Whether the case is trusted and must not be."""
        return self.verdict == "trusted" and not self.invisible

    @property
    def invisible(self) -> bool:
        """Whether the case is trusted as one that no data could tell, with a small effect on predicted torque.

        A wrong gain that parameters imitate is scaled out of the comparison: the prediction is right in the unit of the
        log, and no recording tells this unit from N m.
        """
        effect = self.logged_effect if self.fault in _SCALED else self.effect
        return self.verdict == "trusted" and self.fault in INVISIBLE and effect < SMALL_EFFECT


def half_of(fault: Fault, seed: int) -> Half:
    """The half of the study that a case belongs to: even seeds of half of the kinds are for development."""
    kind = fault is Fault.NONE or zlib.crc32(fault.encode()) % 2 == 0
    return "development" if kind and seed % 2 == 0 else "held back"


def judged(plant: str, seed: int, fault: Fault) -> Outcome:
    """Identify and assess one case with default settings."""
    started = time.perf_counter()
    case = make_case(plant, seed, fault)
    verdict, named, effect, logged = "refused", set[str](), np.nan, np.nan
    told: tuple[tuple[float, bool, str], ...] = ()
    followed, first = np.nan, None
    try:
        estimate = identify(case.robot, case.training)
        evidence = evidence_of(estimate, case.unseen, recording=case.training)
        assessment = assess_evidence(evidence)
        verdict, named = assessment.verdict, named_codes(evidence, assessment)
        predicted = inverse_dynamics(estimate.identified_robot, *case.states)
        effect, logged = (relative_error(predicted, torque) for torque in (case.torque, case.logged))
        told = tuple(_told(evidence, fault))
        right = RIGHT_CAUSES.get(fault, frozenset())
        first = next(((c.probability, _names(c, right), str(c.code)) for c in evidence.told_causes), None)
        if evidence.causes is not None and evidence.causes.causes:
            before = unseen_error(estimate.validate(case.unseen).relative)
            followed = error_by_advice(evidence.causes.causes[0], case.robot, case.training, case.unseen, before)
    except DynidError as error:
        named = {type(error).__name__}
    seconds = time.perf_counter() - started
    words, codes = case.words, tuple(sorted(named))
    return Outcome(plant, seed, fault, words, verdict, codes, effect, logged, seconds, told, followed, first)


def _told(evidence: Evidence, fault: Fault) -> Iterator[tuple[float, bool, str]]:
    """First causes with all candidates and without the right ones, for kinds that are found in the residual."""
    right = RIGHT_CAUSES.get(fault, frozenset()) & frozenset(cause_codes())
    if not right or evidence.causes is None or evidence.fitted is None or evidence.other_joints:
        return
    hidden = right | (_LAGS if right & _LAGS else frozenset())
    seen = [evidence.fitted, *([evidence.held_out] if evidence.held_out is not None else [])]
    for causes in (evidence.causes, find_causes(evidence.estimate, seen, without=hidden)):
        for c in [c for c in causes.causes if c.code != UNKNOWN][:1]:
            yield c.probability, _names(c, right), str(c.code)


def _names(cause: Cause, right: frozenset[str]) -> bool:
    """Whether a cause or one of its alternatives is right."""
    return bool(right & {x.code for x in (cause, *cause.alternatives)})


def relative_error(predicted: Array, torque: Array) -> float:
    """The rms error over the rms torque of the joint where it is largest; a torque of NaN is not known."""
    known = np.isfinite(torque).any(axis=0)
    error = np.nanmean((predicted - torque)[:, known] ** 2, axis=0)
    return float(np.sqrt(error / np.nanmean(torque[:, known] ** 2, axis=0)).max())


def figures(full: bool = False, half: str | None = None, folder: Path | None = None) -> Iterator[Figure]:
    """The figures of both halves, or of one, with two seeds, or with twenty.

    `folder` keeps finished cases, and a second call does what is missing.
    """
    halves: tuple[Half, ...] = get_args(Half)
    if half is not None and half not in halves:
        raise DataError(f"there is no half '{half}': use {' or '.join(repr(h) for h in halves)}")
    chosen = [h for h in halves if half in (None, h)]
    outcomes = collected(range(MANY if full else FEW), chosen, folder)
    for which in chosen:
        mine = [o for o in outcomes if half_of(o.fault, o.seed) == which]
        yield from _good([o for o in mine if o.fault is Fault.NONE], which)
        yield from _spoiled([o for o in mine if o.fault is not Fault.NONE], which)
        yield from _probabilities(mine, which)


def collected(seeds: Sequence[int], halves: Sequence[Half], folder: Path | None, workers: int = -1) -> list[Outcome]:
    """Outcomes of all cases of these seeds and halves; each is kept in the folder as soon as it is known."""
    plants = {fault: tuple(PLANTS) if fault is Fault.NONE else SPOILED_PLANTS for fault in Fault}
    # Cases of one plant and seed follow each other: they share simulations in the memory of a process.
    wanted = [(p, s, f) for s in seeds for p in PLANTS for f in Fault if p in plants[f] and half_of(f, s) in halves]
    tasks = {f"{plant}, seed {seed}, {fault.value}": (plant, seed, fault) for plant, seed, fault in wanted}
    return [_outcome(row) for row in finished_rows("verdicts", _row, tasks, rows_file("verdicts", folder), workers)]


def _row(plant: str, seed: int, fault: Fault) -> dict[str, Any]:
    return asdict(judged(plant, seed, fault))


def _outcome(row: dict[str, Any]) -> Outcome:
    """The outcome of a row."""
    given = {name: value for name, value in row.items() if name != "name"}
    told = tuple(map(tuple, row["told"]))
    first = None if row.get("first") is None else tuple(row["first"])
    return Outcome(
        **{**given, "fault": Fault(row["fault"]), "named": tuple(row["named"]), "told": told, "first": first}
    )


def _good(outcomes: Sequence[Outcome], half: Half) -> Iterator[Figure]:
    """How many good recordings are trusted, and what speaks against the others."""
    section = f"good recordings, {half} half"
    for plant in PLANTS:
        mine = [o for o in outcomes if o.plant == plant]
        against = Counter(code for o in mine if o.verdict != "trusted" for code in o.named)
        words = ", ".join(f"{code} {count}" for code, count in against.most_common()) or "nothing speaks against them"
        trusted = sum(o.verdict == "trusted" for o in mine)
        ours = f"{trusted} of {len(mine)}; {words}; effect {_effect(mine)}"
        yield Figure(section, f"{plant}: trusted", "", ours, 0.0, np.inf, _RECORD)
    share = float(np.mean([o.verdict == "trusted" for o in outcomes]))
    ours = f"{100 * share:.0f} % of {len(outcomes)}"
    yield Figure(section, "trusted", f"{100 * TRUSTED:.0f} %", ours, max(TRUSTED - share, 0.0), 0.0, "at least")


def _spoiled(outcomes: Sequence[Outcome], half: Half) -> Iterator[Figure]:
    """Verdicts, right causes and effects of each kind and plant; none may be trusted but what no data could tell."""
    section = f"spoiled recordings, {half} half"
    for fault in FAULTS:
        for plant in SPOILED_PLANTS:
            mine = [o for o in outcomes if o.fault is fault and o.plant == plant]
            if not mine:
                continue
            count = Counter(o.verdict for o in mine)
            verdicts = ", ".join(f"{count[v]} {v}" for v in _VERDICTS if count[v])
            right = 100 * float(np.mean([o.right for o in mine]))
            ours = f"{verdicts}; right cause {right:.0f} %; effect {_effect(mine)}"
            wrong = sum(o.wrong for o in mine)
            reason = "trusted only where no data could tell" if fault in INVISIBLE else ""
            yield Figure(section, f"{fault}, {plant}", "none trusted", ours, wrong, 0.0, reason)
    visible = [o for o in outcomes if not o.invisible]
    share = float(np.mean([o.right for o in visible]))
    ours = f"{100 * share:.0f} % of {len(visible)}"
    yield Figure(section, "right cause named", f"{100 * NAMED:.0f} %", ours, max(NAMED - share, 0.0), 0.0, "at least")


def _probabilities(outcomes: Sequence[Outcome], half: Half) -> Iterator[Figure]:
    """How often a first cause is right, by its stated probability, and what following its advice gains."""
    section = f"probabilities of first causes, {half} half"
    told = np.array([x[:2] for o in outcomes for x in o.told], dtype=float).reshape(-1, 2)
    for low, high in pairwise(_CLASSES):
        inside = told[(told[:, 0] >= low) & (told[:, 0] < high)]
        if len(inside):
            ours = f"{100 * inside[:, 1].mean():.0f} % of {len(inside)} right"
            stated = f"{100 * inside[:, 0].mean():.0f} % stated"
            yield Figure(section, f"{100 * low:.0f} to {100 * high:.0f} %", stated, ours, 0.0, np.inf, _RECORD)
    wrong = [o.first for o in outcomes if o.first is not None and not o.first[1]]
    sure = sum(p >= _SURE and code != UNKNOWN for p, _, code in wrong)
    ours = f"wrong in {len(wrong)} of {len(outcomes)} cases, {sure} of them stated from {100 * _SURE:.0f} % on"
    yield Figure(section, "first cause", "", ours, 0.0, np.inf, _RECORD)
    for fault in FAULTS:
        mine = [x for o in outcomes if o.fault is fault for x in o.told]
        known = [p for p, right, _ in mine if right]
        if known:
            others = Counter(code for _, right, code in mine if not right)
            looks = ", ".join(f"{code} {count}" for code, count in others.most_common())
            count = sum(o.fault is fault for o in outcomes)
            ours = f"first in {len(known)} of {count}, stated {100 * np.median(known):.0f} %; else {looks or 'nothing'}"
            yield Figure(section, str(fault), "", ours, 0.0, np.inf, _RECORD)
    left = np.array([o.followed for o in outcomes if not np.isnan(o.followed)])
    if np.isfinite(left).any():
        most = 100 * left[np.isfinite(left)].max()
        refused = f", {np.isinf(left).sum()} refused" if np.isinf(left).any() else ""
        ours = f"error lower in {100 * np.mean(left < 1.0):.0f} % of {len(left)}, at most {most:.0f} %{refused}"
        yield Figure(section, "advice of the first cause followed", "", ours, 0.0, np.inf, _RECORD)


def _effect(outcomes: Sequence[Outcome]) -> str:
    """Median and largest effect on predicted torques, and the median with the gain and sign of the log."""
    effects = [o.effect for o in outcomes if np.isfinite(o.effect)]
    if not effects:
        return "not known"
    words = f"{100 * np.median(effects):.2g} % (at most {100 * max(effects):.2g} %)"
    logged = [o.logged_effect for o in outcomes if np.isfinite(o.effect)]
    return words if logged == effects else f"{words}, {100 * np.median(logged):.2g} % of the torques as logged"
