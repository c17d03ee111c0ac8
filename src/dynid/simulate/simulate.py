"""Simulate a robot under its controller, and get the recording it would have given."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import first_use, for_kernel
from dynid.dynamics.functions import forward_dynamics, mass_matrix
from dynid.errors import DataError, DynidError
from dynid.recording.recording import Recording, Run
from dynid.robot.model import Robot
from dynid.simulate.integrators import Integrator, integration_method
from dynid.simulate.laws import CallableController, Controller, LinearController
from dynid.simulate.plant import friction_rate, plant_arrays
from dynid.simulate.reference import Reference, as_reference, whole_ratio
from dynid.simulate.sensors import Sensors

if TYPE_CHECKING:
    from dynid.dynamics.kernels.integrate import Method

__all__ = ["Loop", "Simulation", "simulate"]

Array = NDArray[np.float64]
Coulomb = float | Literal["exact"]

# Ticks between two words on progress.
_SLICE = 20_000
# Decay by friction that one explicit step takes well (RK4 is stable up to 2.78, Euler up to 2), and steps a period.
_STABLE = {"rk4": 2.5, "semi-implicit": 1.5}
_MOST_STEPS = 1000
_AUTO_STEPS = 8
_KNOWS = {"none": 0, "gravity": 1, "computed torque": 2}


@dataclass(frozen=True, eq=False)
class Loop:
    """How the closed loop is computed.

    integrator: rk4, semi-implicit (both fixed steps), dopri5 (adaptive to `tolerance`), implicit (Euler, implicit in
    friction: stable however steep that is), or auto: rk4 unless friction is so steep that it would need more than eight
    steps a control period, then implicit with eight. substeps: fixed steps a control period, by default as many as
    friction needs to be stable. coulomb: slope (s/rad) of the smooth step that stands for Coulomb friction where the
    robot has none of its own, or "exact", which sticks and needs "implicit".
    """

    integrator: Integrator = "rk4"
    substeps: int | None = None
    tolerance: float = 1e-8
    coulomb: Coulomb = 100.0

    def __post_init__(self) -> None:
        self.method(0.0)
        if self.coulomb == "exact":
            if self.integrator != "implicit":
                raise DataError(f"exact sticking needs the implicit integrator, not '{self.integrator}'")
        elif not (isinstance(self.coulomb, int | float) and self.coulomb > 0):
            raise DataError(f"coulomb is a positive slope or 'exact', got {self.coulomb!r}")

    def method(self, decay: float) -> Method:
        """The integrator for friction that decays by exp(-decay) in a control period."""
        name, steps = self.integrator, self.substeps
        if name == "auto":
            if steps is not None:
                raise DataError("the integrator 'auto' chooses its own substeps")
            few = decay <= _AUTO_STEPS * _STABLE["rk4"]
            name, steps = ("rk4", None) if few else ("implicit", _AUTO_STEPS)
        return integration_method(name, _substeps(name, decay) if steps is None else steps, self.tolerance)

    def robot(self, robot: Robot) -> Robot:
        """The robot as the loop sees it: sharp Coulomb steps made smooth, or all of them sharp where they are exact."""
        if self.coulomb == "exact":
            return robot.with_smooth_coulomb(0.0)
        sharp = [t.is_coulomb and t.slope == 0 for t in robot.drives]
        slope = float(self.coulomb)
        drives = (replace(t, slope=slope) if s else t for t, s in zip(robot.drives, sharp, strict=True))
        return replace(robot, drives=tuple(drives)) if any(sharp) else robot


@dataclass(frozen=True, eq=False)
class Simulation:
    """What happened: t (N,), then true q, v, a, delivered torque, measured q, v and torque, reference, each (N, n).

    `outcome` is "finished", or says why and when it stopped; the arrays then hold what was done until then.
    """

    robot: Robot
    t: Array
    q: Array
    v: Array
    a: Array
    torque: Array
    measured_q: Array
    measured_v: Array
    measured_torque: Array
    reference: Array
    outcome: str
    seconds: float

    @property
    def finished(self) -> bool:
        return self.outcome == "finished"

    def run(self, name: str = "simulated") -> Run:
        """What a logger would have written."""
        return Run(
            self.t,
            self.measured_q,
            v=self.measured_v,
            torque=self.measured_torque,
            reference=self.reference,
            name=name,
        )

    def recording(self, name: str = "simulated") -> Recording:
        """`run` as a recording of its own."""
        return Recording(self.robot.coordinates, (self.run(name),))

    def to_dict(self) -> dict[str, Any]:
        """Outcome and, joint by joint, the largest tracking error and torque."""
        return {
            "outcome": self.outcome,
            "finished": self.finished,
            "samples": len(self.t),
            "seconds": self.seconds,
            "joints": {
                name: {"tracking": float(error), "torque": float(torque)}
                for name, error, torque in zip(
                    self.robot.coordinates,
                    np.abs(self.q - self.reference).max(axis=0, initial=0.0),
                    np.abs(self.torque).max(axis=0, initial=0.0),
                    strict=True,
                )
            },
        }

    def summary(self) -> str:
        """`to_dict` as a table."""
        page = self.to_dict()
        lines = [f"{self.robot.name}: {self.outcome}, {len(self.t)} samples in {self.seconds:.2f} s"]
        width = max(map(len, page["joints"]))
        lines.append(f"{'':<{width}}  largest error  largest torque")
        lines += [f"{k:<{width}}  {x['tracking']:13.4g}  {x['torque']:14.4g}" for k, x in page["joints"].items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Simulation('{self.robot.name}', {len(self.t)} samples, {self.outcome})"


def simulate(
    robot: Robot,
    controller: Controller,
    reference: Any,
    *,
    duration: float | None = None,
    sensors: Sensors | None = None,
    loop: Loop | None = None,
    rate: float | None = None,
    parameters: ArrayLike | None = None,
    disturbance: ArrayLike | None = None,
    torque_limits: ArrayLike | Literal["robot"] | None = None,
    stop_at_limits: bool = False,
    initial: tuple[ArrayLike, ArrayLike] | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Simulation:
    """Run a robot with fixed base under a controller along a reference.

    `reference`: a motion, a run that has one, or positions (K, n) at the controller's rate. `rate` (Hz) is that of the
    record, by default the controller's; it must divide it. `parameters` (p,) replace the robot's own. `disturbance`
    (K, n) pushes the joints, unmeasured. `torque_limits` saturate the drives ("robot" for the model's own limits), with
    `stop_at_limits` the run ends where a position or speed limit is passed. It begins on the reference, or at `initial`
    (q, v). A loop that cannot go on is no error: the result says why it stopped. `progress` is told the share done.
    """
    from dynid.dynamics.kernels.integrate import NOT_POSITIVE

    started = time.perf_counter()
    sensors, loop = sensors or Sensors(), loop or Loop()
    _check(robot, controller)
    path = as_reference(reference, robot, controller.rate, duration)
    every = whole_ratio(controller.rate, rate, "controller and record") if rate is not None else 1
    setup = _Setup(robot, controller, path, sensors, loop, parameters, disturbance, torque_limits, stop_at_limits, seed)
    ticks, code = setup.go(every, initial, progress)
    trace, kept = setup.trace, -(-ticks // every)
    accelerations = setup.accelerations(kept, every)
    if len(accelerations) < kept:
        kept = len(accelerations)
        ticks, code = kept * every, NOT_POSITIVE
    rng = np.random.default_rng([seed, 1])
    deviation = sensors.of_joints("torque_noise", robot.n)
    torque = trace.torque[:kept]
    return Simulation(
        robot,
        np.arange(kept) * every / controller.rate,
        trace.q[:kept],
        trace.v[:kept],
        accelerations,
        torque,
        trace.seen[:kept],
        trace.speed[:kept],
        torque + deviation * rng.standard_normal(torque.shape) if deviation.any() else torque,
        path.q[: kept * every : every],
        setup.explain(code, ticks),
        time.perf_counter() - started,
    )


class _Setup:
    """All arrays of one run of the loop."""

    def __init__(
        self,
        robot: Robot,
        controller: Controller,
        path: Reference,
        sensors: Sensors,
        loop: Loop,
        parameters: ArrayLike | None,
        disturbance: ArrayLike | None,
        torque_limits: ArrayLike | str | None,
        stop_at_limits: bool,
        seed: int,
    ) -> None:
        from dynid.dynamics.kernels import loop as kernels

        n = robot.n
        if isinstance(controller, LinearController) and controller.model is not None:
            controller = replace(controller, model=loop.robot(controller.model))
        self.robot, self.controller, self.path = robot, controller, path
        self.smooth = plant = loop.robot(robot)
        self.parameters = parameters
        self.method = loop.method(friction_rate(plant, parameters, path.q) / controller.rate)
        self.plant = plant_arrays(plant, parameters, path.q)
        rng = np.random.default_rng([seed, 0])
        noise = sensors.of_joints("noise", n)
        counts = sensors.of_joints("counts", n)
        self.sensing = kernels.Sensing(
            noise * rng.standard_normal(path.q.shape) if noise.any() else np.zeros((0, n)),
            np.divide(_turns(robot), counts, out=np.zeros(n), where=counts > 0),
            int(sensors.speed == "difference"),
            sensors.smoothing(controller.rate),
            int(sensors.delay),
        )
        self.bounds = _bounds(robot, torque_limits, stop_at_limits)
        self.push = np.zeros((0, n)) if disturbance is None else _disturbance(disturbance, path.q.shape)

    def go(
        self, every: int, initial: tuple[ArrayLike, ArrayLike] | None, progress: Callable[[float], None] | None
    ) -> tuple[int, int]:
        """Run all ticks; how many were done and how it ended."""
        from dynid.dynamics.kernels import loop as kernels
        from dynid.dynamics.kernels.integrate import make_work

        n, ticks, law = self.robot.n, len(self.path), self.controller
        tree, _, drives, values = self.plant
        self.work = w = make_work(len(tree.parent), n, drives, values, len(self.method.b))
        w.q[0], w.v[0] = (self.path.q[0], self.path.v[0]) if initial is None else _state(initial, n)
        states = law.C.shape[1] if isinstance(law, LinearController) else 0
        memory = kernels.Memory(
            w.q.copy(),
            w.v.copy(),
            np.zeros((2 * n, states)),
            np.zeros((self.sensing.delay + 1, n)),
            np.zeros((1, n)),
            np.zeros((1, n)),
        )
        self.trace = kernels.Trace(*np.zeros((6, -(-ticks // every), n)))
        period = 1.0 / law.rate
        if isinstance(law, CallableController):
            return self._go_outside(law, every, period, w, memory, progress)
        feed = for_kernel(law.torques_ahead(self.path.q, self.path.v, self.path.a))
        model = self.plant if law.model is None else plant_arrays(law.model, None, self.path.q)
        laws = kernels.Law(law.A, law.B, law.C, law.D, _KNOWS[law.knows])
        reference = (self.path.q, self.path.v, self.path.a)
        with first_use(kernels.closed_loop):
            for start in range(0, ticks, _SLICE):
                done, code = kernels.closed_loop(
                    self.plant, self.method, laws, model, self.sensing, self.bounds, reference, feed, self.push,
                    period, every, start, min(start + _SLICE, ticks), w, memory, self.trace,
                )  # fmt: skip
                if progress is not None:
                    progress(done / ticks)
                if code:
                    return done, code
        return ticks, 0

    def _go_outside(
        self,
        law: CallableController,
        every: int,
        period: float,
        w: Any,
        memory: Any,
        progress: Callable[[float], None] | None,
    ) -> tuple[int, int]:
        from dynid.dynamics.kernels import loop as kernels

        path, ticks = self.path, len(self.path)
        for k in range(ticks):
            kernels.sense(self.sensing, period, k, w, memory)
            given = law.function(
                k * period, path.q[k], path.v[k], path.a[k], memory.seen[0].copy(), memory.speed[0].copy()
            )
            command = np.asarray(given, dtype=float)
            if command.shape != (law.n,) or not np.all(np.isfinite(command)):
                raise DataError(
                    f"controller '{law.name}' must give {law.n} finite torques, at {k * period:g} s it does not"
                )
            memory.command[0] = command
            code = kernels.answer(
                self.plant, self.method, self.sensing, self.bounds, self.push, period, every, k, w, memory, self.trace
            )
            if progress is not None and (k + 1 == ticks or k % _SLICE == 0):
                progress((k + 1) / ticks)
            if code:
                return k, code
        return ticks, 0

    def accelerations(self, kept: int, every: int) -> Array:
        """Accelerations at the kept samples; where a step is implicit, its mean is not what its start has.

        Viscous friction may carry an implicit step over a mass matrix that is not positive definite: they end there.
        """
        trace = self.trace
        if not self.method.implicit or any(t.is_coulomb and t.slope == 0 for t in self.smooth.drives):
            return trace.a[:kept]
        torque = trace.torque[:kept]
        if len(self.push):
            torque = torque + self.push[: kept * every : every]
        q, v = trace.q[:kept], trace.v[:kept]
        try:
            return forward_dynamics(self.smooth, q, v, torque, self.parameters)
        except DynidError:
            good = int(np.argmin(np.linalg.eigvalsh(mass_matrix(self.smooth, q, self.parameters))[:, 0] > 0))
            return forward_dynamics(self.smooth, q[:good], v[:good], torque[:good], self.parameters)

    def explain(self, code: int, ticks: int) -> str:
        """The end of a run in words."""
        if code == 0:
            return "finished"
        from dynid.dynamics.kernels import integrate
        from dynid.dynamics.kernels import loop as kernels

        q, v, bounds = self.work.q[0], self.work.v[0], self.bounds
        outside = (
            (q < bounds.lower) | (q > bounds.upper) if code == kernels.POSITION_LIMIT else np.abs(v) > bounds.speed
        )
        joint = self.robot.coordinates[int(np.argmax(outside))]
        why = {
            integrate.NOT_POSITIVE: "the mass matrix is not positive definite; the parameters are impossible",
            integrate.DIVERGED: "the state runs away; the controller is unstable with this robot",
            integrate.STEP_VANISHED: "steps shrink to nothing: friction is too steep (use the implicit integrator), "
            "or the mass matrix is hardly positive definite",
            kernels.POSITION_LIMIT: f"'{joint}' passes its position limit",
            kernels.SPEED_LIMIT: f"'{joint}' passes its speed limit",
        }
        return f"stopped at {ticks / self.controller.rate:.4g} s: {why[code]}"


def _substeps(integrator: Integrator, decay: float) -> int:
    """Steps a control period in which friction decays by exp(-decay), such that each is stable with room to spare."""
    count = int(np.ceil(max(1.0, decay / _STABLE.get(integrator, np.inf))))
    if count > _MOST_STEPS:
        raise DataError(
            f"friction is so steep that '{integrator}' needs {count} steps a control period: use the implicit "
            "integrator or a smaller slope"
        )
    return count


def _bounds(robot: Robot, torque: ArrayLike | str | None, stop: bool) -> Any:
    from dynid.dynamics.kernels.loop import Bounds

    limits = [robot.limits[c] for c in robot.coordinates]
    n = robot.n
    if torque is None:
        torque = np.inf
    elif isinstance(torque, str):
        if torque != "robot":
            raise DataError(f"torque_limits are numbers or 'robot', not '{torque}'")
        torque = [x.effort for x in limits]
    bound = np.asarray(torque, dtype=float)
    if bound.shape not in ((), (n,)) or not np.all(bound > 0):
        raise DataError(f"torque_limits need one positive number or one a joint ({n})")
    free = np.full(n, np.inf)
    return Bounds(
        np.broadcast_to(bound, (n,)).copy(),
        np.array([x.lower for x in limits]) if stop else -free,
        np.array([x.upper for x in limits]) if stop else free,
        np.array([x.velocity for x in limits]) if stop else free,
    )


def _turns(robot: Robot) -> Array:
    """What an encoder's counts divide: a revolution, or a metre where the joint slides."""
    kind = {joint.name: joint.kind for joint in robot.joints}
    return np.array([1.0 if kind[name] == "prismatic" else 2 * np.pi for name in robot.coordinates])


def _state(given: tuple[ArrayLike, ArrayLike], n: int) -> Array:
    try:
        state = np.array(given, dtype=float)
    except (TypeError, ValueError):
        state = np.empty(0)
    if state.shape != (2, n) or not np.all(np.isfinite(state)):
        raise DataError(f"initial needs finite positions ({n},) and speeds ({n},)")
    return state


def _disturbance(given: ArrayLike, shape: tuple[int, ...]) -> Array:
    push = for_kernel(given)
    if push.shape != shape or not np.all(np.isfinite(push)):
        raise DataError(f"the disturbance must be finite torques {shape}, one row a control period, got {push.shape}")
    return push


def _check(robot: Robot, controller: Controller) -> None:
    if not isinstance(controller, LinearController | CallableController):
        raise DataError(f"a controller is made by dynid.controllers, got {controller!r:.60}")
    if robot.base == "floating":
        raise DataError(f"robot '{robot.name}' has a floating base; closed-loop simulation needs a fixed one")
    if controller.n != robot.n:
        raise DataError(f"the controller has {controller.n} joints, robot '{robot.name}' {robot.n}")
