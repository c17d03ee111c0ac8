"""The files that commands in the documentation speak of: an arm with its recordings, and a person on a plate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

import dynid
import dynid.simulation
from dynid.actuators import Commands, Segments, rollout
from dynid.cli.demo import synthetic_recording
from dynid.export.urdf import write_urdf
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot import ActuatorLaw
from tests.support import walkers
from tests.support.geometry_files import write_sockets, write_tracker
from tests.support.person import on_the_ground, swaying, write_plate

# Length of the recordings: less is too little for friction with a quarter held out.
SECONDS = 10.0
LAW = "viscous+coulomb+offset"
LOOP = 'kind = "cascade"\nrate = 1000\nbandwidth = 5\n'
# Mass, centre of mass and principal inertias of each link.
BODIES = (
    (6.0, (0.01, 0.02, -0.1), (0.08, 0.07, 0.03)),
    (4.0, (0.2, 0.01, 0.02), (0.01, 0.07, 0.07)),
    (2.0, (0.15, -0.01, 0.01), (0.004, 0.02, 0.02)),
)


def arm() -> dynid.Robot:
    """Three joints, links of some thickness, and some friction."""
    rows = [
        {"alpha": 0.0, "a": 0.0, "d": 0.4, "theta": 0.0},
        {"alpha": np.pi / 2, "a": 0.0, "d": 0.0, "theta": 0.0},
        {"alpha": 0.0, "a": 0.4, "d": 0.0, "theta": 0.0},
    ]
    robot = dynid.Robot.from_dh(rows, convention="modified", name="arm").with_drives(LAW)
    limits = {name: {"position": (-1.5, 1.5), "velocity": 3.0, "effort": 80.0} for name in robot.coordinates}
    drives = {"fv": 0.8, "fc": 1.2, "off": 0.1}
    bodies = np.concatenate([dynid.inertia.inertia_from_com(m, np.array(c), np.diag(i)) for m, c, i in BODIES])
    inertial = iter(bodies)
    values = [next(inertial) if p.inertial else drives[p.symbol] for p in robot.layout]
    return robot.with_parameters(values).with_limits(limits)


def write_arm_files(folder: Path) -> None:
    """arm.urdf, its controller, three open-loop recordings, a closed-loop one, encoder logs, and an estimate."""
    robot = arm()
    write_urdf(robot, folder / "arm.urdf")
    (folder / "loop.toml").write_text(LOOP)
    for seed in range(3):
        synthetic_recording(robot, seed, duration=SECONDS).to_csv(folder / f"run{seed + 1}.csv")
    _write_loaded(robot, folder)
    write_own_logs(robot, folder)
    _write_encoders(robot, folder)
    _write_walker(folder)
    _write_flexible(robot, folder)
    write_tracker(folder / "tracker.csv", 60)
    write_tracker(folder / "other.csv", 30, seed=7)
    write_sockets(folder / "sockets", places=4, count=10)
    _write_fleet(robot, folder)
    t = np.arange(6000) / 1000.0
    path = 0.6 * np.column_stack([np.sin(2 * t + k) + 0.4 * np.sin((5 + 2 * k) * t) for k in range(3)])
    gains = dynid.controllers.bandwidth_gains(robot, 5.0)
    law = dynid.controllers.cascade(1000.0, *gains)
    sensors = dynid.simulation.Sensors(noise=1e-5, velocity_cutoff=100.0)
    loop = dynid.ClosedLoop(controller=law, sensors=sensors)
    dynid.simulate(robot, loop, path, seed=1).recording().to_csv(folder / "run.csv")
    prior = dynid.load_robot(folder / "arm.urdf", friction=LAW)
    first = dynid.load_recording([folder / "run1.csv", folder / "run2.csv"], prior)
    dynid.identify(prior, first, "wls").save(folder / "estimate.json")
    dynid.identify(prior, first, "feasible").save(folder / "other.json")
    (folder / "limits.toml").write_text('["joint*"]\nvelocity = 1.5\nacceleration = 10\n')


def _write_fleet(robot: dynid.Robot, folder: Path) -> None:
    """Two units on two dates."""
    for k, (unit, day) in enumerate((u, d) for u in "AB" for d in ("2026-03-02", "2026-03-09")):
        place = folder / "fleet" / f"robot={unit}" / f"date={day}" / "run=1"
        place.mkdir(parents=True)
        synthetic_recording(robot, 20 + k, duration=SECONDS).to_csv(place / "log.csv")


def _write_walker(folder: Path) -> None:
    """A quadruped and two logs of it on its feet."""
    walkers.write_walker(folder)
    for name, seed in (("stand", 0), ("walk", 1)):
        walkers.recording(walkers.standing(seed)).to_csv(folder / f"{name}.csv")


def write_own_logs(robot: dynid.Robot, folder: Path) -> None:
    """Two logs with headers of their own and one without: ms, positions in deg, torques, a temperature."""
    places = [f"Achse {k}" for k in (1, 2, 3)], [f"Moment {k}" for k in (1, 2, 3)]
    headers = {
        "monday": ["Zeit [ms]", *places[0], *places[1], "Temperatur"],
        "tuesday": ["Uhr", "a", "b", "c", "A", "B", "C", "Grad"],
        "plain": None,
    }
    for seed, (name, header) in enumerate(headers.items()):
        run = synthetic_recording(robot, seed, duration=SECONDS).runs[0]
        rows = np.column_stack([1000 * run.t, np.rad2deg(run.q), run.torque, np.full(len(run), 21.5)])
        lines = [] if header is None else [";".join(header)]
        lines += [";".join(f"{x:.12g}" for x in row) for row in rows]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def _write_encoders(robot: dynid.Robot, folder: Path) -> None:
    """Two logs of commanded and measured positions without torques, under a PD law."""
    rate, rng = 200.0, np.random.default_rng(5)
    terms = [robot.joint_term(k, "Ia", 0.2) for k in range(robot.n)]
    law = ActuatorLaw(robot.coordinates, kp=400.0, kd=25.0, delay=0.006)
    t = np.arange(1200) / rate
    for name, low in (("encoders1", 0.5), ("encoders2", 0.7)):
        phase = 2 * np.pi * (low * t + 0.25 * t**2)
        command = 0.5 * np.minimum(1.0, t)[:, None] * np.sin(np.outer(phase, [1.0, 1.1, 0.9]))
        start = Segments(np.array([0]), len(t) - 1, command[:1], np.zeros((1, robot.n)))
        moved = rollout(robot.with_terms(*terms), law, Commands(rate, command, None, None), start).q[0]
        q = moved + rng.normal(0.0, 1e-4, moved.shape)
        Recording(robot.coordinates, (Run(t, q, reference=command),)).to_csv(folder / f"{name}.csv")


def _write_flexible(robot: dynid.Robot, folder: Path) -> None:
    """Two logs of motor and link positions of the arm with flexible joints, and their torques."""
    t = np.arange(8000) / 1000.0
    rotors = robot.with_terms(*(robot.joint_term(k, "Ia", 0.5) for k in range(robot.n)))
    effects = dynid.simulation.UnmodeledEffects(stiffness=[4e3, 6e3, 2e3], damping=[4.0, 6.0, 2.0])
    law = dynid.controllers.pd(1000.0, *(4.0 * np.array(g) for g in ([300.0, 300.0, 100.0], [30.0, 30.0, 10.0])))
    for name, shift in (("flexible1", 0.0), ("flexible2", 1.0)):
        slow = [0.5 * np.sin(2 * t + k + shift) + 0.2 * np.sin((4 + k) * t) for k in range(3)]
        fast = [0.004 * np.sin((25 + 9 * k + 4 * shift) * t) for k in range(3)]
        path = np.column_stack(slow) + np.column_stack(fast)
        done = dynid.simulate(rotors, dynid.ClosedLoop(controller=law), path, unmodeled=effects)
        step = 2 * np.pi / 400_000
        run = replace(done.recording().runs[0], q=step * np.round(done.motor_q / step), v=None, a=None, reference=None)
        run = replace(run, link_q=step * np.round((done.q + 1e-3) / step))
        Recording(robot.coordinates, (run,)).to_csv(folder / f"{name}.csv")


def _write_loaded(robot: dynid.Robot, folder: Path) -> None:
    """The arm with 1.5 kg in its hand, and what its motors drew without and with it."""
    tool = dynid.inertia.inertia_from_com(1.5, np.array([0.1, 0.0, 0.05]), 0.003 * np.eye(3))
    loaded = synthetic_recording(robot.with_payload("link3", tool), 3, duration=2 * SECONDS)
    loaded.to_csv(folder / "loaded.csv")
    for name, recording in (
        ("currents", synthetic_recording(robot, 4, duration=2 * SECONDS)),
        ("currents_loaded", loaded),
    ):
        runs = (replace(run, current=run.torque / [12.0, 8.0, 5.0], torque=None) for run in recording.runs)
        Recording(recording.joints, tuple(runs)).to_csv(folder / f"{name}.csv")


def write_person_files(folder: Path) -> None:
    """human.urdf, motions of it, what a force plate under it measured, and what it says with nobody on it."""
    write_urdf(dynid.human.human_model("male", 1.8, 94.0), folder / "human.urdf")
    person = dynid.load_robot(folder / "human.urdf", base="floating")
    for name, plate, seed in (("motion", "plate", 1), ("a", "a_plate", 1), ("b", "b_plate", 2), ("c", "c_plate", 3)):
        motion = swaying(person, 100.0, seed)
        run = Run(motion.t, motion.q[:, 7:], base=motion.q[:, :7])
        Recording(person.coordinates, (run,)).to_csv(folder / f"{name}.csv")
        write_plate(folder / f"{plate}.csv", 100.0, on_the_ground(person, motion))
    noise = np.random.default_rng(9).normal(0.0, 0.3, (300, 6))
    write_plate(folder / "empty.csv", 100.0, noise + np.array([-4.0, 2.0, 1.0, 0.2, 0.1, 0.0]))
