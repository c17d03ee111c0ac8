"""The KUKA KR300 in closed loop: instrumental variables and DIDIM against least squares, on held-out runs.

The authors of the recordings give gear ratios, the gains of position and velocity loops, and the parameters of the
model whose torques they fed forward along the reference. The commands that the drives received are not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.assessment.causes.instruments import exogeneity_test, instrument_test
from dynid.assessment.causes.residuals import correlogram, residuals_of
from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import DataError
from dynid.identification.estimate import Estimate
from dynid.identification.experiment import Experiment
from dynid.identification.pipeline import estimate_closed_loop, estimate_from
from dynid.identification.validation import validate
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.drives import DriveTerm
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.robot.spatial import placement
from dynid.signals.filters import derivative, lowpass
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.controller_identification import identify_controller
from dynid.simulation.engine import simulate
from dynid.simulation.laws import LinearController, pd
from studies.reproduce.robot_cases import CASES, KR300_PRESSURE
from studies.reproduce.study import Figure, data_folder, finished_rows, kept_figures, rows_file

__all__ = ["METHODS", "KR300Data", "estimates", "figures", "load_kr300"]

Array = NDArray[np.float64]

METHODS = ("wls", "feasible", "iv", "pc-iv", "didim", "pc-didim")
_SIMULATING = METHODS[2:]
_ROTATIONS = ("AB", "C"), ("AC", "B"), ("BC", "A")
_PARTS = {"joints 1 to 3": slice(0, 3), "joints 4 to 6": slice(3, 6)}
_RATE = 1250.0  # Hz, the cycle of the drives; recordings keep every fifth
_BAND = 8.0  # Hz, of the motion
# The authors' gravity torques at the start pose correspond to a payload of 135 to 140 kg; the file has 200 kg.
_PAYLOAD, _IN_FILE, _FLANGE = 137.5, 200.0, -0.34
# Coulomb friction changes sign within some thousandths of the highest velocities: too stiff for explicit integration.
_LOOP = ClosedLoop(integrator="implicit", substeps=1, coulomb_slope=1000.0)
_LAGS = 40
_EXPLAINED, _FOLLOWS, _WORSE = 70.0, 1.0, 1.10
_RECORD = "for the record"
_SHADOW = "pc-didim in a loop along the measured positions"


@dataclass(frozen=True, eq=False)
class KR300Data:
    """The robot to be identified, its runs A, B, C with references, and the published settings of its controller.

    `holding` are the torques (n,) at the start of a run, to which those of the model were added.
    """

    robot: Robot
    runs: dict[str, Run]
    holding: dict[str, Array]
    settings: dict[str, Array]

    def recording(self, letters: str) -> Recording:
        return Recording(self.robot.coordinates, tuple(self.runs[x] for x in letters))

    def experiment(self, letters: str) -> Experiment:
        """Some of the runs with their closed loop."""
        return Experiment(self.robot, self.recording(letters), replace(_LOOP, controller=self.controller(letters)))

    def shadowing(self, letters: str) -> Experiment:
        """The same runs in a loop along the measured positions, which gives the real motion but no instruments."""
        runs = [replace(r, reference=lowpass(r.q, _BAND, 1.0 / r.step)) for r in self.recording(letters).runs]
        law = replace(self.controller(letters), feedforward="none", model=None)
        recording = Recording(self.robot.coordinates, tuple(runs))
        return Experiment(self.robot, recording, replace(_LOOP, controller=law))

    def controller(self, letters: str) -> LinearController:
        """Position loop around velocity loop with the given gains; velocities and torques are fed forward."""
        s = self.settings
        # Peak amperes per motor revolution per second, times torque constant (rms amperes) and squared gear ratio.
        kv = s["u"] ** 2 * s["K_vel"] * s["k_T"] / (2 * np.pi * np.sqrt(2))
        return pd(_RATE, s["K_pos"] * kv, kv).with_feedforward("full", self.known_model(letters))

    def known_model(self, letters: str) -> Robot:
        """The authors' model, shifted to the torques at the start of these runs."""
        start = self.runs[letters[0]].reference
        assert start is not None
        rest = np.zeros((1, self.robot.n))
        begun = np.mean([self.holding[x] for x in letters], axis=0)
        shift = begun - inverse_dynamics(self._authors, start[:1], rest, rest)[0]
        return self._authors.with_terms(*_terms("off", "begin", shift))

    @cached_property
    def _authors(self) -> Robot:
        s = self.settings
        cad = load_robot(_folder() / "kr300_cad.urdf", friction="viscous+coulomb+offset", rotor_inertia=True)
        lighter = [_PAYLOAD - _IN_FILE, *np.zeros(9)]
        cad = cad.with_payload("link_6", lighter, placement(translation=(0.0, 0.0, _FLANGE)))
        value = {"fv": s["f_vis"], "fc": s["f_coul"], "off": s["f_asym"], "Ia": s["J_mr"] * s["u"] ** 2}
        drives = [
            replace(t, value=value[t.symbol][t.owner], slope=s["s_f_ff"][t.owner] if t.is_coulomb else 0.0)
            for t in cad.drives
        ]
        steep = [replace(t, slope=s["f_b"][t.owner]) for t in _terms("fc", "steep", s["f_a"])]
        gas = next(t for t in self.robot.drives if t.symbol == "pressure")
        return replace(cad, drives=(*drives, *steep, replace(gas, value=KR300_PRESSURE)))


