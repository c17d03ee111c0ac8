"""People from real data: published problems with symmetry added, and a table against a file's own inertias."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy

import dynid
from dynid import Robot
from dynid.feasibility import constraints
from dynid.robot import Joint, Link
from dynid.robot.inertia import INERTIAL_SYMBOLS

pytestmark = pytest.mark.real

ORDER = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Iyz", "Ixz")
# Feet, shanks, thighs, hands, forearms and upper arms; the other bodies are pelvis, trunk (two) and head.
PAIRS = ((1, 2), (3, 4), (5, 6), (8, 9), (10, 11), (14, 15))


class Published:
    """The problem of Lee, Wensing and Park (2020) for the public functions."""

    def __init__(self, folder: Path) -> None:
        given = scipy.io.loadmat(folder / "Train_data_human.mat")
        solutions = np.load(folder / "published_solutions.npz")
        order = [ORDER.index(s) for s in INERTIAL_SYMBOLS]
        self.W = given["A"][:, np.add.outer(10 * np.arange(16), order).ravel()]
        self.y = given["b"].ravel()
        self.deviation = np.tile(np.sqrt(np.diag(solutions["sigma"])), len(self.y) // 3)
        self.gamma, self.bound = float(solutions["gamma"]), float(np.sqrt(solutions["c"]))
        bodies = given["Phi_prior"][order].T
        links = [Link("ground", np.zeros(10)), *(Link(f"body{k}", b) for k, b in enumerate(bodies, start=1))]
        joints = [Joint(f"joint{k + 1}", "revolute", k, np.eye(4), np.array([0.0, 0.0, 1.0])) for k in range(16)]
        self.robot = Robot("human", tuple(links), tuple(joints))
        inside = [constraints.Ellipsoids(f"body{k}", [q]) for k, q in enumerate(given["Q"].ravel(), start=1)]
        self.laws = [constraints.Inertia(margin=0.0), *inside]
        self.frames = scipy.io.loadmat(folder / "Body_frames_human.mat")["T_sb"]

    def fit(self, laws: list[constraints.Constraint], **options: object) -> np.ndarray:
        found = dynid.feasibility.fit_regressor(
            self.robot,
            self.W,
            self.y,
            std=self.deviation,
            constraints=laws,
            **options,  # type: ignore[arg-type]
        )
        assert found.solution.status == "solved"
        return found.parameters

    def squares(self, pi: np.ndarray) -> float:
        return float(np.sum(((self.W @ pi - self.y) / self.deviation) ** 2))

    def symmetry(self) -> constraints.Symmetry:
        """Frames are principal axes of either sign: the signs that mirror left to right in the reference pose."""
        mirror = np.diag([-1.0, 1.0, 1.0])
        placements = {}
        for a, b in PAIRS:
            seen = np.diag(self.frames[:3, :3, b - 1].T @ mirror @ self.frames[:3, :3, a - 1])
            signs = max((s for s in product((-1, 1), repeat=3) if np.prod(s) < 0), key=lambda s, d=seen: s @ d)
            placements[f"body{b}"] = np.diag([*signs, 1.0])
        return constraints.Symmetry([(f"body{a}", f"body{b}") for a, b in PAIRS], "x", placements)


@pytest.fixture(scope="module")
def published(data: Path) -> Published:
    folder = data / "human-regressor-lee2020"
    if not folder.is_dir():
        pytest.skip("no data of the published problem")
    return Published(folder)


@pytest.mark.parametrize(
    ("metric", "options", "mass"),
    [("euclidean", {"unit": "SI"}, 63.702), ("pullback", {}, 62.542), ("entropic", {}, 62.613)],
)
def test_published_masses_through_the_public_function(
    published: Published, metric: str, options: dict[str, object], mass: float
) -> None:
    """As printed, to three decimals."""
    side = {"weight": published.gamma} if metric == "euclidean" else {"bound": published.bound}
    pi = published.fit(published.laws, metric=metric, **side, **options)
    assert pi[::10].sum() == pytest.approx(mass, abs=5e-4)


def test_symmetric_person(published: Published) -> None:
    """Left equals right in all three metrics; the data resist by 6 %, and the mass changes by less than 0.2 %."""
    laws = [*published.laws, published.symmetry()]
    free = published.fit(published.laws, weight=published.gamma, unit="SI")
    pi = published.fit(laws, weight=published.gamma, unit="SI")
    assert 1.0 < published.squares(pi) / published.squares(free) < 1.07
    bound = np.sqrt(published.squares(pi)) * (1 + 1e-9)
    found = {"euclidean": pi}
    for metric in ("pullback", "entropic"):
        found[metric] = published.fit(laws, bound=bound, metric=metric)
    possible = dynid.feasibility.feasible_set(published.robot, laws)
    for metric, mass in (("euclidean", 63.677), ("pullback", 62.424), ("entropic", 62.495)):
        pi = found[metric]
        assert possible.violations(pi, 1e-7) == []
        assert pi[::10].sum() == pytest.approx(mass, abs=2e-3)
        for a, b in PAIRS:
            assert pi[10 * (a - 1)] == pytest.approx(pi[10 * (b - 1)], abs=1e-7)
            assert published.robot.parameters[10 * (a - 1)] != published.robot.parameters[10 * (b - 1)]


@pytest.fixture(scope="module")
def walker(data: Path) -> tuple[Robot, np.ndarray, np.ndarray]:
    """The skeleton of a real person, its coordinates and the wrench on the ground, smoothed alike."""
    folder = data / "human-forceplate-figaroh"
    if not folder.is_dir():
        pytest.skip("no data of a person on a force plate")
    robot = dynid.load_robot(folder / "human.urdf", base="floating")
    table = pl.read_csv(folder / "q_and_wrench_30Hz.csv.gz")
    q = table.select([f"q_{i}" for i in range(43)]).to_numpy().copy()
    flips = np.cumprod(np.where(np.sum(q[1:, 3:7] * q[:-1, 3:7], axis=1) < 0, -1.0, 1.0))
    q[1:, 3:7] *= flips[:, None]
    b, a = scipy.signal.butter(2, 2 / 15)
    smooth = scipy.signal.filtfilt(b, a, q, axis=0)
    smooth[:, 3:7] /= np.linalg.norm(smooth[:, 3:7], axis=1)[:, None]
    wrench = table.select(["Fx", "Fy", "Fz", "Mx", "My", "Mz"]).to_numpy()
    return robot, smooth, scipy.signal.filtfilt(b, a, wrench, axis=0)


def ground_wrench(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Forces and moments about the world's origin (N, 6) that the motion takes."""
    dt = 1 / 30
    turns = scipy.spatial.transform.Rotation.from_quat(q[:, 3:7])
    spin = np.zeros((len(q), 3))
    spin[1:-1] = (turns[:-2].inv() * turns[2:]).as_rotvec() / (2 * dt)
    linear = turns.inv().apply(np.gradient(q[:, :3], dt, axis=0))
    v = np.column_stack([linear, spin, np.gradient(q[:, 7:], dt, axis=0)])
    tau = dynid.inverse_dynamics(robot, q, v, np.gradient(v, dt, axis=0))
    force = turns.apply(tau[:, :3])
    return np.column_stack([force, turns.apply(tau[:, 3:6]) + np.cross(q[:, :3], force)])


