"""Simulation error by horizon of every real robot: the identified against the a-priori model, on held-out motion.

Nothing here is published. Models are identified from the training recordings by method "auto" and simulated along the
test recordings, without feedback from the measured positions; the KR300, whose controller is known, in closed loop too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.model.horizon import ModelErrors, SimulationError
from dynid.assessment.model.horizon_simulation import simulation_error
from dynid.identification.estimate import Estimate
from dynid.identification.pipeline import identify
from studies.reproduce.kr300 import load_kr300
from studies.reproduce.robot_cases import CASES
from studies.reproduce.study import Figure, kept_figures

__all__ = ["errors_of", "figures"]

Array = NDArray[np.float64]

_SECTION = "Error of simulated positions {} after 0.1, 0.5 and 2 s; median over the starts, in brackets 90 %"
_OPEN = _SECTION.format("under the measured torque")
_CLOSED = _SECTION.format("under the controller")
_SECONDS = 60.0
_CLOSED_STARTS = 40


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """Identified, a-priori and constant velocity of all robots, with computing times."""
    # All data of "tx40" are fitted; its halves are there too.
    yield from kept_figures("horizon", {name: partial(_case, name) for name in CASES if name != "tx40"}, folder)


def _case(name: str) -> Iterator[Figure]:
    case = CASES[name]()
    estimate = identify(case.robot, case.train, "auto")
    assert case.test is not None
    yield from _robot(_OPEN, name, simulation_error(estimate, case.test))
    if name == "kr300":
        yield from _robot(_CLOSED, name, _kr300_loop(estimate))


def _kr300_loop(estimate: Estimate) -> SimulationError:
    """The closed loop of the KR300 on run C."""
    data = load_kr300()
    loop = data.experiment("AB").loop
    return simulation_error(estimate, data.recording("C"), loop=loop, max_starts=_CLOSED_STARTS)


def _robot(section: str, name: str, found: SimulationError) -> Iterator[Figure]:
    """Errors of one robot; the limit holds for the time."""
    assert found.identified is not None and found.baseline is not None, found.reason
    tools = bool(found.tools)
    what = "tool, m" if tools else f"joints, {found.units[0]}"
    prior = found.reason if found.prior is None else _shown(found.prior, tools)
    early = {k: sum(c for e, c in m.counts().items() if e.ended_early) for k, m in found.models.items()}
    ended = "".join(f", {k} {count} ended early" for k, count in early.items() if count)
    reason = f"{found.seconds:.1f} s for {max(found.starts)} starts of {len(found.joints)} joints{ended}"
    ours, still = _shown(found.identified, tools), _shown(found.baseline, tools)
    yield Figure(section, f"{name}: {what}", prior, ours, found.seconds, _SECONDS, reason)
    yield Figure(section, f"{name}: with a constant velocity", "for scale", still, 0.0, np.inf, "for the record")


def errors_of(errors: ModelErrors, tools: bool, share: float) -> Array:
    """Error per horizon: of the tools, or of the joints where no tool moves; the mean over them."""
    values = errors.tool_quantiles(share) if tools else errors.joint_quantiles(share)
    return np.asarray(values.mean(axis=1))


def _shown(errors: ModelErrors, tools: bool) -> str:
    """Median and 90th percentile per horizon."""
    pairs = zip(errors_of(errors, tools, 0.5), errors_of(errors, tools, 0.9), strict=True)
    return ", ".join(f"{_number(a)} ({_number(b)})" for a, b in pairs)


def _number(value: float) -> str:
    return "-" if np.isnan(value) else "diverged" if np.isinf(value) else f"{value:.2g}"
