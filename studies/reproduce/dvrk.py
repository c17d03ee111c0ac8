"""The patient side manipulator of the da Vinci Research Kit: its first three joints, with known weights attached."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.calibration.payload import Payload, identify_payload
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from studies.reproduce.dvrk_arms import Form, psm
from studies.reproduce.study import Figure, data_folder, number, published

__all__ = ["psm_figures", "psm_recordings", "weigh"]

# Bodies that carry the weights, as inferred from the torques: "parallel" on the upper bar, which moves along a circle;
# "insertion" on the link that carries the slide, because the force along the slide hardly changes.
BODIES = {"parallel": "L22", "insertion": "L24"}
_SECTION = "dVRK patient side manipulator, weights at places that are not documented (Wang et al. 2019)"
_SHARE = 0.1
_LIGHT = 0.15  # of the lighter weight, whose standard deviation is 10 to 15 %


def psm_recordings(robot: Robot) -> dict[str, Recording]:
    """The same motion without and with weights, joints 1 to 3."""
    folder = data_folder() / "dvrk-wpi" / "psm"
    columns = {"q": "0:3", "v": "7:10", "torque": "14:17"}
    files = published("dvrk")["psm"]["runs"]
    return {
        name: load_recording(folder / f"{file}.csv.xz", robot, columns=columns, time=None, rate=200.0)
        for name, file in files.items()
    }


def weigh(robot: Robot, loaded: Recording, unloaded: Recording, place: str) -> Payload:
    """A point mass at an unknown place of the body that carries it."""
    signals = Signals(cutoff=published("dvrk")["psm"]["cutoff"])
    return identify_payload(robot, loaded, unloaded, link=BODIES[place], form="mass-centre", signals=signals)


def psm_figures() -> Iterator[Figure]:
    """Weights against each other and against two runs without any."""
    robot, by_hand = (psm(form, instrument=False) for form in Form)
    runs = psm_recordings(robot)
    light, heavy = published("dvrk")["psm"]["weights"]
    for place in BODIES:
        names = [f"{place} 105 g", f"{place} 205 g"]
        more = weigh(robot, runs[names[1]], runs[names[0]], place)
        yield _mass(
            f"{place}, 205 g against 105 g",
            heavy - light,
            more,
            _SHARE,
            "10 %; the torques of joints 4 to 7 indicate one session",
        )
        same = weigh(by_hand, runs[names[1]], runs[names[0]], place).mass
        yield number(_SECTION, f"{place}, the same with couplings by hand", more.mass, same, 1e-6, "rounding")
        found = [weigh(robot, runs[name], runs["unloaded"], place) for name in names]
        for name, true, one in zip(names, (light, heavy), found, strict=True):
            share = _LIGHT if true == light else _SHARE
            reason = f"{100 * share:.0f} %; against one_results, with which both weights have the same position"
            yield _mass(f"{name}, against one_results", true, one, share, reason)
        apart = (found[1].mass - found[0].mass) / np.hypot(found[0].mass_std, found[1].mass_std)
        yield Figure(
            _SECTION,
            f"{place}, weights distinguished",
            "yes",
            f"{apart:.1f} std",
            max(3.0 - apart, 0.0),
            0.0,
            "three standard deviations",
        )
        moments = [float(np.linalg.norm(x.inertial[1:4])) for x in found]
        if place == "insertion":
            # Position from one weight, mass of the other: first moments alone, no inertia.
            scaled = light * moments[1] / moments[0]
            yield Figure(
                _SECTION,
                "insertion 205 g, at the position of 105 g",
                f"{heavy:.3f} kg",
                f"{scaled:.3f} kg",
                abs(scaled - heavy),
                _SHARE * heavy,
                "10 %; the lighter weight is taken as known",
            )
        others = [weigh(robot, runs[name], runs["no weight"], place) for name in names]
        for run, two in (("one_results", found), ("one_no_weight_results", others)):
            yield _places(f"{place}, distance of both weights, against {run}", two)
        for name, true, one in zip(names, (light, heavy), others, strict=True):
            reason = "recorded: joint 2 of this run has an offset of 0.11 N m, independent of the weight"
            yield _mass(f"{name}, against one_no_weight_results", true, one, np.inf, reason)


def _places(name: str, found: list[Payload]) -> Figure:
    """Distance between the identified positions of two weights at the same place, along identifiable directions."""
    shown = np.maximum(found[0].centre_std, found[1].centre_std) < 0.1
    apart = float(np.linalg.norm((found[0].centre - found[1].centre)[shown]))
    return Figure(
        _SECTION, name, "0 m", f"{apart:.3f} m", apart, np.inf, "recorded: shows which unloaded run is better"
    )


def _mass(name: str, true: float, found: Payload, share: float, reason: str) -> Figure:
    shown = f"{found.mass:.4f} kg, std {found.mass_std:.3f}, {100 * (found.mass / true - 1):+.1f} %"
    return Figure(_SECTION, name, f"{true:.3f} kg", shown, abs(found.mass - true), share * true, reason)
