"""Printed excitation motions: their condition numbers, violations of their own limits, and better designs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.excitation.amplitudes import series_without_offset
from dynid.excitation.basis import Fourier, Narrowed, at_rest, fourier
from dynid.excitation.design import design_excitation
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import MotionLimits
from dynid.excitation.planners import double_s
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from studies.reproduce.amplitude_sums import design_within_sums
from studies.reproduce.corner import corner_figures
from studies.reproduce.study import Figure, kept_figures, number, published

__all__ = [
    "design_figures",
    "figures",
    "iiwa_motion",
    "semiparametric_design",
    "semiparametric_design_figures",
    "semiparametric_limits",
    "semiparametric_tables",
    "table_figures",
]

Array = NDArray[np.float64]
State = tuple[Array, Array, Array]

_ONE, _TWO = "printed to one decimal", "printed to two decimals"
_FINE = 1000.0
_PEAKS = "the thesis bounds sums of amplitudes, which is conservative; this design keeps the limits themselves"
_SUMS = "the thesis' own bounds on sums of amplitudes and no others, for a fair comparison"
_DESIGNS = ("twolink", "puma560", "iiwa", "wam")


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """Printed motions, designs within their limits, and an arm in a corner."""
    sections: dict[str, Callable[[], Iterator[Figure]]] = {"tables": table_figures}
    sections |= {f"design {name}": partial(design_figures, (name,)) for name in _DESIGNS}
    yield from kept_figures("excitation", sections | {"corner": corner_figures}, folder)


def table_figures() -> Iterator[Figure]:
    """Figures of the printed coefficients."""
    yield from _wam_tables()
    yield from _iiwa_tables()
    for name in ("puma560", "twolink"):
        yield from semiparametric_tables(name)
    yield from _double_s()


def design_figures(names: Sequence[str] = _DESIGNS) -> Iterator[Figure]:
    """Motions designed with the harmonics, period and limits of the printed ones."""
    designs: dict[str, Callable[[], Iterator[Figure]]] = {
        "twolink": lambda: semiparametric_design_figures("twolink", 3000),
        "puma560": lambda: semiparametric_design_figures("puma560", 3000),
        "iiwa": _iiwa_design,
        "wam": _wam_design,
    }
    for name in names:
        yield from designs[name]()


def iiwa_motion(name: str, duration: float, rate: float = 100.0) -> State:
    """A printed trajectory of the iiwa ("used" or "test") played in `duration` seconds: the same path, slower."""
    motions = published("iiwa_trajectories")
    period = motions["period"]
    stretch = period / duration
    t = np.arange(0.0, duration, 1.0 / rate) * stretch
    q, v, a = fourier(motions[name]["a"], motions[name]["b"], 0.0, 1.0 / period, t)
    return q, v * stretch, a * stretch**2


def _wam_motion(name: str, rate: float) -> State:
    motions = published("wam_trajectories")
    t = np.arange(0.0, 1.0 / motions["frequency"], 1.0 / rate)
    m = motions[name]
    return fourier(m["a"], m["b"], m["offset"], motions["frequency"], t)


def _condition_number(W: Array, unit_columns: bool = False) -> float:
    """Condition number of a base regressor (N, channel, b), stacked.

    The printed motions stay below 200, so the normal matrix is accurate enough for the digits that are compared.
    """
    stacked = W.reshape(-1, W.shape[-1])
    square = stacked.T @ stacked
    length = np.sqrt(np.diag(square)) if unit_columns else np.ones(len(square))
    values = np.linalg.eigvalsh(square / np.outer(length, length))
    return float(np.sqrt(values[-1] / values[0]))


def _vector(
    section: str, name: str, expected: ArrayLike, ours: ArrayLike, tolerance: float, reason: str, digits: int = 4
) -> Figure:
    """One figure for a vector: the largest difference counts."""
    there, here = np.asarray(expected, dtype=float), np.asarray(ours, dtype=float)
    shown = [", ".join(f"{x:.{digits}g}" for x in vector) for vector in (there, here)]
    return Figure(section, name, shown[0], shown[1], float(np.abs(there - here).max()), tolerance, reason)


def _at_most(section: str, name: str, bound: float, ours: float, reason: str, tolerance: float = 0.0) -> Figure:
    """A figure that must not exceed a bound."""
    over = max(ours - bound, 0.0) if np.isfinite(ours) else np.inf
    return Figure(section, name, f"<= {bound:.4g}", f"{ours:.4g}", over, tolerance, reason)


# -- printed tables ------------------------------------------------------------------------------


def _wam_tables() -> Iterator[Figure]:
    section = "WAM, printed trajectories A and B (Sousa 2014, Tables 4.4 and 4.5)"
    golden = published("excitation")["wam"]
    base = base_parameters(load_robot("wam7"))
    for name in "AB":
        state = dict(zip("qva", _wam_motion(name, golden["rate"]), strict=True))
        for what, expected in golden["start"][name].items():
            label = f"{what}(0) of trajectory {name}"
            yield _vector(section, label, expected, state[what][0], 1e-6, "printed to six decimals", 7)
        ours = _condition_number(base.regressor(*state.values()))
        expected = golden["condition_number"][name]
        yield number(section, f"cond(W) on trajectory {name}", expected, ours, 0.05, _ONE)
        for what, span in _span(_wam_motion(name, _FINE)).items():
            yield _vector(section, f"{what} span of {name}", golden["span"][name][what], span, 0.0051, _TWO, 3)


def _span(state: State) -> dict[str, Array]:
    q, v, a = state
    return {
        "lower": q.min(axis=0),
        "upper": q.max(axis=0),
        "velocity": np.abs(v).max(axis=0),
        "acceleration": np.abs(a).max(axis=0),
    }


def _iiwa_tables() -> Iterator[Figure]:
    section = "iiwa, printed trajectories (Halper 2024, Tables A.1 and A.2)"
    golden = published("excitation")["iiwa"]
    sets = {name: base_parameters(_iiwa_with_lengths(golden[name])) for name in ("set_B", "set_A")}
    table = golden["condition_number"]
    for name, base in sets.items():
        for duration, expected in zip(table["duration"], table[name], strict=True):
            ours = _condition_number(base.regressor(*iiwa_motion("used", duration)))
            label = f"cond of Table A.1 played in {duration} s, {name.replace('_', ' ')}"
            yield number(section, label, expected, ours, 0.01, _TWO)
    table = golden["condition_number_test"]
    for duration, expected in zip(table["duration"], table["set_A"], strict=True):
        ours = _condition_number(sets["set_A"].regressor(*iiwa_motion("test", duration)))
        yield number(section, f"cond of Table A.2 played in {duration} s, set A", expected, ours, 0.05, _ONE)
    yield from _iiwa_variants(section, golden["variants"], sets["set_B"])
    for name, title in {"used": "Table A.1", "test": "Table A.2"}.items():
        yield from _iiwa_sums(section, title, name, golden["sums"][name])


def _iiwa_variants(section: str, golden: dict[str, Any], base: BaseParameters) -> Iterator[Figure]:
    """Table A.1 under other assumptions."""
    state = iiwa_motion("used", golden["duration"])
    played = f"played in {golden['duration']} s, set B"
    robot = base.robot
    turned = base_parameters(robot.with_gravity(-robot.gravity)).regressor(*state)
    bare = base_parameters(robot.with_drives("none", rotor_inertia=False)).regressor(*state)
    ours = {
        "other_gravity": ("with the opposite gravity", _condition_number(turned), 0.05, _ONE),
        "without_friction": ("without friction columns", _condition_number(bare), 0.05, _ONE),
        "unit_columns": ("with unit columns", _condition_number(base.regressor(*state), True), 0.005, _TWO),
    }
    for key, (label, value, tolerance, reason) in ours.items():
        yield number(section, f"cond of Table A.1 {label}, {played}", golden[key], value, tolerance, reason)


def _iiwa_sums(section: str, title: str, name: str, golden: dict[str, Any]) -> Iterator[Figure]:
    """Initial conditions and bounds of the thesis: equations 3.55c to 3.55f."""
    motions = published("iiwa_trajectories")
    a, b = (np.array(motions[name][key]) for key in "ab")
    harmonic = np.arange(1, a.shape[1] + 1)
    w = 2 * np.pi / motions["period"]
    limits = load_robot("iiwa14").limits.values()
    reach, velocity = (np.array([getattr(x, key) for x in limits]) for key in ("upper", "velocity"))
    five = "coefficients are printed to five decimals"
    for label, rest in {
        "a": a.sum(axis=1),
        "b/l": (b / harmonic).sum(axis=1),
        "l b": (b * harmonic).sum(axis=1),
    }.items():
        yield _at_most(section, f"{title}, start at rest: sum of {label}", 5e-5, float(np.abs(rest).max()), five, 1e-9)
    if name == "used":
        lost = -(b / harmonic)[:, :-1].sum(axis=1) * harmonic[-1]
        reason = "the row is missing in print; it follows from either condition, to ten times the rounding"
        yield _vector(section, f"{title}, b_10 from the other condition", b[:, -1], lost, 1e-4, reason)
    amplitude = np.hypot(a, b)
    sums = {"position": (amplitude / harmonic).sum(axis=1) / (w * reach), "velocity": amplitude.sum(axis=1) / velocity}
    for what, share in sums.items():
        label = f"{title}, {what} sum as a share of the limit"
        yield _vector(section, label, golden[what], share, 6e-4, "three decimals, printed twice rounded", 3)
    q, v, _ = iiwa_motion(name, motions["period"], _FINE)
    for what, peak in {"peak_position": q, "peak_velocity": v}.items():
        ours = np.degrees(np.abs(peak).max(axis=0))
        yield _vector(section, f"{title}, {what.replace('_', ' of ')}, deg", golden[what], ours, 0.051, _ONE)
    larger = np.maximum(np.abs(a), np.abs(b))
    whole = np.minimum(np.outer(reach, harmonic) * w, velocity[:, None])
    boxed = np.minimum(np.outer(reach, harmonic) * w / len(harmonic), velocity[:, None])
    label = f"{title}, coefficient pairs outside the printed box"
    reason = "a count; the printed box has an extra divisor L"
    yield number(section, label, golden["outside_box"], int((larger > boxed).sum()), 0.0, reason)
    yield number(section, f"{title}, outside the box without that divisor", 0, int((larger > whole).sum()), 0.0, reason)


def _iiwa_with_lengths(lengths: list[float]) -> Robot:
    """The built-in iiwa with other link lengths: the offset of every joint is one length along y or z."""
    robot = load_robot("iiwa14")
    joints = []
    for joint, length in zip(robot.joints, lengths, strict=True):
        placement = np.array(joint.placement)
        placement[:3, 3] = np.where(placement[:3, 3] != 0.0, length, 0.0)
        joints.append(replace(joint, placement=placement))
    return replace(robot, joints=tuple(joints))


def semiparametric_tables(name: str) -> Iterator[Figure]:
    """Figures of the printed amplitudes of Krishnamoorthi (2018)."""
    golden, motions = published("excitation")[name], published("semiparametric_trajectories")
    section = f"{golden['title']}, printed amplitudes (Krishnamoorthi 2018, Table {golden['table']})"
    a, b = (np.array(motions[name][key]) for key in "ab")
    state = fourier(a, b, 0.0, motions["frequency"], np.arange(0.0, 1.0 / motions["frequency"], 1.0 / golden["rate"]))
    for key, friction in {"inertial": "none", "friction": "viscous+coulomb"}.items():
        base = base_parameters(load_robot(name).with_drives(friction, rotor_inertia=False))
        expected = golden[key]
        label = f"cond(W), {base.count} columns {'with friction' if key == 'friction' else 'of inertia'}"
        places = len(f"{expected}".partition(".")[2])
        reason = _ONE if places == 1 else _TWO
        yield number(section, label, expected, _condition_number(base.regressor(*state)), 0.5 * 10.0**-places, reason)
    harmonic = np.arange(1, a.shape[1] + 1)
    w = 2 * np.pi * motions["frequency"]
    amplitude = np.hypot(a, b)
    ours = {
        "a": ("start at rest: sum of a", a.sum(axis=1)),
        "lb": ("start at rest: sum of l b", (b * harmonic).sum(axis=1)),
        "b_over_l": ("start at zero: sum of b/l", (b / harmonic).sum(axis=1)),
        "position": ("position sum, rad", (amplitude / harmonic).sum(axis=1) / w),
        "velocity": ("velocity sum, rad/s", amplitude.sum(axis=1)),
        "acceleration": ("acceleration sum, rad/s2", w * (amplitude * harmonic).sum(axis=1)),
    }
    for key, (label, value) in ours.items():
        expected = golden["sums"][key]
        yield _vector(section, label, expected, value, 0.006, f"two decimals, some cut off; {golden['broken']}", 3)


def _double_s() -> Iterator[Figure]:
    section = "Double-S planner, known results (Biagiotti and Melchiorri)"
    for case in published("excitation")["double_s"]:
        move = double_s(*case["move"])
        for name in ("Ta", "Tv", "Td", "Tj1", "Tj2"):
            label = f"{name} of {tuple(case['move'])}"
            yield number(section, label, case[name], getattr(move, name), 1e-4, "printed to four decimals")


# -- designs -------------------------------------------------------------------------------------


def _wam_design() -> Iterator[Figure]:
    section = "WAM, designed with 6 harmonics in 12.5 s within the spans of A and B"
    motions = published("wam_trajectories")
    spans = [_span(_wam_motion(name, _FINE)) for name in "AB"]
    span = {key: np.max([s[key] for s in spans], axis=0) for key in spans[0]}
    span["lower"] = np.min([s["lower"] for s in spans], axis=0)
    robot = load_robot("wam7")
    own = {
        joint: {"position": (span["lower"][i], span["upper"][i]), "velocity": span["velocity"][i]}
        for i, joint in enumerate(robot.coordinates)
    }
    limits = {joint: {"acceleration": span["acceleration"][i]} for i, joint in enumerate(robot.coordinates)}
    motion = design_excitation(
        robot.with_limits(own),
        1.0 / motions["frequency"],
        family="fourier-free",
        size=len(motions["A"]["a"][0]),
        criterion="cond",
        limits=limits,
        budget=3000,
    )
    reason = "the better of A and B; the thesis does not print its limits, so ours are the spans of its motions"
    yield _at_most(section, "cond(W)", published("excitation")["wam"]["designed"], motion.condition_number, reason)
    yield _within(section, motion)


def _iiwa_design() -> Iterator[Figure]:
    section = "iiwa, designed with 10 harmonics in 20 s from rest at zero"
    motions = published("iiwa_trajectories")
    robot = load_robot("iiwa14")
    basis = series_without_offset(motions["period"], len(motions["used"]["a"][0]))
    motion = design_excitation(robot, family=basis, criterion="cond", start=np.zeros(robot.n), budget=3000)
    bound = published("excitation")["iiwa"]["designed"]
    reason = f"Table A.1 at 20 s; its bounds on coefficients, which it violates itself, are left out. {_PEAKS}"
    yield _at_most(section, "cond(W)", bound, motion.condition_number, reason)
    yield _within(section, motion)
    yield _starts(section, motion)
    yield from _within_sums(section, robot, basis, motion.limits, bound)


def semiparametric_limits(name: str) -> dict[str, dict[str, float]]:
    """The printed limits of Krishnamoorthi (2018) within the robot's own ranges, per joint."""
    given, robot = published("excitation")[name]["limits"], load_robot(name)
    return {
        joint: {
            "lower": max(robot.limits[joint].lower, -reach),
            "upper": min(robot.limits[joint].upper, reach),
            "velocity": given["velocity"],
            "acceleration": given["acceleration"],
        }
        for joint, reach in zip(robot.coordinates, given["position"], strict=True)
    }


