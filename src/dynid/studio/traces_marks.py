"""Findings of a recording as marked intervals of its plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dynid.assessment.data.battery import finding_codes
from dynid.studio.traces_source import LoggedRun

__all__ = ["marks_of", "whole_run_findings"]


def marks_of(logged: LoggedRun, findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Where findings with rows apply, as the plots draw them.

    Parameters
    ----------
    logged : LoggedRun
        The run that is shown.
    findings : iterable of mapping
        Findings as `dynid check --json` prints them.

    Returns
    -------
    list of dict
        `label`, `severity`, `signal` ("" for all), `joint` (its number, -1 for all) and `intervals` in s.
    """
    times = logged.traces["q"].t
    out, codes = [], finding_codes()
    for found in findings:
        if not found["rows"] or found["run"] != logged.run.name:
            continue
        code = codes[found["code"]]
        # What is about the whole robot is marked in all signals.
        signal = code.signal if found["joint"] else ""
        if signal == "v" and "v" not in logged.traces:
            signal = "q"  # the velocity was differentiated from it
        of = f" of {found['joint']}" if found["joint"] else ""
        intervals = [(float(times[a]), float(times[b - 1])) for a, b in found["rows"]]
        joint = logged.joints.index(found["joint"]) if found["joint"] else -1
        label = f"{found['severity']}: {code.replace('_', ' ')}{of}"
        severity = found["severity"]
        out.append({"label": label, "severity": severity, "signal": signal, "joint": joint, "intervals": intervals})
    return out


def whole_run_findings(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """Sentences of the findings that no rows can be given for."""
    listed = [x for x in findings if not x["rows"]]
    return [f"{x['severity']}: {x['joint'] + ': ' if x['joint'] else ''}{x['what']} {x['how_much']}" for x in listed]