def load_kr300() -> KR300Data:
    """All recordings and published settings of the KR300."""
    case = CASES["kr300"]()
    assert case.test is not None
    given = json.loads((_folder() / "controller_and_prior_parameters.json").read_text(encoding="utf-8"))
    settings = {name: np.asarray(value, dtype=float) for name, value in given.items()}
    runs, holding = {}, {}
    for letter, run in zip("ABC", (*case.train.runs, *case.test.runs), strict=True):
        other = load_recording(
            _folder() / f"recording_{letter}.csv.gz",
            case.robot,
            columns={"q": "ref_pos_deg_{i}", "torque": "torque_rel_nm_{i}"},
            time="t",
            units={"q": "deg"},
            scale={"torque": list(settings["u"])},
            offset={"q": [0.0, -np.pi / 2, np.pi / 2, 0.0, 0.0, 0.0]},
        ).runs[0]
        assert run.torque is not None and other.torque is not None
        runs[letter] = replace(run, reference=other.q)
        holding[letter] = run.torque[0] - other.torque[0]
    return KR300Data(case.robot, runs, holding, settings)


def estimates(experiment: Experiment) -> dict[str, Estimate]:
    """All methods on the same runs, signals and friction; closed-loop methods start from the feasible estimate."""
    best: dict[str, dict[str, Any]] = {"feasible": {"metric": "euclidean", "excess": 0.0}}
    plain = {m: estimate_from(experiment.measured, m, **best.get(m, {})) for m in METHODS if m not in _SIMULATING}
    start = plain["feasible"].standard
    return plain | {m: estimate_closed_loop(experiment, m, start=start) for m in _SIMULATING}


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """Torques explained by the controller, motion of the simulated loop, and errors on held-out runs."""
    data = load_kr300()
    yield from kept_figures("kr300", {"controller": lambda: _controller_figures(data)}, folder)
    tasks = {f"run {test} held out": (data, train, test) for train, test in _ROTATIONS}
    rows = finished_rows("kr300", _rotation, tasks, rows_file("kr300", folder), workers=1)
    for row, (train, test) in zip(rows, _ROTATIONS, strict=True):
        yield from (Figure(**values) for values in row["loop"])
        section = f"Torque error of run {test}, % per joint, identified from {' and '.join(train)}"
        base = np.array(row["errors"]["wls"])
        for method in METHODS:
            ours = np.array(row["errors"][method])
            shown = f"{_list(ours, 1)}, mean {ours.mean():.1f}"
            yield Figure(section, method, f"wls {_list(base, 1)}", shown, 0.0, 0.0, _RECORD)
    errors = {method: np.array([row["errors"][method] for row in rows]) for method in (*METHODS, _SHADOW)}
    yield from _verdicts(errors, [x for row in rows for x in row["histories"]])


