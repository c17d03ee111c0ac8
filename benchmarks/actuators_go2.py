"""The twelve leg joints of a real Go2 from encoders alone, against MuJoCo's identification toolbox and CMA-ES.

The legs hang in the air and follow chirps; positions and commands are logged at 200 Hz. Every method fits the first two
thirds of the log and is judged by a simulation of the whole last third. Rivals have the same unknowns, the same start
(the model file) and the same least values, and simulate the same model under the same law in MuJoCo at the same step:

- mujoco.sysid: least squares with finite differences;
- CMA-ES over all unknowns at once, and as four searches, one per leg, each with a delay of its own: legs do not move
  each other, so that one simulation serves the four searches.
"""

from __future__ import annotations

import contextlib
import copy
import io
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import mujoco
import numpy as np
from mujoco import rollout
from numpy.typing import NDArray

import dynid
from dynid.actuators import ActuatorEstimate, identify_actuators, position_errors
from dynid.actuators.logs import Log, read_logs
from dynid.recording.recording import Recording
from dynid.robot import ActuatorLaw

Array = NDArray[np.float64]

KP, KD = 20.0, 1.5
STEP = 1e-3  # s
THREADS = 2
UNKNOWN = ("armature", "damping", "friction", "delay")
CHOICES = ((), ("offset",), ("bias",))
# Largest values for the rivals; none is reached.
LARGEST = {"armature": 0.2, "damping": 3.0, "friction": 3.0, "offset": 3.0, "delay": 0.02}
# What CMA-ES scales its unknowns with, about the size of what is to be found, and its first standard deviation.
FIRST = 0.3
SIZES = {"armature": 0.02, "damping": 0.3, "friction": 0.4, "offset": 0.1, "delay": 0.003}
PER_JOINT = ("armature", "damping", "friction", "offset")


def folder() -> Path:
    given = os.environ.get("DYNID_DATA")
    return (Path(given) if given else Path(__file__).parents[2] / "shared" / "data") / "unitree-go2-legs-iit"


def parts(recording: Recording, *edges: float) -> list[Recording]:
    """Parts of the only run, between shares of its rows."""
    run = recording.runs[0]
    rows = [round(x * len(run)) for x in edges]
    return [Recording(recording.joints, (run.rows(a, b),)) for a, b in pairwise(rows)]


def total(errors: Array) -> float:
    """Root mean square over the joints."""
    return float(np.sqrt(np.mean(errors**2)))


