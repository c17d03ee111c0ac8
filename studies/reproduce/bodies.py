"""Total mass and every body of all real machines and of ten simulated arms, by the default method or any other.

    dynid reproduce bodies --full --folder FOLDER
    python -m studies.reproduce.bodies lwr4 ur10 --variant tool --method auto feasible wls --json bodies.json

A mass is compared with the known one, a body with that of the prior and with the truth where there is one. Lines that
an engineer would not accept are flagged. Half of the cases are held back while defaults are set.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.model.plausible import implausible_bodies
from dynid.assessment.verdict.assess import assess
from dynid.errors import DataError, DynidError
from dynid.identification.estimate import Estimate
from dynid.identification.pipeline import identify
from dynid.identification.validation import validate
from dynid.robot.inertia import inertia_to_com
from dynid.robot.link_size import LinkSize, link_sizes
from dynid.robot.model import Robot
from studies.reproduce.arms import ARMS, Variant
from studies.reproduce.cases import MACHINES, RECORDED, BodyCase, arm, machine, moving_mass
from studies.reproduce.study import Figure, finished_rows, rows_file

__all__ = ["Body", "BodyResult", "Flag", "case_keys", "figures", "judged", "results", "table"]

Array = NDArray[np.float64]

LIGHTEST, HEAVIEST = 0.2, 4.0  # mass over that of the prior
COMPACT = 0.2  # radius of gyration over the size of the link; a uniform box has 0.29
_AT_WALL = 0.01  # share of the limit within which a body is at the wall
_SHORT = 0.3  # least size of a link over the mean one
_TOTAL = (0.8, 1.25)  # total mass over the known one
_QUICK = (("lwr4", RECORDED), ("two-link arm", RECORDED), ("ur10", str(Variant.TOOL)))
_HALVES = ("development", "held back")
_DEFAULT = "auto"


class Flag(StrEnum):
    """What an engineer would not accept."""

    REFUSED = "refused"
    TOTAL = "total mass"  # outside 0.8 to 1.25 of the known one
    BOX = "outside the box"
    WALL = "at a wall without a finding"
    COMPACT = "too compact without a finding"


@dataclass(frozen=True)
class Body:
    """One body of an estimate; NaN where nothing is known.

    `prior` and `truth` are masses (kg). `centre` is the distance of the centre of mass from the middle of the link,
    `gyration` the radius of gyration, both over the size of the link. `true_gyration` is that of the true body. `wall`
    tells whether mass or gyration lie at a wall of the box, `found` whether a finding names the body.
    """

    link: str
    mass: float
    prior: float
    truth: float
    centre: float
    gyration: float
    true_gyration: float
    wall: bool
    found: bool

    @property
    def ratio(self) -> float:
        """Mass over that of the prior, or over the true one where the prior has none."""
        return self.mass / (self.prior if self.prior > 0 else self.truth)

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What is wrong with it. A true body outside the box may lie at its wall, and be as compact as it is."""
        out = []
        if not self._allowed and (self.ratio < LIGHTEST or self.ratio > HEAVIEST or not self.mass > 0):
            out.append(Flag.BOX)
        if self.wall and not self.found:
            out.append(Flag.WALL)
        least = COMPACT if math.isnan(self.true_gyration) else min(COMPACT, self.true_gyration)
        if not self.found and self.gyration < (1 - _AT_WALL) * least:
            out.append(Flag.COMPACT)
        return tuple(out)

    @property
    def _allowed(self) -> bool:
        """Whether the mass is right although the box does not hold it."""
        return 0.8 < self.mass / self.truth < 1.25 if self.truth > 0 else False


