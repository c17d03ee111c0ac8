"""Verdicts on every real recording, with the reasons: method "auto", judged on motion that was not fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from dynid.assessment.verdict.assess import assess
from dynid.assessment.verdict.assessment import Assessment
from dynid.errors import DynidError
from dynid.identification.pipeline import identify
from dynid.recording.recording import Recording
from studies.reproduce.robot_cases import CASES, Case, med7
from studies.reproduce.study import Figure, kept_figures

__all__ = ["figures", "verdict_of"]

_SECTION = "verdicts on real recordings"
# Small joints with large relative errors, and nearly collinear columns, are no reason to refuse an estimate.
_USABLE = ("lwr4", "kr300", "xmate_sensor", "xmate_motor", "tx40_halves")
# Efforts of a controller instead of torques, a run of few seconds, torques of the wrong sign.
_FAULTY = ("tiago", "kinova_sensor", "kinova_current", "med7, torques reversed")


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """One line per recording; a verdict that an engineer would not give is out."""
    cases: dict[str, Callable[[], Case]] = {**CASES, "med7, torques reversed": _reversed}
    yield from kept_figures(
        "real-verdicts", {name: partial(_judged, name, case) for name, case in cases.items()}, folder
    )


def _judged(name: str, case: Callable[[], Case]) -> Iterator[Figure]:
    data = case()
    if data.test is None:
        return
    try:
        found = verdict_of(data)
    except DynidError as error:
        yield Figure(_SECTION, name, "a verdict", "none", 1.0, 0.0, str(error))
        return
    expected = "not do not use" if name in _USABLE else "not trusted" if name in _FAULTY else "any"
    wrong = (name in _USABLE and found.verdict == "do not use") or (name in _FAULTY and found.trusted)
    against = [c for c in found.checks if c.result in ("failed", "warned")]
    reasons = "; ".join(f"{c.result} {c.code.value}: {c.words}" for c in sorted(against, key=lambda c: c.result))
    yield Figure(_SECTION, name, expected, found.verdict, float(wrong), 0.0, reasons or "; ".join(found.reasons))


def verdict_of(case: Case) -> Assessment:
    """The assessment of method "auto" on a recording, by its unseen motion."""
    return assess(identify(case.robot, case.train), case.test, recording=case.train)


def _reversed() -> Case:
    """The recording whose torques have the opposite sign, read as if they had not."""
    data = med7()
    assert data.test is not None
    return Case(data.robot, _turned(data.train), _turned(data.test))


def _turned(recording: Recording) -> Recording:
    return replace(recording, runs=tuple(replace(r, torque=-r.torque) for r in recording.runs if r.torque is not None))
