"""Closed-loop simulation of a robot."""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import as_parameters, first_use, for_kernel
from dynid.dynamics.functions import forward_dynamics, mass_matrix
from dynid.errors import (
    DynidError,
    InvalidShape,
    InvalidType,
    InvalidValue,
    Mismatch,
    MissingArgument,
    NotApplicable,
    SimulationFailed,
    UnknownName,
)
from dynid.progress import Progress, ProgressCallback
from dynid.robot.model import Robot
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.laws import CallableController, Controller, LinearController
from dynid.simulation.plant import bolted, friction_rate, plant_arrays
from dynid.simulation.reference import Reference, as_reference, whole_ratio
from dynid.simulation.simulation import Simulation
from dynid.simulation.unmodeled import UnmodeledEffects, hanging, motor_columns, plant_rates, with_effects

__all__ = ["simulate"]

Array = NDArray[np.float64]

# Control periods between two progress reports.
_SLICE = 20_000
# Decay exponent that stands for one radian of a vibration: RK4 then takes steps of half a radian, with a relative
# frequency error of 5e-4.
_VIBRATION = 5.0
_MODEL_USE = {
    "none": 0,
    "gravity": 1,
    "computed torque": 2,
    "compensation": 3,
    "linearisation": 4,
    "augmented": 5,
}


