"""Simulate a robot under its controller, and get the recording it would have given."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import as_parameters, first_use, for_kernel
from dynid.dynamics.functions import forward_dynamics, mass_matrix
from dynid.errors import DataError, DynidError
from dynid.robot.model import Robot
from dynid.simulation.laws import CallableController, Controller, LinearController
from dynid.simulation.loop import Loop
from dynid.simulation.plant import bolted, friction_rate, plant_arrays
from dynid.simulation.reference import Reference, as_reference, whole_ratio
from dynid.simulation.sensors import Sensors
from dynid.simulation.simulation import Simulation
from dynid.simulation.unmodeled import UnmodeledEffects, hanging, motor_columns, plant_rates, with_effects

__all__ = ["Loop", "Simulation", "simulate"]

Array = NDArray[np.float64]

# Ticks between two words on progress.
_SLICE = 20_000
# A vibration needs shorter steps to keep its phase: half a radian for RK4, whose frequency errs by 5e-4 there.
_VIBRATION = 5.0
_KNOWS = {"none": 0, "gravity": 1, "computed torque": 2, "compensation": 3, "linearisation": 4}


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
    unmodeled: UnmodeledEffects | None = None,
    initial: tuple[ArrayLike, ArrayLike] | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Simulation:
    """Run a robot with fixed base under a controller along a reference.

    `reference`: a motion, a run that has one, or positions (K, n) at the controller's rate. `rate` (Hz) is that of the
    record, by default the controller's; it must divide it. `parameters` (p,) replace the robot's own. `disturbance`
    (K, n) pushes the joints, unmeasured. `torque_limits` saturate the drives ("robot" for the model's own limits), with
    `stop_at_limits` the run ends where a position or speed limit is passed. `unmodeled` gives the machine what its
    model has not. It begins on the reference, or at `initial` (q, v); flexible joints begin with their motors there and
    their links hanging still in the springs. A loop that cannot go on is no error: the result says why it stopped.
    `progress` is told the share done.
    """
    from dynid.dynamics.kernels.integrate import NOT_POSITIVE

    started = time.perf_counter()
    sensors, loop = sensors or Sensors(), loop or Loop()
    _check(robot, controller, unmodeled)
    path = as_reference(reference, robot, controller.rate, duration)
    every = whole_ratio(controller.rate, rate, "controller and record") if rate is not None else 1
    setup = _Setup(
        robot, controller, path, sensors, loop, parameters, disturbance, torque_limits, stop_at_limits, unmodeled, seed
    )
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
        *setup.motors(kept),
        every,
        unmodeled,
        None if parameters is None else as_parameters(robot, parameters),
        None if disturbance is None else setup.push[: kept * every : every],
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
        unmodeled: UnmodeledEffects | None,
        seed: int,
    ) -> None:
        from dynid.dynamics.kernels import loop as kernels

        n = robot.n
        controller = controller.with_robots(loop.robot)
        self.robot, self.controller, self.path = robot, controller, path
        self.smooth = plant = loop.robot(robot)
        self.parameters = parameters
        self.effects, self.motor = unmodeled, motor_columns(unmodeled, n)
        self.plant = plant_arrays(plant, parameters, path.q)
        if unmodeled is None:
            decay = friction_rate(plant, parameters, path.q)
        else:
            slope = 0.0 if loop.coulomb == "exact" else float(loop.coulomb)
            self.plant = with_effects(self.plant, plant, unmodeled, slope)
            decay, vibration = plant_rates(self.plant, plant, self.motor, path.q)
            decay = max(decay, _VIBRATION * vibration)
        self.method = loop.method(decay / controller.rate)
        rng = np.random.default_rng([seed, 0])
        noise = sensors.of_joints("noise", n)
        counts = sensors.of_joints("counts", n)
        self.sensing = kernels.Sensing(
            noise * rng.standard_normal(path.q.shape) if noise.any() else np.zeros((0, n)),
            np.divide(_turns(robot), counts, out=np.zeros(n), where=counts > 0),
            int(sensors.speed == "difference"),
            sensors.smoothing(controller.rate),
            int(sensors.delay),
            self.motor,
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
        size = max(n, int(self.motor.max()) + 1)
        self.work = w = make_work(len(tree.parent), size, drives, values, len(self.method.b))
        q, v = (self.path.q[0], self.path.v[0]) if initial is None else _state(initial, n)
        link = q if self.effects is None else hanging(bolted(self.smooth, self.parameters), self.effects, q)
        for state, links, motors in ((w.q, link, q), (w.v, v, v)):
            state[0, :n] = links
            state[0, self.motor] = motors
        states = law.C.shape[1] if isinstance(law, LinearController) else 0
        memory = kernels.Memory(
            q[None].copy(),
            v[None].copy(),
            np.zeros((2 * n, states)),
            np.zeros((self.sensing.delay + 1, n)),
            np.zeros((1, n)),
            np.zeros((1, n)),
        )
        kept = -(-ticks // every)
        self.trace = kernels.Trace(*np.zeros((6, kept, n)), *np.zeros((2, kept if size > n else 0, n)))
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
        ahead = law.torques_ahead(path.q, path.v, path.a)
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
            memory.command[0] = command + ahead[k] if len(ahead) else command
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
        push = self.push[: kept * every : every] if len(self.push) else np.zeros_like(torque)
        q, v = trace.q[:kept], trace.v[:kept]
        if self.effects is not None:
            return self._accelerations_of_machine(q, v, torque, push)
        torque = torque + push
        try:
            return forward_dynamics(self.smooth, q, v, torque, self.parameters)
        except DynidError:
            good = int(np.argmin(np.linalg.eigvalsh(mass_matrix(self.smooth, q, self.parameters))[:, 0] > 0))
            return forward_dynamics(self.smooth, q[:good], v[:good], torque[:good], self.parameters)

    def _accelerations_of_machine(self, q: Array, v: Array, torque: Array, push: Array) -> Array:
        """Accelerations of the links, up to where a mass matrix fails."""
        from dynid.dynamics.kernels.forward import forward_dynamics as kernel

        n, size = self.robot.n, self.work.q.shape[1]
        positions, speeds, tau, out = np.zeros((4, len(q), size))
        positions[:, :n], speeds[:, :n] = q, v
        positions[:, self.motor], speeds[:, self.motor] = self.motors(len(q))
        tau[:, self.motor] = torque
        tau[:, :n] += push
        failed = kernel(*self.plant, positions, speeds, tau, 0, len(q), out)
        return np.ascontiguousarray(out[: failed if failed >= 0 else None, :n])

    def motors(self, kept: int) -> tuple[Array, Array]:
        """Positions and speeds (kept, n) of the motors, which are those of the links where no joint gives."""
        trace = self.trace
        if len(trace.motor_q):
            return trace.motor_q[:kept], trace.motor_v[:kept]
        return trace.q[:kept], trace.v[:kept]

    def explain(self, code: int, ticks: int) -> str:
        """The end of a run in words."""
        if code == 0:
            return "finished"
        from dynid.dynamics.kernels import integrate
        from dynid.dynamics.kernels import loop as kernels

        n, bounds = self.robot.n, self.bounds
        q, v = self.work.q[0, :n], self.work.v[0, :n]
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


def _check(robot: Robot, controller: Controller, unmodeled: UnmodeledEffects | None) -> None:
    if unmodeled is not None and not isinstance(unmodeled, UnmodeledEffects):
        raise DataError(f"what the model lacks is given as dynid.simulation.UnmodeledEffects, got {unmodeled!r:.60}")
    if not isinstance(controller, LinearController | CallableController):
        raise DataError(f"a controller is made by dynid.controllers, got {controller!r:.60}")
    if robot.base == "floating":
        raise DataError(f"robot '{robot.name}' has a floating base; closed-loop simulation needs a fixed one")
    if controller.n != robot.n:
        raise DataError(f"the controller has {controller.n} joints, robot '{robot.name}' {robot.n}")