def _rotation(data: KR300Data, train: str, test: str) -> dict[str, Any]:
    """Errors of all methods on a held-out run, iterations of the simulating ones, and for one run the loop."""
    experiment = data.experiment(train)
    found = estimates(experiment)
    loop = _loop_figures(experiment, found["pc-iv"]) if test == "C" else ()
    shadow = estimate_closed_loop(data.shadowing(train), "pc-didim", start=found["feasible"].standard)
    return {
        "loop": [vars(figure) for figure in loop],
        "errors": {
            method: (100 * validate(estimate, data.recording(test)).relative).tolist()
            for method, estimate in (found | {_SHADOW: shadow}).items()
        },
        "histories": [
            {"method": m, "converged": found[m].converged, "feasible": [r.feasible for r in found[m].history]}
            for m in _SIMULATING
        ],
    }


def _controller_figures(data: KR300Data) -> Iterator[Figure]:
    """Torques of the controller along the recorded motion against the recorded torques."""
    section = "The controller on the log of runs A, B, C: torque variance explained, % per joint"
    experiment = data.experiment("ABC")
    law = experiment.loop.controller
    assert isinstance(law, LinearController)
    fed: list[Array] = []
    fed_back: list[Array] = []
    torque: list[Array] = []
    for run, path in zip(experiment.recording.runs, experiment.references, strict=True):
        assert run.torque is not None
        every = (len(path) - 1) // (len(run) - 1)
        ahead = law.torques_ahead(path.q, path.v, path.a)[::every]
        seen = path.q[::every], path.v[::every], run.q, derivative(run.q, _RATE / every)
        back = sum(law.D[:, k] * x for k, x in enumerate(seen))
        for values, x in ((fed, ahead), (fed_back, ahead + back), (torque, run.torque)):
            values.append(x - x.mean(axis=0))
    share = [_explained(torque, x) for x in (fed, fed_back)]
    short = max(_EXPLAINED - float(share[0][:3].min()), 0.0)
    yield Figure(
        section,
        "fed forward along the reference",
        f">= {_EXPLAINED:g} for joints 1 to 3",
        _list(share[0]),
        short,
        0.0,
        "a wrong sign, gear or counterbalance would explain nothing; joints 4 to 6 for the record",
    )
    yield Figure(section, "with feedback at the given gains", "100", _list(share[1]), 0.0, 0.0, _RECORD)
    known = data.known_model("ABC")
    named = ("p", "pd", "cascade", "pid")
    found = identify_controller(experiment.recording, model=known, feedforward="full", structures=named)
    fits = np.array([x.fit for x in found.laws])
    yield Figure(section, "remainder, by a controller identified from the log", "100", _list(fits), 0.0, 0.0, _RECORD)
    start = estimate_from(experiment.measured, "feasible", metric="euclidean", excess=0.0).standard
    again = simulate(
        data.robot,
        replace(_LOOP, controller=found.controller, sensors=found.loop.sensors),
        data.runs["A"],
        parameters=start,
    )
    yield Figure(section, "run A simulated with that controller", "completed", again.outcome, 0.0, 0.0, _RECORD)