def simulate(
    robot: Robot,
    loop: ClosedLoop,
    reference: Any,
    *,
    duration: float | None = None,
    rate: float | None = None,
    parameters: ArrayLike | None = None,
    disturbance: ArrayLike | None = None,
    torque_limits: ArrayLike | Literal["robot"] | None = None,
    stop_at_limits: bool = False,
    unmodeled: UnmodeledEffects | None = None,
    initial: tuple[ArrayLike, ArrayLike] | None = None,
    controller_state: ArrayLike | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Simulation:
    """Simulate a robot with a fixed base in a closed loop along a reference.

    Parameters
    ----------
    robot : Robot
        The simulated robot. Its base must not float.
    loop : ClosedLoop
        Controller, sensors and integration settings. The controller is required.
    reference : Excitation, Reference, Run, Recording or array of shape (K, n)
        The trajectory to follow: a designed motion, one recorded run with reference signals, or positions (rad or m)
        at the rate of the controller.
    duration : float, optional
        Length of the simulation in seconds. The whole reference by default.
    rate : float, optional
        Sampling rate of the result in Hz. It must divide the rate of the controller, which is the default.
    parameters : array of shape (p,), optional
        Standard parameters that replace those of the robot.
    disturbance : array of shape (K, n), optional
        Unmeasured joint torques (N m or N), one row per control period.
    torque_limits : float, array of shape (n,) or "robot", optional
        Saturation of the drive torques (N m or N); "robot" takes the effort limits of the robot.
    stop_at_limits : bool
        Stop where a position or velocity limit of the robot is exceeded.
    unmodeled : UnmodeledEffects, optional
        Stiction, torque ripple and joint flexibility of the simulated robot.
    initial : tuple of two arrays of shape (n,), optional
        Initial positions and velocities. By default those of the reference. Flexible joints start with their motors
        there and their links in static equilibrium.
    controller_state : array of shape (n, m), optional
        Initial state of a linear control law with m states per joint. Zero by default.
    seed : int
        Seed of the sensor noise.
    progress : callable, optional
        Called with a `Progress` about every 20 000 control periods.

    Returns
    -------
    Simulation
        True and measured signals. A simulation that cannot continue is not an error: `completed` is False and
        `outcome` gives the reason.

    Raises
    ------
    DataError
        If the loop has no controller, shapes or rates do not fit, or the reference exceeds the position limits.

    Examples
    --------
    >>> import numpy as np, dynid
    >>> robot = dynid.load_robot("twolink")
    >>> gains = dynid.controllers.bandwidth_gains(robot, 5.0)
    >>> loop = dynid.ClosedLoop(controller=dynid.controllers.cascade(1000.0, *gains))
    >>> reference = 0.5 * np.sin(np.arange(500) / 200.0)[:, None] * np.ones(2)
    >>> done = dynid.simulate(robot, loop, reference)
    >>> done.completed, done.q.shape
    (True, (500, 2))
    """
    from dynid.dynamics.kernels.integrate import NOT_POSITIVE

    started = time.perf_counter()
    controller, sensors = _checked(robot, loop, unmodeled), loop.sensors
    path = as_reference(reference, robot, controller.rate, duration)
    every = whole_ratio(controller.rate, rate, "controller and record") if rate is not None else 1
    setup = _Setup(
        robot, controller, path, loop, parameters, disturbance, torque_limits, stop_at_limits, unmodeled, seed
    )
    ticks, code = setup.go(every, initial, controller_state, progress)
    trace, kept = setup.trace, -(-ticks // every)
    accelerations = setup.accelerations(kept, every)
    if len(accelerations) < kept:
        kept = len(accelerations)
        ticks, code = kept * every, NOT_POSITIVE
    rng = np.random.default_rng([seed, 1])
    std = sensors.of_joints("torque_noise", robot.n)
    torque = trace.torque[:kept]
    motor_q, motor_v = setup.motors(kept)
    return Simulation(
        robot=robot,
        t=np.arange(kept) * every / controller.rate,
        q=trace.q[:kept],
        v=trace.v[:kept],
        a=accelerations,
        torque=torque,
        measured_q=trace.seen[:kept],
        measured_v=trace.velocity[:kept],
        measured_torque=torque + std * rng.standard_normal(torque.shape) if std.any() else torque,
        reference=path.q[: kept * every : every],
        completed=code == 0,
        outcome=setup.explain(code, ticks),
        seconds=time.perf_counter() - started,
        motor_q=motor_q,
        motor_v=motor_v,
        periods=every,
        unmodeled=unmodeled,
        parameters=None if parameters is None else as_parameters(robot, parameters),
        disturbance=None if disturbance is None else setup.push[: kept * every : every],
    )


class _Setup:
    """Arrays of one simulation."""

    def __init__(
        self,
        robot: Robot,
        controller: Controller,
        path: Reference,
        loop: ClosedLoop,
        parameters: ArrayLike | None,
        disturbance: ArrayLike | None,
        torque_limits: ArrayLike | str | None,
        stop_at_limits: bool,
        unmodeled: UnmodeledEffects | None,
        seed: int,
    ) -> None:
        from dynid.dynamics.kernels import loop as kernels

        n, sensors = robot.n, loop.sensors
        controller = controller.with_robots(lambda model: loop.regularized(model, path.v))
        self.robot, self.controller, self.path = robot, controller, path
        self.smooth = plant = loop.regularized(robot, path.v)
        self.parameters = parameters
        self.effects, self.motor = unmodeled, motor_columns(unmodeled, n)
        self.plant = plant_arrays(plant, parameters, path.q)
        if unmodeled is None:
            decay = friction_rate(plant, parameters, path.q)
        else:
            self.plant = with_effects(self.plant, plant, unmodeled, loop.slopes(path.v))
            decay, vibration = plant_rates(self.plant, plant, self.motor, path.q)
            decay = max(decay, _VIBRATION * vibration)
        self.method = loop.integration(decay / controller.rate)
        noise = sensors.of_joints("noise", n)
        counts = sensors.of_joints("counts", n)

        def sensing(stream: int, columns: NDArray[np.int64]) -> Any:
            rng = np.random.default_rng([seed, stream])
            return kernels.Sensing(
                noise * rng.standard_normal(path.q.shape) if noise.any() else np.zeros((0, n)),
                np.divide(_turns(robot), counts, out=np.zeros(n), where=counts > 0),
                int(sensors.velocity == "difference"),
                sensors.smoothing(controller.rate),
                int(sensors.delay),
                columns,
            )

        self.sensing, self.link_sensing = sensing(0, self.motor), None
        if isinstance(controller, CallableController) and controller.link_encoders:
            self.link_sensing = sensing(2, np.arange(n))
        self.bounds = _bounds(robot, torque_limits, stop_at_limits)
        self.push = np.zeros((0, n)) if disturbance is None else _disturbance(disturbance, path.q.shape)

    def go(
        self,
        every: int,
        initial: tuple[ArrayLike, ArrayLike] | None,
        controller_state: ArrayLike | None,
        progress: ProgressCallback | None,
    ) -> tuple[int, int]:
        """Simulate all control periods; return how many were completed and the status code."""
        from dynid.dynamics.kernels import loop as kernels
        from dynid.dynamics.kernels.integrate import make_work

        n, ticks, law = self.robot.n, len(self.path), self.controller
        _, _, drives, values = self.plant
        size = max(n, int(self.motor.max()) + 1)
        self.work = w = make_work(len(self.robot.joints), size, drives, values, len(self.method.b))
        q, v = (self.path.q[0], self.path.v[0]) if initial is None else _state(initial, n)
        link = q if self.effects is None else hanging(bolted(self.smooth, self.parameters), self.effects, q)
        for part, links, motors in ((w.q, link, q), (w.v, v, v)):
            part[0, :n] = links
            part[0, self.motor] = motors
        states = law.C.shape[1] if isinstance(law, LinearController) else 0
        state = kernels.LoopState(
            q[None].copy(),
            v[None].copy(),
            _law_state(controller_state, n, states),
            np.zeros((self.sensing.delay + 1, n)),
            np.zeros((1, n)),
            np.zeros((1, n)),
        )
        kept = -(-ticks // every)
        self.trace = kernels.Trace(*np.zeros((6, kept, n)), *np.zeros((2, kept if size > n else 0, n)))
        period = 1.0 / law.rate
        if isinstance(law, CallableController):
            return self._go_python(law, every, period, w, state, progress)
        feed = for_kernel(law.torques_ahead(self.path.q, self.path.v, self.path.a))
        model = self.plant if law.model is None else plant_arrays(law.model, None, self.path.q)
        laws = kernels.Law(law.A, law.B, law.C, law.D, _MODEL_USE[law.model_use])
        reference = (self.path.q, self.path.v, self.path.a)
        started = time.perf_counter()
        with first_use(kernels.closed_loop):
            for start in range(0, ticks, _SLICE):
                done, code = kernels.closed_loop(
                    self.plant, self.method, laws, model, self.sensing, self.bounds, reference, feed, self.push,
                    period, every, start, min(start + _SLICE, ticks), w, state, self.trace,
                )  # fmt: skip
                _report(progress, done, ticks, started)
                if code:
                    return done, code
        return ticks, 0

    def _go_python(
        self,
        law: CallableController,
        every: int,
        period: float,
        w: Any,
        state: Any,
        progress: ProgressCallback | None,
    ) -> tuple[int, int]:
        """`go` for a controller that is a Python function."""
        from dynid.dynamics.kernels import loop as kernels

        path, ticks = self.path, len(self.path)
        ahead = law.torques_ahead(path.q, path.v, path.a)
        encoders = [(self.sensing, state)]
        if self.link_sensing is not None:
            encoders.append((self.link_sensing, state._replace(seen=state.seen.copy(), velocity=state.velocity.copy())))
        started = time.perf_counter()
        for k in range(ticks):
            measured: list[Array] = []
            for sensing, each in encoders:
                kernels.sense(sensing, period, k, w, each)
                measured += [each.seen[0].copy(), each.velocity[0].copy()]
            given = law.function(k * period, path.q[k], path.v[k], path.a[k], *measured)
            command = np.asarray(given, dtype=float)
            if command.shape != (law.n,) or not np.all(np.isfinite(command)):
                raise SimulationFailed(
                    f"controller '{law.name}' must return {law.n} finite torques, but does not at {k * period:g} s",
                    "controller",
                )
            state.command[0] = command + ahead[k] if len(ahead) else command
            code = kernels.apply_command(
                self.plant, self.method, self.sensing, self.bounds, self.push, period, every, k, w, state, self.trace
            )
            if k + 1 == ticks or k % _SLICE == 0:
                _report(progress, k + 1, ticks, started)
            if code:
                return k, code
        return ticks, 0

    def accelerations(self, kept: int, every: int) -> Array:
        """Accelerations at the samples; an implicit step gives a mean over the step instead, so they are recomputed.

        Viscous friction can keep an implicit step stable although the mass matrix is not positive definite. The
        accelerations end there.
        """
        trace = self.trace
        if not self.method.implicit or any(t.jumps and t.slope == 0 for t in self.smooth.drives):
            return trace.a[:kept]
        torque = trace.torque[:kept]
        push = self.push[: kept * every : every] if len(self.push) else np.zeros_like(torque)
        q, v = trace.q[:kept], trace.v[:kept]
        if self.effects is not None:
            return self._accelerations_with_effects(q, v, torque, push)
        torque = torque + push
        try:
            return forward_dynamics(self.smooth, q, v, torque, self.parameters)
        except DynidError:
            good = int(np.argmin(np.linalg.eigvalsh(mass_matrix(self.smooth, q, self.parameters))[:, 0] > 0))
            return forward_dynamics(self.smooth, q[:good], v[:good], torque[:good], self.parameters)

    def _accelerations_with_effects(self, q: Array, v: Array, torque: Array, push: Array) -> Array:
        """Accelerations of the links, up to where the mass matrix is not positive definite."""
        from dynid.dynamics.kernels.forward import forward_dynamics as kernel

        n, size = self.robot.n, self.work.q.shape[1]
        positions, velocities, tau, out = np.zeros((4, len(q), size))
        positions[:, :n], velocities[:, :n] = q, v
        positions[:, self.motor], velocities[:, self.motor] = self.motors(len(q))
        tau[:, self.motor] = torque
        tau[:, :n] += push
        failed = kernel(*self.plant, positions, velocities, tau, 0, len(q), out)
        return np.ascontiguousarray(out[: failed if failed >= 0 else None, :n])

    def motors(self, kept: int) -> tuple[Array, Array]:
        """Positions and velocities (kept, n) of the motors; those of the links where no joint is flexible."""
        trace = self.trace
        if len(trace.motor_q):
            return trace.motor_q[:kept], trace.motor_v[:kept]
        return trace.q[:kept], trace.v[:kept]

    def explain(self, code: int, ticks: int) -> str:
        """The outcome in words."""
        if code == 0:
            return "completed"
        from dynid.dynamics.kernels import integrate
        from dynid.dynamics.kernels import loop as kernels

        n, bounds = self.robot.n, self.bounds
        q, v = self.work.q[0, :n], self.work.v[0, :n]
        outside = (
            (q < bounds.lower) | (q > bounds.upper) if code == kernels.POSITION_LIMIT else np.abs(v) > bounds.velocity
        )
        joint = self.robot.coordinates[int(np.argmax(outside))]
        if self.robot.loops and self.plant[0].status[0] not in (-1, 0):
            names = " and ".join(str(x) for x in self.robot.loops)
            return f"stopped at {ticks / self.controller.rate:.4g} s: at or beyond a singular posture of {names}"
        why = {
            integrate.NOT_POSITIVE: "the mass matrix is not positive definite; the parameters are not physically "
            "consistent",
            integrate.DIVERGED: "the state diverges; the controller is unstable with this robot",
            integrate.STEP_VANISHED: "the step size vanishes: friction is too steep (use the implicit integrator), "
            "or the mass matrix is barely positive definite",
            kernels.POSITION_LIMIT: f"'{joint}' exceeds its position limit",
            kernels.VELOCITY_LIMIT: f"'{joint}' exceeds its velocity limit",
        }
        return f"stopped at {ticks / self.controller.rate:.4g} s: {why[code]}"


def _report(progress: ProgressCallback | None, done: int, ticks: int, started: float) -> None:
    """Report the share of control periods that are done and the time left."""
    if progress is not None and done > 0:
        left = (time.perf_counter() - started) * (ticks / done - 1)
        progress(Progress("simulating the closed loop", done / ticks, left))


def _bounds(robot: Robot, torque: ArrayLike | str | None, stop: bool) -> Any:
    """Torque saturation, and the limits at which a simulation stops."""
    from dynid.dynamics.kernels.loop import Bounds

    limits = [robot.limits[c] for c in robot.coordinates]
    n = robot.n
    if torque is None:
        torque = np.inf
    elif isinstance(torque, str):
        if torque != "robot":
            raise UnknownName(f"torque_limits is a number, one per joint, or 'robot', not '{torque}'", "torque_limits")
        torque = [x.effort for x in limits]
    bound = np.asarray(torque, dtype=float)
    if bound.shape not in ((), (n,)) or not np.all(bound > 0):
        raise InvalidValue(f"torque_limits needs one positive number, or one per joint ({n})", "torque_limits")
    free = np.full(n, np.inf)
    return Bounds(
        np.broadcast_to(bound, (n,)).copy(),
        np.array([x.lower for x in limits]) if stop else -free,
        np.array([x.upper for x in limits]) if stop else free,
        np.array([x.velocity for x in limits]) if stop else free,
    )


def _turns(robot: Robot) -> Array:
    """Length that the counts of an encoder divide: a revolution, or a metre for a prismatic joint."""
    kind = {joint.name: joint.kind for joint in robot.joints}
    return np.array([1.0 if kind[name] == "prismatic" else 2 * np.pi for name in robot.coordinates])


def _state(given: tuple[ArrayLike, ArrayLike], n: int) -> Array:
    """Initial positions and velocities (2, n)."""
    try:
        state = np.array(given, dtype=float)
    except (TypeError, ValueError):
        state = np.empty(0)
    if state.shape != (2, n) or not np.all(np.isfinite(state)):
        raise InvalidShape(f"initial needs finite positions ({n},) and velocities ({n},)", "initial")
    return state


def _law_state(given: ArrayLike | None, n: int, states: int) -> Array:
    """Initial states of a linear law in the upper half of (2 n, states), or zeros."""
    out = np.zeros((2 * n, states))
    if given is not None:
        if np.shape(given) != (n, states) or not np.all(np.isfinite(given)):
            raise InvalidShape(
                f"controller_state needs finite numbers of shape {(n, states)}, got {np.shape(given)}",
                "controller_state",
            )
        out[:n] = given
    return out


def _disturbance(given: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Disturbance torques (K, n), checked."""
    push = for_kernel(given)
    if push.shape != shape or not np.all(np.isfinite(push)):
        raise InvalidShape(
            f"the disturbance must be finite torques {shape}, one row per control period, got {push.shape}",
            "disturbance",
        )
    return push


def _checked(robot: Robot, loop: ClosedLoop, unmodeled: UnmodeledEffects | None) -> Controller:
    """The loop's controller, once robot, loop and unmodeled effects fit together."""
    if unmodeled is not None and not isinstance(unmodeled, UnmodeledEffects):
        raise InvalidType(f"unmodeled is a dynid.simulation.UnmodeledEffects, got {unmodeled!r:.60}", "unmodeled")
    if not isinstance(loop, ClosedLoop):
        raise InvalidType(f"the loop to simulate is a dynid.ClosedLoop(controller=...), got {loop!r:.60}", "loop")
    controller = loop.controller
    if controller is None:
        raise MissingArgument("the closed loop has no controller: give ClosedLoop(controller=...)", "controller")
    if robot.base == "floating":
        raise NotApplicable(f"robot '{robot.name}' has a floating base; closed-loop simulation needs a fixed one")
    if robot.loops and unmodeled is not None:
        raise NotApplicable("unmodeled effects are not available for robots with closed loops", "unmodeled")
    model = controller.model if isinstance(controller, LinearController) else None
    if model is not None and robot.loops + model.loops and len(model.joints) != len(robot.joints):
        raise Mismatch(
            f"the controller's model '{model.name}' must have the joints of robot '{robot.name}'", "controller"
        )
    if controller.n != robot.n:
        raise Mismatch(f"the controller has {controller.n} joints, robot '{robot.name}' {robot.n}", "controller")
    return controller
