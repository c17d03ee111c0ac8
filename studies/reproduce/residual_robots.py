"""Real robots on held-out runs: rigid model alone, with Gaussian-process residual, and plain Gaussian process.

Every split separates whole recordings; a single run is divided in time, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.identification.pipeline import identify
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.residual.blend import Blend
from dynid.residual.fit import fit_residual
from dynid.residual.residual import Residual
from dynid.residual.rows import TorqueRows
from dynid.residual.training import Training
from dynid.robot.model import Robot
from studies.reproduce.robot_cases import CASES
from studies.reproduce.sarcos import sarcos_figures
from studies.reproduce.study import Figure, data_folder, finished_rows, kept_figures, rows_file

__all__ = ["SPLITS", "Errors", "Split", "errors", "figures"]

Array = NDArray[np.float64]

# Largest ratio of the error of a joint with residual to that without.
_WORSE = 1.05
_REASON = "no joint may be worse by more than 5 %"
# The default uses more rows and starts; it is slightly better and takes three times as long.
_TRAINING = Training(rows=250, restarts=0)
# Smaller relative differences count as equal.
_SAME = 1e-3
_UR10E = {
    "20_02_10-30sec_12harm": (635, 3510),
    "20_02_12-40sec_12harm": (500, 4460),
    "20_02_05-20sec_8harm": (320, 2310),
    "20_02_12-50sec_12harm": (355, 5090),
    "20_02_19_14harm50sec": (195, 4966),
}
_UR10E_GAINS = [10.0, 10.6956, 8.4566, 9.0029, 9.4800, 10.1232]


@dataclass(frozen=True, eq=False)
class Split:
    """A robot with its training recording, for identification and residual, and its test recording."""

    name: str
    robot: Robot
    train: Recording
    test: Recording


@dataclass(frozen=True, eq=False)
class Errors:
    """Held-out rms errors (n,) in N m per joint of a split, and the kernel learned for each."""

    joints: tuple[str, ...]
    rigid: Array
    with_residual: Array
    plain: Array
    learned: tuple[str, ...]

    @property
    def ratio(self) -> Array:
        return self.with_residual / self.rigid


def ur10e_splits() -> Iterator[Split]:
    """Unloaded Fourier motions of three weeks, each held out once, and a point-to-point motion of another month."""
    case = CASES["ur10e"]()
    assert case.test is not None
    folder = data_folder() / "ur10e-mamedov" / "identification"
    columns = {"q": "1:7", "v": "7:13", "current": "13:19"}
    runs = {
        name: load_recording(
            folder / f"ur-{name}.csv.gz", case.robot, columns=columns, time=0, gain=_UR10E_GAINS, rows=(first - 1, last)
        ).runs[0]
        for name, (first, last) in _UR10E.items()
    }
    everything = _joined(case.robot, list(runs.values()))
    yield Split("UR10e, point-to-point motion", case.robot, everything, case.test)
    yield Split("UR10e, point-to-point motion, learned from 30 s", case.robot, case.train, case.test)
    for name, run in runs.items():
        rest = [r for r in runs.values() if r is not run]
        yield Split(f"UR10e, run {name}", case.robot, _joined(case.robot, rest), _joined(case.robot, [run]))


def lwr4_splits() -> Iterator[Split]:
    """Three runs in turn; 1 and 2 are the same motion, 3 is another, faster one."""
    case = CASES["lwr4"]()
    assert case.test is not None
    first, third, second = *case.train.runs, *case.test.runs
    yield from _in_turn("KUKA LWR4+", case.robot, {"1": first, "2": second, "3": third})


def kr300_splits() -> Iterator[Split]:
    case = CASES["kr300"]()
    assert case.test is not None
    runs = (*case.train.runs, *case.test.runs)
    yield from _in_turn("KUKA KR300", case.robot, dict(zip("ABC", runs, strict=True)))


def pendulum_splits() -> Iterator[Split]:
    """Every third run held out, in turn."""
    for key, name in (("pendulum_a0", "A.0"), ("pendulum_c0", "C.0"), ("pendulum_c1", "C.1")):
        case = CASES[key]()
        assert case.test is not None
        runs = sorted((*case.train.runs, *case.test.runs), key=lambda run: run.name)
        for k in range(3):
            train = _joined(case.robot, [run for i, run in enumerate(runs) if i % 3 != k])
            what = ("first", "second", "third")[k]
            yield Split(
                f"Double pendulum {name}, {what} of every three runs",
                case.robot,
                train,
                _joined(case.robot, runs[k::3]),
            )


def med7_splits() -> Iterator[Split]:
    """Slow runs for training, one of them with its own time stamps; a faster run is held out."""
    case = CASES["med7"]()
    assert case.test is not None
    yield Split("KUKA LBR Med 7, learned from 100 s", case.robot, case.train, case.test)
    folder = data_folder() / "kuka-lbr-med7"
    names = [f"lbr_joint_{k}" for k in range(7)]
    places = folder / "joint_states_positions.csv.xz"
    other = load_recording(
        {"t": places, "q": places, "torque": folder / "joint_states_efforts.csv.xz"},
        case.robot,
        columns={"q": names, "torque": names},
        time="time",
        sign={"torque": -1.0},
    )
    yield Split("KUKA LBR Med 7, learned from two runs", case.robot, case.train + other, case.test)


def other_splits() -> Iterator[Split]:
    """Robots with one or two short recordings."""
    for key, name in (
        ("xmate_sensor", "Rokae xMate3 Pro, joint torque sensors"),
        ("xmate_motor", "Rokae xMate3 Pro, motor torques"),
        ("kinova_sensor", "Kinova Gen3, joint torque sensors"),
        ("kinova_current", "Kinova Gen3, motor currents"),
        ("tx40_halves", "Staubli TX40, second half"),
        ("tiago", "TIAGo"),
        ("two_link", "Two-link arm"),
    ):
        case = CASES[key]()
        assert case.test is not None
        yield Split(name, case.robot, case.train, case.test)


SPLITS: dict[str, Callable[[], Iterator[Split]]] = {
    "ur10e": ur10e_splits,
    "lwr4": lwr4_splits,
    "kr300": kr300_splits,
    "pendulum": pendulum_splits,
    "med7": med7_splits,
    "others": other_splits,
}


def errors(split: Split, plain: bool = True) -> Errors:
    """Identify, learn and predict the held-out recording; compare with a plain Gaussian process."""
    estimate = identify(split.robot, split.train, "wls")
    known, unseen = TorqueRows.of(estimate, split.train), TorqueRows.of(estimate, split.test)
    residual = fit_residual(estimate, known, training=_TRAINING)
    alone = np.full(len(unseen.joints), np.nan)
    if plain:
        process = fit_residual(
            estimate, known, kernel="ard", basis="constant", rigid="none", blend=Blend.everywhere(), training=_TRAINING
        )
        alone = _rmse(process, unseen)
    names = tuple(split.robot.coordinates[rows.joint] for rows in unseen.joints)
    rigid = np.array([np.sqrt(np.mean(rows.error**2)) for rows in unseen.joints])
    return Errors(names, rigid, _rmse(residual, unseen), alone, tuple(_words(residual, name) for name in names))


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """Errors of every joint of every split, and the sums; then the SARCOS arm."""
    splits = {robot: list(make()) for robot, make in SPLITS.items()}
    tasks = {split.name: (split,) for some in splits.values() for split in some}
    rows = finished_rows("residual-robots", _row, tasks, rows_file("residual-robots", folder), workers=1)
    known = {row["name"]: _errors(row) for row in rows}
    for name, found in known.items():
        yield from _split_figures(name, found)
    yield from _verdicts({robot: [known[split.name] for split in some] for robot, some in splits.items()})
    yield from kept_figures("residual-robots", {"SARCOS": sarcos_figures}, folder)


def _row(split: Split) -> dict[str, Any]:
    return {name: np.asarray(values).tolist() for name, values in vars(errors(split)).items()}


def _errors(row: dict[str, Any]) -> Errors:
    rigid, both, plain = (np.array(row[name]) for name in ("rigid", "with_residual", "plain"))
    return Errors(tuple(row["joints"]), rigid, both, plain, tuple(row["learned"]))


def _split_figures(name: str, found: Errors) -> Iterator[Figure]:
    section = f"{name}: rms torque error in N m, held out"
    for i, joint in enumerate(found.joints):
        ratio = float(found.ratio[i])
        yield Figure(
            section,
            f"{joint}, {found.learned[i]}",
            f"rigid {found.rigid[i]:.3g}, plain GP {found.plain[i]:.3g}",
            f"{found.with_residual[i]:.3g}, {ratio:.3f} times rigid",
            ratio,
            _WORSE,
            _REASON,
        )


def _verdicts(found: Mapping[str, Sequence[Errors]]) -> Iterator[Figure]:
    section = "All joints of all splits"
    for robot, some in found.items():
        ratio = np.concatenate([e.ratio for e in some])
        shown = f"{np.sum(ratio < 1 - _SAME)} less, {np.sum(ratio > 1 + _SAME)} more, largest ratio {ratio.max():.3f}"
        yield Figure(section, f"{robot}, error of {len(ratio)} joints", "-", shown, 0.0, np.inf, "for the record")
    several = [e for robot, some in found.items() if robot != "others" for e in some]
    every = [e for some in found.values() for e in some]
    name, most = "share with less error than rigid alone", "most of them"
    for group, some, goal, limit, reason in (
        ("five robots with several recordings", several, "> 0.5", 0.5, most),
        ("all", every, "-", np.inf, "for the record"),
    ):
        ratio = np.concatenate([e.ratio for e in some])
        better, worse = float(np.mean(ratio < 1 - _SAME)), float(np.mean(ratio > 1 + _SAME))
        shown = f"{better:.2f} of {len(ratio)}, {worse:.2f} with more"
        yield Figure(section, f"{name}, {group}", goal, shown, 1 - better, limit, reason)
    share = float(np.mean(np.concatenate([e.with_residual <= e.plain for e in every])))
    yield Figure(section, "share with no more error than a plain GP", "> 0.5", f"{share:.2f}", 1 - share, 0.5, most)
    mean, worst = float(np.exp(np.mean(np.log(ratio)))), float(ratio.max())
    yield Figure(section, "geometric mean of the ratios", "< 1", f"{mean:.3f}", mean, 1.0, "the residual helps overall")
    yield Figure(section, "largest ratio", f"<= {_WORSE:g}", f"{worst:.3f}", worst, _WORSE, _REASON)


def _rmse(residual: Residual, unseen: TorqueRows) -> Array:
    out = []
    for rows in unseen.joints:
        learned = residual.predict(*rows.motion).learned[:, rows.joint]
        rigid = rows.rigid if residual.has_rigid else 0.0
        out.append(np.sqrt(np.mean((rows.torque - rigid - learned) ** 2)))
    return np.array(out)


def _words(residual: Residual, joint: str) -> str:
    learned = residual.joints[residual.robot.coordinates.index(joint)]
    return "none" if learned is None else f"{learned.posterior.kernel.name} x {learned.trust:.2f}"


def _in_turn(name: str, robot: Robot, runs: dict[str, Run]) -> Iterator[Split]:
    for key, run in runs.items():
        rest = [r for r in runs.values() if r is not run]
        yield Split(f"{name}, run {key}", robot, _joined(robot, rest), _joined(robot, [run]))


def _joined(robot: Robot, runs: Sequence[Run]) -> Recording:
    return Recording(robot.coordinates, tuple(runs))