@cache
def semiparametric_design(name: str, criterion: str, budget: int, friction: bool) -> Excitation:
    """A motion from rest at zero with the printed harmonics, period and limits, with or without friction columns."""
    motions = published("semiparametric_trajectories")
    robot = load_robot(name).with_drives("viscous+coulomb", rotor_inertia=False)
    return design_excitation(
        robot,
        1.0 / motions["frequency"],
        family="fourier",
        size=len(motions[name]["a"][0]),
        criterion=criterion,
        limits=semiparametric_limits(name),
        start=np.zeros(robot.n),
        budget=budget,
        friction=friction,
    )


def semiparametric_design_figures(name: str, budget: int) -> Iterator[Figure]:
    """Designs for cond(W), for its sum over links, and for cond(W) under the thesis' bounds on amplitudes."""
    golden, motions = published("excitation")[name], published("semiparametric_trajectories")
    size, period = len(motions[name]["a"][0]), 1.0 / motions["frequency"]
    section = f"{golden['title']}, designed with {size} harmonics in {period:g} s from rest at zero"
    plain, summed = (semiparametric_design(name, criterion, budget, True) for criterion in ("cond", "sum-cond"))
    reason = f"the value of the thesis, friction columns included; {golden['broken']}. {_PEAKS}"
    if name == "puma560":
        reason += ", the printed reach within the robot's real ranges, which are not symmetric"
    yield _at_most(section, "cond(W)", golden["designed"], plain.condition_number, reason)
    yield _within(section, plain)
    yield _starts(section, plain)
    links = plain.criterion.base.link_columns.values()
    ours, other = (
        sum(_condition_number(motion.base_regressor()[:, :, list(columns)]) for columns in links)
        for motion in (summed, plain)
    )
    reason = "the bound is the sum of the design for cond(W)"
    yield _at_most(section, "sum of cond over links, designed for it", other, ours, reason)
    yield _within(section, summed)
    yield _starts(section, summed)
    reach = np.array(golden["limits"]["position"])
    printed = replace(plain.limits, lower=-reach, upper=reach)
    yield from _within_sums(section, plain.robot, at_rest(Fourier(period, size)), printed, golden["designed"])