def _loop_figures(experiment: Experiment, estimate: Estimate) -> Iterator[Figure]:
    """Simulated against measured positions, and the tests of instruments."""
    section = "The simulated loop with the given gains, runs A and B"
    simulations = experiment.simulate(estimate.identified_robot.parameters)
    measured = np.vstack([run.q for run in experiment.recording.runs])
    aside = _rms_degrees(np.vstack([s.q for s in simulations]) - measured)
    wanted = np.vstack([np.asarray(run.reference) for run in experiment.recording.runs])
    missed, span = _rms_degrees(wanted - measured), np.rad2deg(np.ptp(measured, axis=0))
    for i, joint in enumerate(experiment.robot.coordinates):
        name = f"{joint}, rms of simulated minus measured position"
        there = f"reference minus measured {missed[i]:.2f} deg"
        share = 100 * float(aside[i] / span[i])
        ours = f"{aside[i]:.2f} deg, {share:.1f} % of its range"
        reason = f"{_FOLLOWS:g} % of the range, a small part of the torque error"
        yield Figure(section, name, there, ours, share, _FOLLOWS, reason)
    rest = residuals_of(experiment.measured, estimate.beta, estimate.noise)
    lags = [_last_lag(e, k) for e, k in zip(rest.values, rest.index, strict=True)]
    yield Figure(section, "last lag with correlated residuals, in rows", "0", _list(lags), 0.0, 0.0, _RECORD)
    pairs = experiment.pair(simulations)
    for name, made in (("strength of instruments", instrument_test), ("instruments", exogeneity_test)):
        try:
            test = made(pairs, estimate.noise)
        except DataError as error:  # autocorrelated rows may be worth too few
            yield Figure(section, name, "-", "none", 0.0, 0.0, str(error))
            continue
        yield Figure(section, test.name, test.null, f"p = {test.p_value:.2g}", 0.0, 0.0, _RECORD)


def _verdicts(errors: dict[str, Array], histories: list[dict[str, Any]]) -> Iterator[Figure]:
    section = "Held-out runs, all three in turn"
    for method in [m for m in errors if m != "wls"]:
        for part, joints in _PARTS.items():
            ours, base = (float(errors[m][:, joints].mean()) for m in (method, "wls"))
            ratio = ours / base
            yield Figure(
                section,
                f"{method}, mean error of {part}",
                f"<= {_WORSE:g} times wls, {base:.2f} %",
                f"{ours:.2f} %, {ratio:.3f} times",
                ratio,
                _WORSE,
                "wls itself differs by a tenth from one held-out run to the next",
            )
    counts = [len(e["feasible"]) for e in histories]
    left = sum(not e["converged"] for e in histories)
    shown = f"{len(histories) - left} of {len(histories)} in {min(counts)} to {max(counts)} iterations"
    yield Figure(
        section, "simulating methods that converge", "all", shown, float(left), 0.0, "of at most ten iterations"
    )
    kept = [x for e in histories if e["method"].startswith("pc-") for x in e["feasible"]]
    bad = sum(not x for x in kept)
    shown = f"{len(kept) - bad} of {len(kept)}"
    yield Figure(section, "feasible iterates of pc-iv and pc-didim", "all", shown, float(bad), 0.0, "by design")


def _folder() -> Path:
    return data_folder() / "kuka-kr300-weigand"


def _terms(symbol: str, shaft: str, values: Array) -> list[DriveTerm]:
    """The same term on every joint, each on its own shaft."""
    return [DriveTerm(symbol, f"{shaft}{i + 1}", np.eye(len(values))[i], i, x) for i, x in enumerate(values)]


def _explained(measured: list[Array], predicted: list[Array]) -> Array:
    """Share (n,) of the variance explained, in percent."""
    left = np.vstack(measured) - np.vstack(predicted)
    return np.asarray(100 * (1 - (left**2).sum(axis=0) / (np.vstack(measured) ** 2).sum(axis=0)))


def _last_lag(residual: Array, index: NDArray[np.int64]) -> int:
    """Last lag at which the autocorrelation of a residual exceeds that of white noise."""
    page = correlogram(residual, index, lags=_LAGS)
    outside = np.flatnonzero(np.abs(page.autocorrelation - page.expected) > page.limits)
    return int(outside[-1]) + 1 if outside.size else 0


def _rms_degrees(x: Array) -> Array:
    return np.asarray(np.rad2deg(np.sqrt(np.mean(x**2, axis=0))))


def _list(values: ArrayLike, digits: int = 0) -> str:
    return ", ".join(f"{x:.{digits}f}" for x in np.asarray(values))