@dataclass(frozen=True)
class BodyResult:
    """What a method makes of a case.

    `mass` is the known total (kg), NaN where nobody knows it; `error` the mean over the joints of the relative error on
    unseen motion, in percent. `refused` is the message of a method that gives no estimate.
    """

    name: str
    variant: str
    method: str
    held_back: bool
    mass: float
    source: str
    gain_known: bool
    total: float
    prior: float
    error: float
    verdict: str
    seconds: float
    bodies: tuple[Body, ...]
    refused: str = ""

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What is wrong with the total and with the bodies, each once."""
        if self.refused:
            return (Flag.REFUSED,)
        off = self.gain_known and not math.isnan(self.mass) and not _TOTAL[0] <= self.total / self.mass <= _TOTAL[1]
        return tuple(dict.fromkeys([*([Flag.TOTAL] if off else []), *(f for b in self.bodies for f in b.flags)]))

    @property
    def worst(self) -> Body | None:
        """The body whose mass is furthest from that of the prior, as a factor."""
        known = [b for b in self.bodies if np.isfinite(b.ratio)]
        return max(known, key=lambda b: abs(math.log(max(b.ratio, 1e-6))), default=None)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.name, self.variant, self.method

    def to_dict(self) -> dict[str, Any]:
        """All figures and flags as plain data, None where a figure is not known."""
        out = {**asdict(self), "flags": [str(flag) for flag in self.flags]}
        for row, body in zip(out["bodies"], self.bodies, strict=True):
            row |= {"ratio": body.ratio, "flags": [str(flag) for flag in body.flags]}
        return _plain(out)


def _plain(x: Any) -> Any:
    """Figures that are not finite are null in JSON."""
    if isinstance(x, dict):
        return {key: _plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x


# -- one case ------------------------------------------------------------------------------------------


def judged(case: BodyCase, method: str = _DEFAULT) -> BodyResult:
    """Identify a case with default settings, and look at its bodies, its error on unseen motion and its verdict."""
    known = math.nan if case.mass is None else case.mass
    build = partial(
        BodyResult, name=case.name, variant=str(case.variant), method=method, held_back=case.held_back, mass=known,
        source=case.source, gain_known=case.gain_known, prior=moving_mass(case.robot),
    )  # fmt: skip
    started = time.perf_counter()
    try:
        estimate = identify(case.robot, case.train, method)
        seconds = time.perf_counter() - started
        error = math.nan if case.test is None else 100 * float(np.mean(validate(estimate, case.test).relative))
        verdict = assess(estimate, case.test, recording=case.train).verdict
    except DynidError as fault:
        seconds, nan = time.perf_counter() - started, math.nan
        return build(total=nan, error=nan, verdict="refused", seconds=seconds, bodies=(), refused=str(fault))
    total = moving_mass(estimate.identified_robot)
    return build(total=total, error=error, verdict=verdict, seconds=seconds, bodies=tuple(_bodies(estimate, case)))


def _bodies(estimate: Estimate, case: BodyCase) -> Iterator[Body]:
    places, sizes, named = link_sizes(case.robot), _sizes(case.robot), _named(estimate)
    for i in case.robot.parameter_links:
        link, after = case.robot.links[i], estimate.identified_robot.links[i].inertia
        truth = np.full(10, np.nan) if case.truth is None else case.truth.links[i].inertia
        prior, place, size = float(link.inertia[0]), places[link.name], sizes[link.name]
        centre, gyration = _shape(after, place, size)
        yield Body(
            link.name, float(after[0]), prior, float(truth[0]), centre, gyration, _shape(truth, place, size)[1],
            _at_wall(after[0] / prior if prior > 0 else math.nan, gyration), link.name in named,
        )  # fmt: skip


def _named(estimate: Estimate) -> set[str]:
    """Links that a finding names."""
    robot, pi = estimate.robot, estimate.parameters
    found = implausible_bodies(robot, pi, covariance=estimate.standard_covariance, prior=robot.parameters)
    told = {link.name for link in robot.links if any(link.name in note for note in estimate.notes)}
    return {finding.link for finding in found} | {wall.link for wall in estimate.walls} | told


def _at_wall(ratio: float, gyration: float) -> bool:
    """Whether a mass or a radius of gyration is where the box ends."""
    edges = ((ratio, LIGHTEST), (ratio, HEAVIEST), (gyration, COMPACT))
    return any(abs(value / edge - 1.0) < _AT_WALL for value, edge in edges)


def _sizes(robot: Robot) -> dict[str, float]:
    """Size (m) of every link: the diagonal of its shapes, or the distance of its joints where that is not tiny."""
    places = link_sizes(robot)
    sizes = {n: 2 * x.half if x.shaped else float(np.linalg.norm(np.ptp(x.box, axis=0))) for n, x in places.items()}
    usual = float(np.mean([x for x in sizes.values() if x > 0])) if any(sizes.values()) else math.nan
    return {name: max(x, _SHORT * usual) for name, x in sizes.items()}


def _shape(inertia: Array, place: LinkSize, size: float) -> tuple[float, float]:
    """Distance of the centre of mass from the middle of the link, and radius of gyration, over the size of the link."""
    if not inertia[0] > 0 or not size > 0:
        return math.nan, math.nan
    mass, centre, tensor = inertia_to_com(inertia)
    away = float(np.linalg.norm(centre - place.box.mean(axis=0)))
    return away / size, math.sqrt(max(float(np.trace(tensor)) / (2 * float(mass)), 0.0)) / size


# -- many cases ----------------------------------------------------------------------------------------


def case_keys(
    names: Iterable[str] = (), variants: Iterable[str] = (), half: str | None = None
) -> list[tuple[str, str]]:
    """Name and variant of the cases, all of them unless named; `half` leaves the other half out."""
    wanted, kinds = list(names), list(variants)
    if half is not None and half not in _HALVES:
        raise DataError(f"there is no half '{half}': use {' or '.join(repr(h) for h in _HALVES)}")
    unknown = [n for n in wanted if n not in MACHINES and n not in ARMS]
    if unknown:
        raise DataError(f"no machine or arm is named '{unknown[0]}', there are {', '.join([*MACHINES, *ARMS])}")
    every = [(n, RECORDED) for n in MACHINES] + [(n, str(v)) for n in ARMS for v in Variant]
    held = {name: known.held_back for name, known in (MACHINES | ARMS).items()}
    return [
        (n, v)
        for n, v in every
        if (not wanted or n in wanted) and (not kinds or v in kinds) and half in (None, _HALVES[held[n]])
    ]


def results(keys: Sequence[tuple[str, str]], method: str = _DEFAULT, folder: Path | None = None) -> list[BodyResult]:
    """Results of cases; the folder keeps each as soon as it is known, and a second call does what is missing."""
    tasks = {f"{name}, {variant}, {method}": (name, variant, method) for name, variant in keys}
    rows = finished_rows(f"bodies, {method}", _row, tasks, rows_file("bodies", folder), workers=1)
    return [
        BodyResult(**{**row["result"], "bodies": tuple(Body(**x) for x in row["result"]["bodies"])}) for row in rows
    ]


def _row(name: str, variant: str, method: str) -> dict[str, Any]:
    case = machine(name) if variant == RECORDED else arm(name, Variant(variant))
    return {"result": asdict(judged(case, method))}


# -- pages ---------------------------------------------------------------------------------------------


def figures(full: bool = False, half: str | None = None, folder: Path | None = None) -> Iterator[Figure]:
    """Total and bodies of three cases, or of all of them; a flagged line is out of tolerance."""
    keys = case_keys(half=half) if full else [k for k in _QUICK if k in case_keys(half=half)]
    for result in results(keys, folder=folder):
        kind = "real machines" if result.variant == RECORDED else f"arms, {result.variant}"
        section = f"{kind}, {_HALVES[result.held_back]} half"
        known = "unknown" if math.isnan(result.mass) else f"{result.mass:.3g} kg"
        reason = ", ".join(result.flags) or result.source
        yield Figure(section, result.name, known, result.refused or _total(result), len(result.flags), 0.0, reason)
        for body in result.bodies:
            name = f"{result.name}: {body.link}"
            yield Figure(section, name, f"{body.prior:.3g} kg", _words(body), 0.0, math.inf, ", ".join(body.flags))


def _total(result: BodyResult) -> str:
    error = "no unseen motion" if math.isnan(result.error) else f"{result.error:.1f} % on unseen motion"
    ratio = "" if math.isnan(result.mass) else f" ({result.total / result.mass:.2f} x)"
    return f"{result.total:.3g} kg{ratio}, {error}, {result.verdict}, {result.seconds:.1f} s"


def _words(body: Body) -> str:
    ratio = "" if math.isnan(body.ratio) else f" ({body.ratio:.2f} x)"
    wall = ", at a wall" if body.wall else ""
    return f"{body.mass:.3g} kg{ratio}, centre {body.centre:.2f}, gyration {body.gyration:.2f} of its size{wall}"


_COLUMNS = ("case", "method", "known, kg", "prior", "total", "ratio", "worst body", "error, %", "verdict", "s", "flags")


def table(found: Sequence[BodyResult]) -> str:
    """One line per result as a Markdown table, and where the known masses are from."""
    lines = [_COLUMNS, ("---",) * len(_COLUMNS), *(_cells(result) for result in found)]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{text}\n\n" + "\n".join(dict.fromkeys(f"- {r.name}: {r.source}" for r in found)) + "\n"


def _cells(r: BodyResult) -> tuple[str, ...]:
    name = r.name if r.variant == RECORDED else f"{r.name}, {r.variant}"
    worst = "" if r.worst is None else f"{r.worst.link} {r.worst.mass:.3g} kg, {r.worst.ratio:.2f} x"
    known, ratio = "unknown", "unknown"
    if not math.isnan(r.mass):
        known, ratio = f"{r.mass:.3g}", f"{r.total / r.mass:.2f}{'' if r.gain_known else ' (gain unknown)'}"
    error = "none" if math.isnan(r.error) else f"{r.error:.1f}"
    return (
        f"{name} (held back)" if r.held_back else name, r.method, known, f"{r.prior:.3g}", f"{r.total:.3g}", ratio,
        worst, error, r.verdict, f"{r.seconds:.1f}", ", ".join(r.flags) or "none",
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of some cases by some methods; `--json` writes all bodies as well."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "names", nargs="*", help=f"machines and arms, all unless named: {', '.join([*MACHINES, *ARMS])}"
    )
    parser.add_argument("--variant", nargs="+", default=(), choices=[RECORDED, *Variant])
    parser.add_argument("--method", nargs="+", default=(_DEFAULT,))
    parser.add_argument("--half", choices=_HALVES)
    parser.add_argument("--quick", action="store_true", help="three cases that take less than a minute")
    parser.add_argument("--folder", type=Path, help="keep finished cases here; a second call does what is missing")
    parser.add_argument("--json", type=Path, help="file of all totals and bodies")
    given = parser.parse_args(arguments)
    keys = case_keys(given.names, given.variant, given.half)
    keys = [k for k in keys if not given.quick or k in _QUICK]
    found = [r for method in given.method for r in results(keys, method, given.folder)]
    found.sort(key=lambda r: keys.index((r.name, r.variant)))
    print(table(found), end="")
    if given.json is not None:
        given.json.write_text(json.dumps([r.to_dict() for r in found], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