def _within_sums(section: str, robot: Robot, basis: Narrowed, limits: MotionLimits, bound: float) -> Iterator[Figure]:
    motion, slack = design_within_sums(robot, basis, limits)
    yield _at_most(section, "cond(W), sums of amplitudes bounded", bound, motion.condition_number, _SUMS)
    name = "smallest slack of the sums of amplitudes"
    yield Figure(section, name, ">= 0", f"{slack:.1e}", max(-slack, 0.0), 0.0, "the search ends within the bounds")
    yield _starts(section, motion, "cond, sums of amplitudes bounded")


def _within(section: str, motion: Excitation) -> Figure:
    kind, slack = min(motion.slacks.items(), key=lambda entry: entry[1])
    reason = f"margin as a share of the limit, on a grid ten times finer than the design's; {kind} is closest"
    name = f"smallest slack, designed for {motion.criterion.name}"
    return Figure(section, name, ">= 0", f"{slack:.4f}", max(-slack, 0.0), 0.0, reason)


def _starts(section: str, motion: Excitation, goal: str | None = None) -> Figure:
    """Largest position, velocity or acceleration at both ends."""
    ends = motion.at([0.0, motion.duration])
    worst = max(float(np.abs(x).max()) for x in ends)
    name = f"largest q, v, a at both ends, designed for {goal or motion.criterion.name}"
    return Figure(section, name, "0", f"{worst:.1e}", worst, 1e-9, "rounding")
