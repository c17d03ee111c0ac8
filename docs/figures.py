"""Draws the figures of the explanations with results of dynid: `python docs/figures.py [NAME...]`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dynid
import dynid.simulation
from dynid import controllers
from dynid.excitation.basis import random_fourier
from dynid.feasibility import constraints
from dynid.report.charts import Chart
from dynid.residual.rows import TorqueRows

Array = NDArray[np.float64]

FOLDER = Path(__file__).parent / "figures"
# Line styles, in the order of the legend, with their colors.
COLORS = {"one": "#1d6fb8", "two": "#d1495b", "three": "#2e8b57", "grey": "#8a94a0", "ink": "#1d2b3a"}
STYLE = (
    "text{font:11.5px Helvetica,Arial,sans-serif;fill:#3a3f47}.grid{stroke:#e3e7eb;fill:none}"
    ".nothing{stroke:none}"
    ".line,.level{fill:none;stroke-width:2}.level{stroke-dasharray:6 4}.band{stroke:none;opacity:.18}"
    ".dots{stroke-width:7;stroke-linecap:round;fill:none}.dots.grey{stroke-width:3.5;opacity:.6}.dots.small{stroke-width:4}"
    + "".join(f".{k}{{stroke:{c}}}.band.{k}{{fill:{c}}}" for k, c in COLORS.items())
)

PENDULUM = """
name = "pendulum"
convention = "modified"

