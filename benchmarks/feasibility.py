"""Feasible identification against modelling layers and baseline methods: times, ratios and errors from one run.

python -m benchmarks.feasibility                 # all parts; needs cvxpy, and picos with cvxopt for their comparison
python -m benchmarks.feasibility --part links    # one of: layers, links, samples
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import dynid
import dynid.robot
from dynid.excitation.basis import random_fourier
from dynid.feasibility.baselines.nonlinear import nonlinear_fit
from dynid.feasibility.baselines.point_mass import point_mass_fit
from dynid.feasibility.baselines.result import body_columns, signed_columns
from dynid.feasibility.constraints import Inertia, link_scales
from dynid.feasibility.fit import fit
from dynid.feasibility.queries import nearest_feasible
from dynid.feasibility.sets import feasible_set
from dynid.identification.observation import Observation, fold
from dynid.identification.observing import observe
from dynid.parameters.base import base_parameters
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.inertia import inertia_from_com, inertia_to_pseudo
from dynid.signals.settings import Signals

Array = NDArray[np.float64]

# Signals are exact, so nothing is filtered.
PLAIN = Signals(cutoff=None, derivative="central", trim=0.0, min_velocity=0.0, decimate=(), resample=None)
DURATION = 20.0
CHUNK = 1024
MARGIN = Inertia().margin
# Weight of the prior on both sides; it selects among vectors that fit equally well.
PULL = 1e-6
LINKS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40)
# The time of SLSQP grows with the cube of the unknowns: runs that would take longer than this are not started.
PATIENCE_S = 10.0
# Maximum number of iterations, and whether the start is the truth, which is better than any published guess.
BASELINES = {"SQP, 30 steps": (30, False), "SQP, 300 steps": (300, False), "SQP, 300, from truth": (300, True)}
HALF = 0.5  # half the box of a link's point masses, m


@dataclass
class Series:
    """A named line of a chart."""

    name: str
    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)

    def add(self, x: float, y: float) -> None:
        self.x.append(x)
        self.y.append(y)


@dataclass(frozen=True)
class Chart:
    title: str
    across: str
    up: str
    lines: list[Series]
    skip: int = 0  # number of colors to skip, to use those of another chart
    ceiling: float = np.inf  # larger values are drawn here


# -- against modelling layers ----------------------------------------------------------------------


def arm() -> dynid.Robot:
    """The iiwa with friction, offsets and rotor inertia; its printed inertias replaced by the nearest feasible ones."""
    robot = dynid.load_robot("iiwa14").with_drives("viscous+coulomb+offset", rotor_inertia=True)
    return robot.with_parameters(nearest_feasible(robot, robot.parameters, "full").parameters)


def observation(robot: dynid.Robot, samples: int) -> Observation:
    """The same 20 s of motion with this number of samples, torques with noise of 1 N m, folded."""
    limits = list(robot.limits.values())
    lower, upper, velocity = (np.array([getattr(x, k) for x in limits]) for k in ("lower", "upper", "velocity"))
    t = np.arange(samples) * DURATION / samples
    q, v, a = random_fourier(lower, upper, velocity, DURATION, t, seed=1)
    torque = dynid.inverse_dynamics(robot, q, v, a) + np.random.default_rng(0).normal(size=(samples, robot.n))
    return observe(robot, Recording(robot.coordinates, (Run(t, q, v=v, torque=torque),)), signals=PLAIN)


def factor_of(seen: Observation) -> tuple[Array, Array]:
    """R (b + 1, p) over standard parameters and z."""
    stacked = seen.stacked()
    return stacked[:, :-1] @ seen.base.matrix, stacked[:, -1]


def through_dynid(robot: dynid.Robot, R: Array, z: Array) -> Array:
    return fit(feasible_set(robot, "full"), R, z, np.asarray(robot.parameters), weight=PULL).parameters


def through_cvxpy(robot: dynid.Robot, R: Array, z: Array) -> Array:
    """The same program in cvxpy, in the same units, with Clarabel at the same tolerance."""
    import cvxpy as cp

    scale, sizes, pseudo = feasible_set(robot, "full").scale, link_scales(robot), inertia_to_pseudo(np.eye(10))
    u = cp.Variable(len(scale))
    laws = [u[signed_columns(robot)] >= 0]
    for c in body_columns(robot):
        mass, length = sizes[robot.layout[c].owner]
        matrix = cp.sum([pseudo[k] * scale[c + k] * u[c + k] for k in range(10)])
        laws.append(matrix >> MARGIN * mass * np.diag([length**2] * 3 + [1.0]))
    pull = cp.sum_squares(u - robot.parameters / scale)
    goal = 0.5 * cp.sum_squares((R * scale) @ u - z) + 0.5 * PULL * pull
    cp.Problem(cp.Minimize(goal), laws).solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return np.asarray(scale * u.value)


def through_picos(robot: dynid.Robot, W: Array, y: Array) -> Array:
    """All rows of the regressor in PICOS, as a norm, with CVXOPT; it fails without the prior."""
    import picos

    scale, sizes, pseudo = feasible_set(robot, "full").scale, link_scales(robot), inertia_to_pseudo(np.eye(10))
    problem, u = picos.Problem(), picos.RealVariable("u", len(scale))
    pull = np.sqrt(PULL)
    A = np.vstack([W * scale, pull * np.eye(len(scale))])
    b = np.concatenate([y, pull * robot.parameters / scale])
    problem.set_objective("min", abs(picos.Constant("A", A) * u - picos.Constant("b", b)))
    for c in body_columns(robot):
        mass, length = sizes[robot.layout[c].owner]
        terms = [picos.Constant(pseudo[k] * scale[c + k]) * u[c + k] for k in range(10)]
        floor = picos.Constant(MARGIN * mass * np.diag([length**2] * 3 + [1.0]))
        problem.add_constraint(picos.sum(terms) >> floor)
    for c in signed_columns(robot):
        problem.add_constraint(u[c] >= 0)
    problem.solve(solver="cvxopt", verbosity=0)
    return np.asarray(scale * np.array(u.value).ravel())


def median_time(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    return median_times([work], repeats)[0]


def median_times(works: list[Callable[[], Any]], repeats: int) -> list[tuple[float, Any]]:
    """Median CPU seconds and result of each, run in turn; other load on the computer does not count."""
    times: list[list[float]] = [[] for _ in works]
    found: list[Any] = [None] * len(works)
    for _ in range(repeats):
        for k, work in enumerate(works):
            started = time.process_time()
            found[k] = work()
            times[k].append(time.process_time() - started)
    return [(float(np.median(t)), x) for t, x in zip(times, found, strict=True)]


def layers() -> list[Chart]:
    """Feasible fit of a 7-joint arm through dynid, cvxpy and PICOS."""
    robot = arm()
    R, z = factor_of(observation(robot, 20_000))
    through_dynid(robot, R, z)
    through_cvxpy(robot, R, z)
    compiled = feasible_set(robot, "full")
    prior = np.asarray(robot.parameters)
    works = [
        lambda: through_dynid(robot, R, z),
        lambda: fit(compiled, R, z, prior, weight=PULL).parameters,
        lambda: through_cvxpy(robot, R, z),
    ]
    (ours, mine), (fitting, _), (theirs, other) = median_times(works, 15)
    cost = [float(np.sum((R @ x - z) ** 2)) for x in (mine, other)]
    print(f"feasible fit of 20,000 samples, 7 joints, 98 unknowns, after folding: dynid {1e3 * ours:.1f} ms")
    print(f"  of which fit() alone, its constraint set compiled before, {1e3 * fitting:.1f} ms")
    version = f"cvxpy {metadata.version('cvxpy')} with Clarabel {metadata.version('clarabel')}"
    ratios = f"ratio {theirs / ours:.1f}, to fit() alone {theirs / fitting:.1f} (goal 5)"
    print(f"  {version}, compiled every time: {1e3 * theirs:.1f} ms, {ratios}, {agreement(*cost)}")
    seen = observation(robot, 3000)
    blocks = list(seen.blocks())
    W, y = np.vstack([b.W for b in blocks]), np.concatenate([b.y for b in blocks])

    def folded() -> Array:
        stacked = np.zeros((0, W.shape[1] + 1))
        for start in range(0, len(y), CHUNK):
            rows = np.column_stack([W[start : start + CHUNK], y[start : start + CHUNK]])
            stacked = fold(np.asfortranarray(np.vstack([stacked, rows])))
        return through_dynid(robot, stacked[:, :-1] @ seen.base.matrix, stacked[:, -1])

    standard = W @ seen.base.matrix
    ours, mine = median_time(folded, 11)
    print(f"feasible fit of all {len(y):,} rows of 3,000 samples: dynid, folding included, {1e3 * ours:.1f} ms")
    try:
        theirs, other = median_time(lambda: through_picos(robot, standard, y), 3)
    except ImportError:
        print("  PICOS is not installed: pip install picos cvxopt for the comparison")
        return []
    cost = [float(np.sum((standard @ x - y) ** 2)) for x in (mine, other)]
    version = f"PICOS {metadata.version('picos')} with CVXOPT {metadata.version('cvxopt')}"
    print(f"  {version}, unreduced: {theirs:.2f} s, ratio {theirs / ours:.0f} (goal 20), {agreement(*cost)}")
    return []


def agreement(ours: float, theirs: float) -> str:
    return f"sums of squares differ by {abs(ours - theirs) / theirs:.0e} (goal 1e-06)"


# -- against baselines, by number of links ---------------------------------------------------------


def chain(links: int, rng: np.random.Generator) -> dynid.Robot:
    """A chain of feasible bodies: 0.5 to 5 kg, centres within 0.3 m, radii of gyration of 0.05 to 0.3 m."""
    bodies = [dynid.robot.Link("base", np.zeros(10))]
    for k in range(links):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0] * rng.uniform(0.05, 0.3, 3)
        second, mass = turn @ turn.T, rng.uniform(0.5, 5.0)
        tensor = mass * (np.trace(second) * np.eye(3) - second)
        bodies.append(dynid.robot.Link(f"link{k + 1}", inertia_from_com(mass, rng.uniform(-0.3, 0.3, 3), tensor)))
    place = np.eye(4)
    place[:3, 3] = 0.3
    joints = (dynid.robot.Joint(f"joint{k + 1}", "revolute", k, place, np.eye(3)[k % 3]) for k in range(links))
    return dynid.Robot("chain", tuple(bodies), tuple(joints))


def by_links() -> list[Chart]:
    """Random regressors of 1000 rows and 10 columns per link: time and error over least squares (Sousa 2014, 6.3.2)."""
    names = ["OLS", "dynid, semi", "dynid, full", "point masses", *BASELINES]
    times, errors = ({n: Series(n) for n in names} for _ in range(2))
    guess = dict.fromkeys(BASELINES, 0.0)
    print("links: seconds (and error over OLS in % of the torques) of " + ", ".join(names))
    for links in LINKS:
        rng = np.random.default_rng(links)
        robot = chain(links, rng)
        truth = np.asarray(robot.parameters)
        W = rng.normal(size=(1000, 10 * links))
        y = W @ truth
        y = y + 0.3 * np.std(y) * rng.normal(size=len(y))
        stacked = np.linalg.qr(np.column_stack([W, y]), mode="r")
        R, z = stacked[:, :-1], stacked[:, -1]
        # Baselines start from, and dynid is scaled by, an arbitrary body, not the truth.
        plain = inertia_from_com(1.0, np.zeros(3), 0.02 * np.eye(3))
        robot = robot.with_parameters(np.tile(plain, links))
        boxes = {link.name: ([-HALF] * 3, [HALF] * 3) for link in robot.links[1:]}
        work: dict[str, Callable[[], Array]] = {
            "OLS": lambda R=R, z=z: np.linalg.lstsq(R, z, rcond=None)[0],
            "point masses": lambda r=robot, R=R, z=z, b=boxes: point_mass_fit(r, R, z, b).parameters,
        }
        for notion in ("semi", "full"):
            work[f"dynid, {notion}"] = lambda r=robot, R=R, z=z, n=notion: (
                fit(feasible_set(r, n), R, z, np.asarray(r.parameters), weight=PULL).parameters
            )
        for name, (cap, kind) in BASELINES.items():
            if guess[name] < PATIENCE_S:
                start = truth if kind else np.asarray(robot.parameters)
                work[name] = lambda r=robot, R=R, z=z, x=start, c=cap: (
                    nonlinear_fit(r, R, z, start=x, max_iterations=c).parameters
                )
        size, line = float(np.linalg.norm(y)), []
        least = float(np.linalg.norm(R @ work["OLS"]() - z))
        for name in names:
            if name not in work:
                line.append("-")
                continue
            seconds, found = median_time(work[name], 1 if name in BASELINES else 3)
            increase = 100 * (float(np.linalg.norm(R @ found - z)) - least) / size
            broken = len(feasible_set(robot, "semi").violations(found, 1e-3))
            times[name].add(links, seconds)
            errors[name].add(links, increase)
            line.append(f"{seconds:.4f} ({increase:.3f}{', ' + str(broken) + ' violated' if broken else ''})")
            if name in BASELINES:
                following = LINKS[min(LINKS.index(links) + 1, len(LINKS) - 1)]
                guess[name] = seconds * (following / links) ** 3
        print(f"{links:>5}: " + ", ".join(line), flush=True)
    shown = [errors[n] for n in names if n != "OLS"]
    return [
        Chart("Time by number of links", "links", "s", list(times.values())),
        Chart("Error over least squares", "links", "% of the torques", shown, 1, 100.0),
    ]


# -- by number of samples --------------------------------------------------------------------------


def by_samples() -> list[Chart]:
    """The time of folding grows with the number of samples, that of the feasible fit does not."""
    robot = arm()
    base_parameters(robot)
    observation(robot, 2000)  # compile
    folding, fitting = Series("folding"), Series("feasible fit of the factor")
    print("samples: folding s, feasible fit ms")
    for samples in (1000, 3000, 10_000, 30_000, 100_000, 300_000):
        started = time.perf_counter()
        seen = observation(robot, samples)
        folding.add(samples, time.perf_counter() - started)
        R, z = factor_of(seen)
        fitting.add(samples, median_time(lambda R=R, z=z: through_dynid(robot, R, z), 5)[0])
        print(f"{samples:>8,}: {folding.y[-1]:.3f}, {1e3 * fitting.y[-1]:.1f}", flush=True)
    return [Chart("Time by number of samples, 7 joints", "samples", "s", [folding, fitting])]


# -- drawing ---------------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 340, 260, 70, 60, 210
_COLORS = ("#7b8794", "#1d6fb8", "#2a9d5c", "#f2b134", "#d1495b", "#8a4fbd", "#1d2b3a")


def drawing(charts: list[Chart]) -> str:
    """Charts side by side with logarithmic axes, as SVG."""
    width = _LEFT + len(charts) * (_WIDTH + _GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_TOP + _HEIGHT + 60}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for k, chart in enumerate(charts):
        out += panel(chart, _LEFT + k * (_WIDTH + _GAP))
    return "\n".join([*out, "</svg>", ""])


def panel(chart: Chart, left: float) -> list[str]:
    x = np.concatenate([s.x for s in chart.lines])
    y = np.concatenate([s.y for s in chart.lines])
    floor = y[y > 0].min() if np.any(y > 0) else 1.0
    low = np.floor(np.log10(max(floor, 1e-5)))
    high = max(np.ceil(np.log10(min(y.max(initial=floor), chart.ceiling))), low + 1)
    first, last = np.log10(x.min()), np.log10(x.max())

    def across(v: Array) -> Array:
        return left + _WIDTH * (np.log10(v) - first) / (last - first)

    def up(v: Array) -> Array:
        return _TOP + _HEIGHT * (high - np.log10(np.clip(v, 10**low, 10**high))) / (high - low)

    out = [
        f'<text x="{left}" y="30" font-size="16" font-weight="bold" fill="#1d2b3a">{chart.title}</text>',
        f'<text x="{left}" y="48" fill="#52606d">{chart.up}</text>',
        f'<rect x="{left}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}" fill="#f4f6f8"/>',
        f'<text x="{left + _WIDTH}" y="{_TOP + _HEIGHT + 36}" text-anchor="end" fill="#52606d">{chart.across}</text>',
    ]
    for power in range(int(low), int(high) + 1):
        v = float(up(np.array(10.0**power)))
        out.append(f'<line x1="{left}" y1="{v:.1f}" x2="{left + _WIDTH}" y2="{v:.1f}" stroke="#d9dde3"/>')
        out.append(f'<text x="{left - 6}" y="{v + 4:.1f}" text-anchor="end" fill="#52606d">{10.0**power:g}</text>')
    for tick in np.unique(x):
        u = float(across(tick))
        words = f"{tick:g}" if tick < 1000 else f"{tick / 1000:g}k"
        place = f'x="{u:.1f}" y="{_TOP + _HEIGHT + 16}"'
        out.append(f'<text {place} text-anchor="middle" font-size="10" fill="#52606d">{words}</text>')
    for k, line in enumerate(chart.lines):
        color = _COLORS[(k + chart.skip) % len(_COLORS)]
        u, v = across(np.array(line.x)), up(np.array(line.y))
        path = "".join(f"{'L' if i else 'M'}{a:.1f} {b:.1f}" for i, (a, b) in enumerate(zip(u, v, strict=True)))
        out.append(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{color}"/>' for a, b in zip(u, v, strict=True)]
        out.append(f'<text x="{left + _WIDTH + 10}" y="{_TOP + 14 + 18 * k}" fill="{color}">{line.name}</text>')
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["layers", "links", "samples"])
    default = Path(__file__).parents[1] / "docs" / "feasibility-baselines.svg"
    parser.add_argument("--figure", type=Path, default=default, help="SVG file of the charts")
    arguments = parser.parse_args()
    print(f"dynid {dynid.__version__}, numpy {np.__version__}, scipy {metadata.version('scipy')}")
    charts: list[Chart] = []
    parts: dict[str, Callable[[], list[Chart]]] = {"layers": layers, "links": by_links, "samples": by_samples}
    for name, part in parts.items():
        if arguments.part in (None, name):
            with threadpool_limits(1, "blas"):  # more threads slow down small matrices
                charts += part()
    if charts:
        arguments.figure.write_text(drawing(charts), encoding="utf-8")
        print(f"drawn: {arguments.figure}")


if __name__ == "__main__":
    main()