def test_table_predicts_the_ground_better_than_the_file(walker: tuple[Robot, np.ndarray, np.ndarray]) -> None:
    """Every component, by a tenth and more, before anything is identified.

    The file's inertias are those about the joints written where a URDF has those about the centres of mass, and its
    trunk has centres counted from the upper joint in frames at the lower one.
    """
    robot, q, measured = walker
    inner = slice(30, -30)
    size = measured[inner].std(axis=0)

    def error(model: Robot) -> np.ndarray:
        return np.sqrt(np.mean((ground_wrench(model, q) - measured)[inner] ** 2, axis=0)) / size

    file = error(dynid.human.with_virtual_links(robot))
    table = error(dynid.human.with_anthropometric_prior(robot, "male", 94.4))
    assert np.all(table < 0.92 * file) and np.mean(table / file) < 0.87
    # Relative errors of Fx (which is small), Fy, Fz, Mx, My, Mz.
    np.testing.assert_allclose(table, [1.391, 0.353, 0.251, 0.252, 0.297, 0.511], atol=0.01)


def test_inertias_of_the_file_are_about_its_joints(walker: tuple[Robot, np.ndarray, np.ndarray]) -> None:
    """With the parallel-axis term taken off, radii of gyration are the round numbers of Dumas and Wojtusch (2018)."""
    robot = walker[0]
    shares = {
        "right_upperleg": (0.429, (29, 15, 30)),
        "right_lowerleg": (0.410, (28, 10, 28)),
        "right_upperarm": (0.482, (29, 13, 30)),
        "middle_thorax": (0.555, (42, 33, 36)),
    }
    for name, (centre, radii) in shares.items():
        mass, c, tensor = dynid.inertia.inertia_to_com(robot.links[robot.link_index(name)].inertia)
        length = -c[1] / centre
        about = tensor - mass * (c @ c * np.eye(3) - np.outer(c, c))
        np.testing.assert_allclose(100 * np.sqrt(np.diag(about) / mass) / length, radii, atol=0.06)


def test_all_links_of_a_real_skeleton_are_possible(walker: tuple[Robot, np.ndarray, np.ndarray]) -> None:
    """Thirty-seven bodies, and the three metrics find a fit with weight and symmetry known."""
    robot, q, _ = walker
    prior = dynid.human.with_anthropometric_prior(robot, "male", 94.4, virtual_share=1e-3)
    assert len(prior.parameter_links) == 37
    laws = ["full", constraints.Mass(94.4, 94.4), constraints.Symmetry.by_name(prior, "z", middle=False)]
    still = np.zeros((len(q[::40]), robot.nv))
    W = dynid.regressor(prior, q[::40], still, still)[:, :6].reshape(-1, len(prior.layout))
    y = W @ (prior.parameters * np.random.default_rng(0).uniform(0.9, 1.1, len(prior.layout)))
    for metric in ("euclidean", "pullback", "entropic"):
        found = dynid.feasibility.fit_regressor(prior, W, y, constraints=laws, metric=metric, weight=1.0)  # type: ignore[arg-type]
        assert dynid.feasibility.feasible_set(prior, laws).violations(found.parameters, 1e-6) == []
        masses = [x for x, p in zip(found.parameters, prior.layout, strict=True) if p.symbol == "m"]
        assert len(masses) == 37 and sum(masses) == pytest.approx(94.4, abs=1e-6)