[[joint]]
alpha = "pi/2"
inertia = { mass = 1.0, com = [0.5, 0, 0], tensor = [0.0005, 0, 0, 0.002, 0, 0.002] }
"""


def bias() -> str:
    """Error of one parameter against encoder noise in the loop, for three methods."""
    robot = dynid.load_robot("twolink")
    t = np.arange(6_000) / 1000.0
    path = np.column_stack([np.sin(1.5 * t) + 0.3 * np.sin(4 * t), np.cos(2 * t) - 0.3 * np.sin(3 * t)])
    controller = controllers.cascade(1000.0, *controllers.bandwidth_gains(robot, 10.0))
    signals = dynid.Signals(cutoff=100.0, decimate=(5,), trim=0.3)
    noises = np.geomspace(3e-6, 1e-4, 6)
    base = dynid.base_parameters(robot)
    i = base.names.index("mx_link2R")
    truth = base.values()[i]
    methods = {"wls": "two", "iv": "three", "pc-didim": "one"}
    errors = {m: np.zeros((len(noises), 3)) for m in methods}
    for k, noise in enumerate(noises):
        sensors = dynid.simulation.Sensors(noise=noise, velocity_cutoff=100.0)
        loop = dynid.ClosedLoop(controller=controller, sensors=sensors)
        for seed in range(3):
            recording = dynid.simulate(robot, loop, path, seed=seed).recording()
            for method in methods:
                options = {} if method == "wls" else {"loop": loop}
                estimate = dynid.identify(robot, recording, method, signals=signals, **options)
                errors[method][k, seed] = 100 * (estimate.beta[i] / truth - 1)
    chart = Chart("encoder noise, rad", "error of mx_link2R, %", height=300, log_x=True).level(0.0, "grey")
    for method, look in methods.items():
        chart.line(noises, errors[method].mean(axis=1), look)
        chart.dots(np.repeat(noises, 3), errors[method].ravel(), look)
    return standalone(chart, methods)


def feasible() -> str:
    """Least squares outside the feasible set of a body of known mass, and the best feasible estimate."""
    robot = pendulum()
    t = np.arange(300) / 100.0
    q = (0.5 * np.sin(2.5 * t) + 0.3 * np.sin(7 * t + 1))[:, None]
    v = (1.25 * np.cos(2.5 * t) + 2.1 * np.cos(7 * t + 1))[:, None]
    a = (-3.125 * np.sin(2.5 * t) - 14.7 * np.sin(7 * t + 1))[:, None]
    rng = np.random.default_rng(9)  # one of the seeds for which least squares is outside
    torque = dynid.inverse_dynamics(robot, q, v, a) + 0.8 * rng.normal(size=q.shape)
    recording = dynid.Recording(robot.coordinates, (dynid.Run(t, q, v=v, torque=torque),))
    signals = dynid.Signals(cutoff=None, decimate=(), min_velocity=0.0)
    plain = dynid.identify(robot, recording, "wls", signals=signals)
    known = ["full", constraints.Mass(1.0, 1.0)]
    best = dynid.identify(robot, recording, "feasible", signals=signals, constraints=known)
    pick = [plain.base.names.index(name) for name in ("mx_link1", "Izz_link1")]
    truth = plain.base.values()[pick]
    angle = np.linspace(0, 2 * np.pi, 181)
    root = np.linalg.cholesky(plain.covariance[np.ix_(pick, pick)])
    ellipse = plain.beta[pick][:, None] + np.sqrt(5.991) * root @ np.array([np.cos(angle), np.sin(angle)])
    mx = np.linspace(ellipse[0].min() - 0.01, ellipse[0].max() + 0.01, 121)
    top = max(ellipse[1].max(), mx.max() ** 2)
    chart = Chart("first moment mx, kg m", "inertia Izz about the joint, kg m²", height=340)
    chart.band(mx, mx**2, np.full_like(mx, top), "three").line(mx, mx**2, "three").line(*ellipse, "two")
    chart.dots(plain.beta[pick[:1]], plain.beta[pick[1:]], "two").dots(*best.beta[pick][:, None], "one")
    chart.dots(*truth[:, None], "ink")
    assert not dynid.feasibility.is_feasible(plain.base, plain.beta, known)
    legend = {"least squares, 95 %": "two", "best feasible": "one", "truth": "ink", "feasible, m = 1 kg": "three"}
    return standalone(chart, legend)


def residual() -> str:
    """A learned torque with its 95 % band, which returns to zero away from the training data."""
    robot = pendulum()
    rng = np.random.default_rng(0)
    q = np.sort(np.concatenate([rng.uniform(-1.6, -0.2, 60), rng.uniform(0.5, 1.4, 40)]))[:, None]
    v, a = np.full_like(q, 0.5), np.zeros_like(q)

    def missed(q: Array) -> Array:
        return 0.4 * np.sin(4 * q) + 0.15 * np.sin(9 * q)

    torque = dynid.inverse_dynamics(robot, q, v, a) + missed(q) + 0.04 * rng.normal(size=q.shape)
    rows = TorqueRows.of_motion(robot, q, v, a, torque)
    learned = dynid.fit_residual(robot, rows, kernel="own", periodic=False)
    x = np.linspace(-3.0, 3.0, 241)[:, None]
    found = learned.predict(x, np.full_like(x, 0.5), np.zeros_like(x))
    mean, half = found.learned[:, 0], 1.96 * found.std[:, 0]
    chart = Chart("position, rad", "torque beyond the rigid-body torque, N m", height=300).level(0.0, "grey")
    chart.band(x[:, 0], mean - half, mean + half, "one").line(x[:, 0], missed(x)[:, 0], "two")
    chart.dots(q[:, 0], (torque - dynid.inverse_dynamics(robot, q, v, a))[:, 0], "grey")
    chart.line(x[:, 0], mean, "one")
    return standalone(chart, {"learned, 95 % band": "one", "truth": "two", "samples": "grey"})


def excitation() -> str:
    """Two criteria of random and designed motions within the same ranges of position and velocity."""
    robot = dynid.load_robot("tx40")
    base = dynid.base_parameters(robot)
    own = [robot.limits[name] for name in robot.coordinates]
    lower, upper = np.array([x.lower for x in own]), np.array([x.upper for x in own])
    velocity = np.array([x.velocity for x in own])
    t = np.linspace(0.0, 10.0, 200, endpoint=False)

    def criteria(q: Array, v: Array, a: Array) -> tuple[float, float]:
        s = np.linalg.svd(base.regressor(q, v, a).reshape(-1, base.count), compute_uv=False)
        return float(s[0] / s[-1]), float(np.exp(-np.mean(np.log(s))))

    drawn = np.array([criteria(*random_fourier(lower, upper, velocity, 10.0, t, seed)) for seed in range(60)])
    middle, half = 0.5 * (lower + upper), 0.45 * (upper - lower)
    limits = {
        name: {"lower": middle[j] - half[j], "upper": middle[j] + half[j], "velocity": 0.6 * velocity[j]}
        for j, name in enumerate(robot.coordinates)
    }
    unit = np.median(drawn[:, 1])
    chart = Chart("condition number of W", "standard deviation, geometric mean, over the median", height=320)
    chart.dots(drawn[:, 0], drawn[:, 1] / unit, "grey")
    for criterion, look in (("d", "one"), ("cond", "two")):
        motion = dynid.design_excitation(robot, 10.0, criterion=criterion, limits=limits, budget=300, samples=200)
        condition, std = criteria(*motion.sample(rate=20)[1:])
        chart.dots([condition], [std / unit], look)
    chart.dots([0.0], [0.0], "nothing")  # axes begin at zero
    return standalone(chart, {"random": "grey", "designed by d": "one", "designed by cond": "two"})


def pendulum() -> dynid.Robot:
    """A point-like mass on a light rod of half a metre: close to the boundary of the feasible set."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pendulum.toml"
        file.write_text(PENDULUM, encoding="utf-8")
        return dynid.load_robot(file)


def standalone(chart: Chart, legend: dict[str, str]) -> str:
    """SVG file of a chart, with a legend above it."""
    text = chart.svg()
    head, rest = text.split(">", 1)
    entries, x = [], 60
    for words, look in legend.items():
        entries.append(f'<path class="line {look}" d="M{x} -12h22"/><text x="{x + 28}" y="-8">{words}</text>')
        x += 52 + 6 * len(words)
    head = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    old, new = (f'viewBox="0 {y:g} {chart.width:g} {chart.height - y:g}"' for y in (0, -26))
    head = head.replace(old, new)
    ground = '<rect y="-26" width="100%" height="100%" fill="#fff"/>'
    return f"{head}><style>{STYLE}</style>{ground}{''.join(entries)}{rest}\n"


FIGURES: dict[str, Callable[[], str]] = {
    "bias": bias,
    "feasible": feasible,
    "residual": residual,
    "excitation": excitation,
}


def main(names: Sequence[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in names or FIGURES:
        (FOLDER / f"{name}.svg").write_text(FIGURES[name](), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