class Legs:
    """The same legs in MuJoCo, with the law as position actuators."""

    def __init__(self, file: Path, joints: tuple[str, ...], log: Log) -> None:
        self.joints, self.log = joints, log
        self.substeps = int(np.ceil(1 / (log.rate * STEP) - 1e-6))
        spec = mujoco.MjSpec.from_file(str(file))
        free = [j for j in spec.joints if j.type == mujoco.mjtJoint.mjJNT_FREE]
        for item in [*spec.geoms, *spec.meshes, *spec.actuators, *spec.sensors, *spec.keys, *free]:
            spec.delete(item)
        for joint in joints:
            actuator = spec.add_actuator(name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            actuator.set_to_position(kp=KP, kv=KD)
            sensor = spec.add_sensor(name=joint, type=mujoco.mjtSensor.mjSENS_JOINTPOS, objname=joint)
            sensor.objtype = mujoco.mjtObj.mjOBJ_JOINT
        spec.option.timestep = 1.0 / (log.rate * self.substeps)
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
        self.spec, self.model = spec, spec.compile()
        self.data = [mujoco.MjData(self.model) for _ in range(THREADS)]
        self.start = self._state(log)

    def _state(self, log: Log) -> Array:
        data, kind = mujoco.MjData(self.model), mujoco.mjtState.mjSTATE_FULLPHYSICS.value
        data.qpos[:], data.qvel[:] = log.q[0], log.v[0]
        out = np.zeros(mujoco.mj_stateSize(self.model, kind))
        mujoco.mj_getState(self.model, data, out, kind)
        return out

    def of(self, log: Log) -> Legs:
        """The same legs under the commands of another part of the log."""
        out = copy.copy(self)
        out.log, out.start = log, self._state(log)
        return out

    def changed(self, values: dict[str, Array]) -> mujoco.MjModel:
        """The model with other drives."""
        model = copy.copy(self.model)
        model.dof_armature[:], model.dof_damping[:] = values["armature"], values["damping"]
        model.dof_frictionloss[:], model.actuator_biasprm[:, 0] = values["friction"], -values["offset"]
        return model

    def commands(self, delay: Array) -> Array:
        """Means (steps, 12) of the held commands over every step, late by a delay (12,)."""
        held = self.log.commands.position
        assert held is not None
        h, period = self.model.opt.timestep, 1.0 / self.log.rate
        edges = h * np.arange((len(held) - 1) * self.substeps + 1)
        grid = np.concatenate([[-1.0], period * np.arange(len(held) + 1)])
        integral = np.vstack([np.zeros(12), np.cumsum(np.vstack([held[:1], period * held]), axis=0)])
        columns = [np.interp(edges - d, grid, x) for d, x in zip(delay, integral.T, strict=True)]
        return np.diff(np.column_stack(columns), axis=0) / h

    def positions(self, candidates: list[dict[str, Array]]) -> Array:
        """Simulated positions (candidate, row, joint)."""
        models = [self.changed(x) for x in candidates]
        control = np.stack([self.commands(x["delay"]) for x in candidates])
        state, _ = rollout.rollout(models, self.data, np.tile(self.start, (len(models), 1)), control)
        rows = state[:, self.substeps - 1 :: self.substeps, 1:13]
        return np.concatenate([np.tile(self.log.q[0], (len(models), 1, 1)), rows], axis=1)

    def errors(self, candidates: list[dict[str, Array]]) -> Array:
        """Root mean square position errors (candidate, joint)."""
        return np.asarray(np.sqrt(np.mean((self.positions(candidates) - self.log.measured) ** 2, axis=1)))


def unpacked(x: Array) -> dict[str, Array]:
    """Values per joint from armature, damping, friction and offset of every joint and a shared delay."""
    return dict(zip(PER_JOINT, x[:48].reshape(4, 12), strict=True)) | {"delay": np.full(12, x[48])}


def packed(per_joint: dict[str, float]) -> Array:
    return np.concatenate([*(np.full(12, per_joint[x]) for x in PER_JOINT), [per_joint["delay"]]])


def values_of(estimate: ActuatorEstimate) -> dict[str, Array]:
    """Values of an estimate, as the rivals have them."""
    terms = {(t.symbol, t.shaft): t.value for t in estimate.robot.drives}
    symbols = dict(zip(PER_JOINT, ("Ia", "fv", "fc", "off"), strict=True))
    joints = estimate.law.joints
    out = {k: np.array([terms.get((s, j), 0.0) for j in joints]) for k, s in symbols.items()}
    return out | {"delay": np.array(estimate.law.delay)}


@dataclass
class Trace:
    """Progress of a rival: CPU seconds, wall seconds, and its best values so far."""

    name: str
    budget: float
    began: tuple[float, float] = field(default_factory=lambda: (time.process_time(), time.perf_counter()))
    rows: list[tuple[float, float, float, dict[str, Array]]] = field(default_factory=list)
    ended: float = 0.0

    @property
    def spent(self) -> float:
        return time.process_time() - self.began[0]

    def note(self, error: float, values: dict[str, Array]) -> None:
        if not self.rows or error < self.rows[-1][2]:
            self.rows.append((self.spent, time.perf_counter() - self.began[1], error, values))


class Spent(Exception):
    """The time of a rival is over."""


def mujoco_sysid(legs: Legs, start: Array, budget: float) -> Trace:
    """mujoco.sysid with its own optimizer; its residuals are position errors in rad."""
    from mujoco import sysid
    from mujoco.sysid import ParameterDict  # an ImportError where mujoco[sysid] is not installed

    trace = Trace("mujoco.sysid", budget)
    params = ParameterDict()

    def modifier(name: str) -> Callable[[mujoco.MjSpec, sysid.Parameter], None]:
        def change(spec: mujoco.MjSpec, p: sysid.Parameter) -> None:
            for joint, value in zip(legs.joints, p.value, strict=True):
                if name == "offset":
                    spec.actuator(joint).biasprm[0] = -value
                elif name == "damping":
                    spec.joint(joint).damping[0] = value  # a polynomial
                else:
                    setattr(spec.joint(joint), {"friction": "frictionloss"}.get(name, name), value)

        return change

    for k, name in enumerate(PER_JOINT):
        largest = np.full(12, LARGEST[name])
        least = -largest if name == "offset" else np.zeros(12)
        params.add(sysid.Parameter(name, start[12 * k : 12 * k + 12], least, largest, modifier=modifier(name)))
    params.add(sysid.Parameter("delay", start[48], 0.0, LARGEST["delay"]))
    steps = (len(legs.log) - 1) * legs.substeps
    times = legs.model.opt.timestep * np.arange(steps + 1)

    def simulate(models, datas, initial_states, param_dicts, **mappings):  # type: ignore[no-untyped-def]
        control = []
        for p in param_dicts:
            rows = legs.commands(np.full(12, p["delay"].value[0]))
            control.append(sysid.TimeSeries(times, np.vstack([rows, rows[-1:]])))
        mappings.pop("control_signal")
        return sysid.sysid_rollout(
            models=models, datas=datas, control_signal=control, initial_states=initial_states, **mappings
        )

    def compare(p, predicted, measured, model, every, state):  # type: ignore[no-untyped-def]
        rows = slice(legs.substeps - 1, None, legs.substeps)
        simulated = sysid.TimeSeries(predicted.times[rows], state[rows, 1:13], measured.signal_mapping)
        logged = sysid.TimeSeries(simulated.times, measured.data[1:], measured.signal_mapping)
        return logged.data - simulated.data, simulated, logged

    control = sysid.TimeSeries(times, np.zeros((steps + 1, 12)))
    measured = sysid.TimeSeries.from_names(np.arange(len(legs.log)) / legs.log.rate, legs.log.measured, legs.model)
    sequences = sysid.ModelSequences("go2", legs.spec, "run", legs.start, control, measured)
    residual = sysid.build_residual_fn(
        models_sequences=[sequences], modify_residual=compare, custom_rollout=simulate, n_threads=THREADS
    )

    def watched(x: Array, p: sysid.ParameterDict):  # type: ignore[no-untyped-def]
        if trace.spent > budget:
            raise Spent
        found = residual(x, p)
        if x.ndim == 1 or x.shape[1] == 1:
            trace.note(float(np.sqrt(np.mean(np.concatenate(found[0]) ** 2))), unpacked(np.array(x).ravel()))
        return found

    with contextlib.suppress(Spent), contextlib.redirect_stdout(io.StringIO()):
        sysid.optimize(params, watched, optimizer="mujoco", verbose=False, x_scale="jac", max_iters=200)
    return trace


def cma_together(legs: Legs, start: Array, budget: float) -> Trace:
    """CMA-ES over all 49 unknowns."""
    import cma

    trace = Trace("CMA-ES", budget)
    size, largest = packed(SIZES), packed(LARGEST)
    least = np.where(np.arange(49) // 12 == 3, -largest, 0.0)
    options = {"bounds": [list(least / size), list(largest / size)], "seed": 1, "verbose": -9}
    search = cma.CMAEvolutionStrategy(start / size, FIRST, options)
    while not search.stop() and trace.spent < budget:
        asked = search.ask()
        candidates = [unpacked(np.asarray(x) * size) for x in asked]
        errors = [total(x) for x in legs.errors(candidates)]
        search.tell(asked, errors)
        best = int(np.argmin(errors))
        trace.note(errors[best], candidates[best])
    return trace


def cma_apart(legs: Legs, start: Array, budget: float) -> Trace:
    """CMA-ES over 13 unknowns per leg, four searches in one simulation."""
    import cma

    trace = Trace("CMA-ES per leg", budget)
    keep = [[*(12 * k + 3 * leg + j for k in range(4) for j in range(3)), 48] for leg in range(4)]
    size, largest = packed(SIZES), packed(LARGEST)
    least = np.where(np.arange(49) // 12 == 3, -largest, 0.0)
    searches = []
    for i in keep:
        bounds = [list((least / size)[i]), list((largest / size)[i])]
        options = {"bounds": bounds, "seed": 1, "verbose": -9}
        searches.append(cma.CMAEvolutionStrategy(start[i] / size[i], FIRST, options))
    best = [(np.inf, np.zeros(13))] * 4
    while trace.spent < budget and not all(s.stop() for s in searches):
        asked = [s.ask() for s in searches]
        scaled = [[np.asarray(x) * size[i] for x in xs] for xs, i in zip(asked, keep, strict=True)]
        errors = legs.errors([_joined(list(x)) for x in zip(*scaled, strict=True)])
        for k, s in enumerate(searches):
            own = [total(x[3 * k : 3 * k + 3]) for x in errors]
            if not s.stop():
                s.tell(asked[k], own)
            c = int(np.argmin(own))
            best[k] = min(best[k], (own[c], scaled[k][c]), key=lambda x: x[0])
        trace.note(total(np.array([x[0] for x in best])), _joined([x[1] for x in best]))
    return trace


def _joined(of_legs: list[Array]) -> dict[str, Array]:
    """Values of all joints from those of every leg."""
    joint = np.concatenate([x[:12].reshape(4, 3) for x in of_legs], axis=1)
    return dict(zip(PER_JOINT, joint, strict=True)) | {"delay": np.repeat([x[12] for x in of_legs], 3)}


def chosen(robot: dynid.Robot, law: ActuatorLaw, fitted: Recording) -> tuple[str, ...]:
    """Whether an offset or a bias is unknown too: fitted to one half of the fitted part, judged by the other."""
    first, second = parts(fitted, 0.0, 0.5, 1.0)
    found = []
    for more in CHOICES:
        estimate = identify_actuators(robot, first, law, unknown=(*UNKNOWN, *more))
        found.append(total(position_errors(estimate.robot, estimate.law, second).rms))
        print(f"    {' '.join(more) or 'neither':8} {1e3 * found[-1]:.2f} mrad on the second half of the fitted part")
    return CHOICES[int(np.argmin(found))]


def timed(call: Callable[[], ActuatorEstimate]) -> tuple[ActuatorEstimate, float, float]:
    """Result, wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = call()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def run(budget: float) -> None:
    """Print errors and times of all methods.

    Parameters
    ----------
    budget : float
        Time of each rival in multiples of ours, in CPU seconds.
    """
    os.environ["DYNID_THREADS"] = str(THREADS)
    file = folder() / "go2.xml"
    robot = dynid.load_robot(file, friction="viscous+coulomb", rotor_inertia=True).with_base("fixed")
    columns = {"q": "1:13", "reference": "13:25"}
    recording = dynid.load_recording(folder() / "legs_in_air.csv.xz", columns=columns)
    law = ActuatorLaw(robot.coordinates, kp=KP, kd=KD)
    fitted, unseen = parts(recording, 0.0, 2 / 3, 1.0)
    print(f"Go2, twelve joints, {len(fitted.runs[0])} rows fitted, {len(unseen.runs[0])} rows simulated afterwards")
    more = chosen(robot, law, fitted)  # compiles, too
    unknown = (*UNKNOWN, *more)
    ours, wall, cpu = timed(lambda: identify_actuators(robot, fitted, law, unknown=unknown))
    print(f"  unknown: {', '.join(unknown)}; {len(ours.values)} numbers; fitted in {wall:.1f} s ({cpu:.1f} CPU s)")
    print("\n".join(f"    {x}" for x in ours.table().splitlines()))
    before = position_errors(robot, law, unseen).rms
    after = position_errors(ours.robot, ours.law, unseen).rms
    of_fit = total(position_errors(ours.robot, ours.law, fitted).rms)
    print(f"  position error of the fitted part: {1e3 * of_fit:.2f} mrad")
    legs = Legs(file, robot.coordinates, read_logs(robot, law, fitted)[0])
    judge = legs.of(read_logs(robot, law, unseen)[0])
    prior = {"armature": 0.01, "damping": 0.6, "friction": 0.2, "offset": 0.0, "delay": 0.0}
    start = packed(prior)
    rows = [("model file", before), ("model file, MuJoCo", judge.errors([unpacked(start)])[0]), ("dynid", after)]
    if more != ("bias",):
        rows.append(("dynid, MuJoCo", judge.errors([values_of(ours)])[0]))
        traces = []
        for rival in (mujoco_sysid, cma_together, cma_apart):
            try:
                traces.append(rival(legs, start, budget * cpu))
                traces[-1].ended = traces[-1].spent
            except ImportError as error:
                print(f"  {rival.__name__} skipped: {error}")
        rows += [_judged(x, judge, (of_fit, total(after)), cpu) for x in traces]
    print(f"  position error of the last third, mrad{'':12}all  " + " ".join(f"{x[:8]:>8}" for x in robot.coordinates))
    for name, errors in rows:
        print(f"    {name:44}{1e3 * total(errors):7.2f}  " + " ".join(f"{1e3 * x:8.2f}" for x in errors))
    share = total(after) / total(before)
    print(f"  ours over the model file: {share:.3f}; per joint at most {(after / before).max():.3f}")


def _judged(trace: Trace, judge: Legs, ours: tuple[float, float], cpu: float) -> tuple[str, Array]:
    """Print error over time of a rival, and return its last error."""
    kept = np.unique(np.linspace(0, len(trace.rows) - 1, min(len(trace.rows), 60)).astype(int))
    rows = [trace.rows[k] for k in kept]
    errors = np.concatenate([judge.errors([row[3]]) for row in rows])
    print(f"  {trace.name}: CPU s, s, error of the fit and of the last third in mrad")
    shown = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), 10)).astype(int))
    for k in shown:
        print(f"    {rows[k][0]:8.1f} {rows[k][1]:8.1f} {1e3 * rows[k][2]:8.2f} {1e3 * total(errors[k]):8.2f}")
    fit = [row[0] for row in trace.rows if row[2] <= ours[0]]
    unseen = [row[0] for row, e in zip(rows, errors, strict=True) if total(e) <= ours[1]]
    for what, reached, ours_there in (("fit", fit, ours[0]), ("last third", unseen, ours[1])):
        says = f"first after {reached[0] / cpu:.0f}" if reached else f"not within {trace.ended / cpu:.0f}"
        print(f"    our error of the {what}, {1e3 * ours_there:.2f} mrad, is reached {says} times our CPU time")
    return f"{trace.name}, {trace.rows[-1][0]:.0f} of {trace.budget:.0f} CPU s", errors[-1]
