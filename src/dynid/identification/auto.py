"""Method "auto": the posterior of bodies and drives over physically consistent, plausible robots.

All drive terms with a physical meaning are in the model, with a prior in physical units whose scales are learned, see
`posterior`. The estimate is the most probable robot that is physically consistent and inside the plausible box.
Nothing is chosen by dropping a term; Stribeck friction enters at the velocity with the largest marginal likelihood,
where that is far larger than without.

With the rows [W y] in units of the noise, what all other terms leave of them, and the prior of a law of unit scale, its
columns C have the marginal likelihood

    log p = -log det T - |rest|^2 / 2,    T'T = 1 + C'C,    rest what T leaves of y,

and enters where it exceeds that without it by a factor of 1000 for every law tried. The estimate then is

    argmin |W K pi - y|^2 + |u(pi)|^2    subject to the cones of the feasible set and the box.

Sources: MacKay, Bayesian Interpolation (1992), for the evidence of models and of the scales of their priors; Wensing,
Kim and Slotine (2018), for the most probable parameters under linear matrix inequalities. Nothing is selected by
significance; the threshold is our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.feasibility.box import (
    MASS_RANGE,
    PlausibleBox,
    Quantity,
    Wall,
    boxed_set,
    plausible_box,
    wall_notes,
    walls_of,
)
from dynid.feasibility.constraints import Constraints, constraint_set
from dynid.feasibility.fit import Fit, fit
from dynid.feasibility.prior import Prior, consistent_prior
from dynid.identification.estimators.feasible import boundary_notes
from dynid.identification.estimators.method import Method
from dynid.identification.estimators.options import BodyOptions, KnownMasses, check_choice, known_masses
from dynid.identification.estimators.solution import Outcome, Solution
from dynid.identification.loads import default_channels
from dynid.identification.observation import Observation, fold
from dynid.identification.observing import observe
from dynid.identification.posterior import Learned, inside, learn, parameter_prior
from dynid.identification.row_stream import Block
from dynid.parameters.base import BaseParameters, base_parameters, choose_channels
from dynid.progress import Progress, ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.recording.recording import Recording
from dynid.robot.drives import FRICTION_SYMBOLS, DriveTerm, TermKind
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.signals.settings import Signals

__all__ = [
    "AUTO",
    "AutoOptions",
    "VelocityLaw",
    "auto",
    "carried",
    "free_joints",
    "picked",
    "rich_robot",
    "sharp",
    "velocity_laws",
    "widened",
    "with_laws",
]

Array = NDArray[np.float64]


# The drive terms of the default model: every one with a physical meaning is in it from the start.
#
# Each joint whose torque is measured has a rotor inertia, viscous friction of both directions, Coulomb friction and an
# offset. The velocity of Stribeck friction is not linear, and near rest filters and counts of encoders make the sign of
# a
# velocity uncertain, so that the recorded Coulomb friction rises smoothly where that of the robot is a step. Both enter
# through a short list of velocities, one column each, and the joints that need one follow from the marginal likelihood.


# Friction of a joint. Viscous friction of joints that share a motor forms one matrix, which has no directions.
_RICH, _COUPLED = "viscous-asymmetric+coulomb+offset", "viscous+coulomb+offset"
# Velocities of the laws relative to the velocity that a joint exceeds during 5 % of the time, a factor of 1.5 apart.
_STRIBECK = tuple(0.02 * 1.5**k for k in range(10))
# Widths of the smooth step, on the same scale: about the velocities that are left out as too slow.
_SMOOTH = tuple(0.004 * 1.5**k for k in range(5))


def free_joints(robot: Robot, channels: Sequence[str]) -> tuple[int, ...]:
    """Joints whose torque is measured and whose friction is not modelled on the motor side."""
    held = np.array([name not in channels for name in robot.coordinates])
    for term in robot.drives:
        if term.motor and not term.cross_only and term.symbol != "Ia":
            held |= np.abs(term.direction[[name not in robot.passive for name in robot.tree_coordinates]]) > 0.5
    return tuple(int(j) for j in np.flatnonzero(~held))


def rich_robot(robot: Robot, free: Sequence[int]) -> Robot:
    """The robot with all drive terms on the joints that are free to have them; the others keep theirs."""
    if not free:
        return robot
    names = [robot.coordinates[j] for j in free]
    owners = {robot.tree_coordinates.index(name) for name in names}

    def replaced(term: DriveTerm) -> bool:
        return term.owner in owners and term.kind != TermKind.STRIBECK

    own = {"Ia", *FRICTION_SYMBOLS}
    kept = [t for t in robot.drives if t.symbol in own and not t.motor and t.function is None and not replaced(t)]
    coupled = {j for t in robot.drives if t.cross_only for j in np.flatnonzero(t.direction)}
    laws = {name: _COUPLED if robot.tree_coordinates.index(name) in coupled else _RICH for name in names}
    rich = robot.with_drives(laws, rotor_inertia=names)
    return rich.with_terms(*(t for t in kept if t.name not in rich.parameter_names))


@dataclass(frozen=True, eq=False)
class VelocityLaw:
    """Stribeck friction of a joint at one velocity, or Coulomb friction that the recording shows smooth up to one.

    `trial` is the same term under a name of its own, for a robot that has all laws side by side. The column of the
    smooth step takes the place of that of the sharp one; the robot keeps the sharp one.
    """

    joint: int
    term: DriveTerm
    trial: DriveTerm

    @property
    def words(self) -> str:
        """The law in words."""
        unit = "m/s" if self.term.linear else "rad/s"
        if self.term.is_coulomb:
            return f"the recording blurs the step of Coulomb friction below {1 / self.term.slope:.2g} {unit}"
        return f"Stribeck friction below {self.term.velocity:.2g} {unit}"


def velocity_laws(robot: Robot, free: Sequence[int], fast: Array) -> list[VelocityLaw]:
    """The laws of joints that exceed the velocities `fast` (joint,) during 5 % of the time."""
    given = {t.owner for t in robot.drives if t.kind == TermKind.STRIBECK}
    out = []
    for joint in free:
        name, highest = robot.coordinates[joint], float(fast[joint])
        if highest <= 0 or robot.tree_coordinates.index(name) in given:
            continue
        terms = [robot.joint_term(name, "fs", velocity=share * highest) for share in _STRIBECK]
        step = next(t for t in robot.drives if t.name == f"fc_{name}")
        if not step.slope:
            terms += [replace(step, slope=1 / (share * highest), value=0.0) for share in _SMOOTH]
        out += [VelocityLaw(joint, x, replace(x, shaft=f"{x.shaft} law {k}")) for k, x in enumerate(terms)]
    return out


def with_laws(robot: Robot, laws: Sequence[VelocityLaw]) -> Robot:
    """The robot with velocity laws as they are recorded; a smooth step keeps the a-priori value of the sharp one."""
    own = {law.term.name: law.term for law in laws}
    drives = [replace(own.pop(t.name), value=t.value) if t.name in own else t for t in robot.drives]
    return replace(robot, drives=(*drives, *own.values()))


def sharp(observation: Observation, laws: Sequence[VelocityLaw]) -> Observation:
    """The observation as one of the robot whose Coulomb friction is a step, where the recording has it smooth."""
    smooth = {law.term.name for law in laws if law.term.is_coulomb}
    drives = tuple(replace(t, slope=0.0) if t.name in smooth else t for t in observation.robot.drives)
    return replace(observation, base=replace(observation.base, robot=replace(observation.robot, drives=drives)))


def widened(base: BaseParameters, robot: Robot, own: Sequence[str]) -> BaseParameters:
    """The base parameters of a robot with further terms, each of which is a base parameter by itself.

    Laws of the same joint that differ little in their velocity are nearly collinear, so that the rank of a regressor
    with all of them is not clear from samples. Their functions are independent, which is all that is needed here.
    """
    place = {name: i for i, name in enumerate(robot.parameter_names)}
    names = base.robot.parameter_names
    old = np.array([place[name] for name in names])
    added = [place[name] for name in own if name not in set(names)]
    matrix = np.zeros((base.count + len(added), len(place)))
    matrix[: base.count, old] = base.matrix
    matrix[np.arange(base.count, len(matrix)), added] = 1.0
    matrix.flags.writeable = False
    return replace(
        base,
        robot=robot,
        matrix=matrix,
        kept=(*(int(old[i]) for i in base.kept), *added),
        dependent=tuple(int(old[i]) for i in base.dependent),
        without_effect=tuple(int(old[i]) for i in base.without_effect),
    )


def picked(observation: Observation, base: BaseParameters, columns: Sequence[int]) -> Observation:
    """The observation with some of its columns (b,), as one of these base parameters."""
    index = np.array(columns)
    rows = np.append(index, observation.base.count)

    def blocks() -> Iterator[Block]:
        for block in observation.blocks():
            yield Block(block.channel, block.W[:, index], block.y, block.index)

    still = observation.standstill
    if still is not None:
        still = replace(still, unknown=still.unknown[index], rows=still.rows[:, rows])
    passes = observation.passes
    return replace(
        observation,
        base=base,
        factors=tuple(fold(np.asfortranarray(f[:, rows])) for f in observation.factors),
        blocks=blocks if observation.streams else observation.blocks,
        standstill=still,
        time_blocks=tuple(tuple(fold(np.asfortranarray(f[:, rows])) for f in part) for part in observation.time_blocks),
        passes=None if passes is None else replace(passes, base=base),  # type: ignore[type-var]
    )


def carried(robot: Robot, other: Robot, prior: ArrayLike) -> Array:
    """A-priori parameters of a robot as those of the same robot with other drive terms."""
    given = checked(prior, (len(robot.layout),), "prior", DataError)
    values = dict(zip(robot.parameter_names, given, strict=True))
    return np.array([values.get(n, own) for n, own in zip(other.parameter_names, other.parameters, strict=True)])


# Time in s over which positions are differenced for the usual velocities of a joint, and the share of the time during
# which it is faster.
_WINDOW, _FAST = 0.02, 0.95
# Logarithm of the odds for a velocity law, of which there are several per joint, before it enters the model.
_ODDS = np.log(1000.0)
# A factor of all bodies that leaves less than one part in this of the squares is a wrong unit.
_MOST = 4.0
# Data decide a base parameter if its standard deviation is below this share of the a-priori one.
_DECIDED = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class AutoOptions(BodyOptions):
    """Options of method "auto", beside those of `BodyOptions`.

    Attributes
    ----------
    friction : {"all", "given"}, default "all"
        Whether each joint has all drive terms (rotor inertia, viscous friction per direction, Coulomb friction, offset,
        and Stribeck friction where the data ask for it), or those of the robot.
    prior : array_like, shape (p,), optional
        A-priori standard parameters of the robot; by default its own.
    constraints : str or sequence of constraints, default "full"
        What makes a robot physically consistent, as for method "feasible".
    """

    friction: Literal["all", "given"] = "all"
    prior: ArrayLike | None = None
    constraints: Constraints = "full"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("friction", self.friction, ("all", "given"))
        constraint_set(self.constraints)


def auto(
    robot: Robot,
    data: Recording | DataSet | Observation,
    options: AutoOptions,
    *,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
    progress: ProgressCallback | None = None,
    tempered: bool = True,
    **reading: Any,
) -> tuple[Solution, Observation]:
    """The posterior of a recording, a data set or an observation, and the observation with its drive terms.

    An observation keeps its drive terms. `tempered` is False for white noise; `reading` are further arguments of
    `observe`.
    """
    laws: list[VelocityLaw] = []
    if isinstance(data, Observation):
        seen = data
    else:
        _tell(progress, "reading the motion", 0.1)
        reading |= {"signals": signals, "progress": progress if isinstance(data, DataSet) else None}
        seen, laws = _all_terms(robot, data, options, channels, reading, tempered, progress)
    _tell(progress, "learning the scales of the prior", 0.6)
    found = _learned(robot, seen, options, tempered)
    _tell(progress, "solving", 0.8)
    return _solution(found, options, laws, tempered), seen


AUTO = Method(
    name="auto",
    sentence="All drive terms and bodies near the prior, with learned scales.",
    options=AutoOptions,
    function=auto,
    takes="recording",
    has_prior=True,
    consistent=True,
    posterior=True,
)


def _tell(progress: ProgressCallback | None, what: str, share: float) -> None:
    """Report a step."""
    if progress is not None:
        progress(Progress(f"posterior: {what}", share))


def _all_terms(
    robot: Robot,
    data: Recording | DataSet,
    options: AutoOptions,
    channels: str | Sequence[str] | None,
    reading: dict[str, Any],
    tempered: bool,
    progress: ProgressCallback | None,
) -> tuple[Observation, list[VelocityLaw]]:
    """The data folded with all drive terms, and the velocity laws among them."""
    sample = data if isinstance(data, Recording) else data.sample()[0]
    wanted = default_channels(robot, sample) if channels is None else channels
    names = [robot.channels[i] for i in choose_channels(robot, wanted)]
    free = free_joints(robot, names) if options.friction == "all" else ()
    rich = rich_robot(robot, free)
    base = base_parameters(rich, channels=names)
    laws = velocity_laws(rich, free, _fast(sample, robot.n))
    trials = rich.with_terms(*(law.trial for law in laws))
    wide = widened(base, trials, [law.trial.name for law in laws])
    # The prior decides what few rows do not show.
    seen = observe(trials, data, base=wide, fewest=1, **reading)
    if not laws:
        return seen, []
    _tell(progress, "Stribeck friction", 0.4)
    chosen = _asked_for(_learned(robot, seen, options, tempered, laws), laws)
    final = with_laws(rich, chosen)
    own = widened(base, final, [law.term.name for law in chosen])
    column = {name: i for i, name in enumerate(trials.parameter_names[j] for j in wide.kept)}
    column |= {law.term.name: column[law.trial.name] for law in chosen}
    return sharp(picked(seen, own, [column[final.parameter_names[j]] for j in own.kept]), chosen), chosen


def _fast(sample: Recording, joints: int) -> Array:
    """Velocity (joint,) that each joint exceeds during 5 % of the time."""
    found = []
    for run in sample.runs:
        span = float(run.t[-1] - run.t[0])
        step = max(1, min(round(_WINDOW * (len(run.t) - 1) / span), len(run.t) // 2)) if span > 0 else 1
        moved, took = run.q[step:] - run.q[:-step], run.t[step:] - run.t[:-step]
        found.append(np.abs(moved[took > 0] / took[took > 0, None]))
    every = np.vstack([x for x in found if len(x)]) if any(len(x) for x in found) else np.zeros((1, joints))
    return np.asarray(np.quantile(every, _FAST, axis=0))


def _asked_for(found: Learned, laws: Sequence[VelocityLaw]) -> list[VelocityLaw]:
    """The law of each joint whose marginal likelihood is far larger than that without it, and that takes energy away.

    What all other directions leave of the columns of a joint is small: evidences are compared on that. The a-priori
    value of the step is part of what is to be explained, because another law may take its place.
    """
    rows, prior = found.whitened_rows(), found.prior
    root = prior.directions * prior.sizes(found.scales)
    used = [int(i) for i in np.flatnonzero(found.used)]

    def place(name: str) -> int:
        return int(np.flatnonzero(prior.owners([name]))[0])

    chosen = []
    for joint in dict.fromkeys(law.joint for law in laws):
        own = [law for law in laws if law.joint == joint]
        name = f"fc_{prior.robot.coordinates[joint]}"
        step, parameter = place(name), prior.robot.parameter_names.index(name)
        rest = [i for i in used if i != step]
        stack = rows[:, [*rest, step, *(place(law.trial.name) for law in own), rows.shape[1] - 1]]
        left = fold(np.vstack([np.eye(len(rest), stack.shape[1]), stack]))[len(rest) :, len(rest) :]
        left[:, -1] += prior.mean[parameter] / root[parameter, step] * left[:, 0]
        found_with = [_evidence(left, [k] if law.term.is_coulomb else [0, k]) for k, law in enumerate(own, start=1)]
        values = [value if coefficient > 0 else -np.inf for value, coefficient in found_with]
        k = int(np.argmax(values))
        if values[k] - _evidence(left, [0])[0] > _ODDS + np.log(len(own)):
            used = [*(rest if own[k].term.is_coulomb else used), place(own[k].trial.name)]
            chosen.append(own[k])
    return chosen


def _evidence(rows: Array, columns: Sequence[int]) -> tuple[float, float]:
    """Logarithm of the marginal likelihood of columns with unit prior, up to a constant; and the last coefficient."""
    factor = fold(np.vstack([np.eye(len(columns), len(columns) + 1), rows[:, [*columns, rows.shape[1] - 1]]]))
    triangle = factor[: len(columns), : len(columns)]
    left = float(np.sum(factor[len(columns) :, -1] ** 2))
    value = -float(np.sum(np.log(np.abs(np.diag(triangle))))) - 0.5 * left
    return value, float(np.linalg.solve(triangle, factor[: len(columns), -1])[-1])


def _learned(
    robot: Robot, seen: Observation, options: AutoOptions, tempered: bool, laws: Sequence[VelocityLaw] = ()
) -> Learned:
    """The posterior without inequalities; velocity laws on trial are left out of it."""
    given = None if options.prior is None else carried(robot, seen.robot, options.prior)
    known = known_masses(seen.robot, options.mass, options.link_masses)
    prior = parameter_prior(seen, _bodies(seen, consistent_prior(seen.robot, given), known), known)
    trials = {law.trial.name for law in laws}
    used = np.ones(len(prior.groups), dtype=bool)
    for name in trials:
        used &= ~prior.owners([name])
    return learn(seen, prior, used, tempered)


def _bodies(seen: Observation, bodies: Prior, known: KnownMasses) -> Prior:
    """The bodies of the prior, scaled to what is known of their mass, or to the size of the torques where assumed."""
    robot = seen.robot
    if known.total is not None or known.links or not bodies.complete:
        return bodies.weighing(robot, known.total, known.links)
    inertial = np.array([p.inertial for p in robot.layout])
    beta = seen.base.matrix @ np.where(inertial, bodies.parameters, 0.0)
    explained = np.array([np.linalg.norm(f[:, :-1] @ beta) for f in seen.factors])
    torque = seen.torque_norms()
    ratios = explained[torque > 0] / torque[torque > 0]
    return bodies.scaled(robot, 1.0 / float(np.sqrt(np.mean(ratios**2)))) if np.any(ratios) else bodies


def _solution(found: Learned, options: AutoOptions, laws: Sequence[VelocityLaw], tempered: bool) -> Solution:
    """The most probable robot inside the constraints, with the covariance of the posterior."""
    seen = found.observation
    box = None
    if options.box:
        known = known_masses(seen.robot, options.mass, options.link_masses)
        box = plausible_box(seen.robot, found.prior.bodies, mass=known.total, link_masses=known.links)
    mode = _most_probable(found, options, box)
    walls = () if box is None else (*_wrong_unit(found), *walls_of(box, mode, lambda: found.parameters))
    solved, K = mode.solution.status == "solved", seen.base.matrix
    found = inside(found, mode.parameters) if tempered else found
    root = found.standard_root
    notes = [*found.prior.bodies.notes(), *(() if box is None else box.notes), *_notes(found, laws)]
    notes += [*wall_notes(walls), *boundary_notes(mode)]
    return Solution(
        beta=K @ mode.parameters,
        covariance=found.base_root @ found.base_root.T,
        noise=found.noise,
        status=mode.solution.status if found.converged else "the noise did not converge",
        outcome=Outcome.CONVERGED if solved and found.converged else Outcome.NOT_CONVERGED,
        notes=tuple(notes),
        parameters=mode.parameters,
        parameter_covariance=root @ root.T,
        independent_rows=found.independent_rows(),
        freedom=found.freedom,
        walls=walls,
    )


def _wrong_unit(found: Learned) -> tuple[Wall, ...]:
    """A wall for all bodies together, where these times one factor far outside the box explain most of what is left.

    Such a factor is a wrong unit or gain of the torques. The posterior alone would rather take it for noise.
    """
    seen, prior = found.observation, found.prior
    inertial = np.array([p.inertial for p in seen.robot.layout])
    total = prior.bodies.mass(seen.robot)
    if prior.bodies.complete or not total > 0:
        return ()
    torque = np.maximum(seen.torque_norms(), 1e-300)
    rows = np.vstack([f / t for f, t in zip(seen.factors, torque, strict=True)])
    W, y = rows[:, :-1] @ seen.base.matrix, rows[:, -1]
    bodies, drives = W[:, inertial] @ prior.mean[inertial], W[:, ~inertial]
    left = [x - drives @ np.linalg.lstsq(drives, x, rcond=1e-8)[0] for x in (y, bodies)]
    factor = float(left[0] @ left[1]) / max(float(left[1] @ left[1]), 1e-300)
    rest = float(np.sum((left[0] - factor * left[1]) ** 2))
    low, high = MASS_RANGE
    if low < factor < high or float(np.sum((left[0] - left[1]) ** 2)) < _MOST * rest:
        return ()
    limit = (high if factor > high else low) * total
    return (Wall("", Quantity.TOTAL.value, factor * total, limit, sum(found.independent_rows())),)


def _most_probable(found: Learned, options: AutoOptions, box: PlausibleBox | None) -> Fit:
    """The mode of the posterior inside the constraints."""
    seen = found.observation
    allowed = boxed_set(seen.robot, options.constraints, box)
    data, (rows, targets) = found.factor, found.prior_rows()
    R = np.vstack([data[:, :-1] @ seen.base.matrix, rows])
    return fit(allowed, R, np.concatenate([data[:, -1], targets]), found.prior.mean, weight=0.0)


def _notes(found: Learned, laws: Sequence[VelocityLaw]) -> Iterator[str]:
    """What the posterior says of the drives, and what the recording does not show."""
    seen = found.observation
    robot, K = seen.robot, seen.base.matrix
    if not seen.readable:
        yield "the rows cannot be read again: all of them count as independent, and standard deviations are too small"
    for law in laws:
        yield f"{robot.coordinates[law.joint]}: {law.words}"
    root = K @ found.prior.directions * found.prior.sizes(found.prior.scales)
    before, after = np.linalg.norm(root, axis=1), np.linalg.norm(found.base_root, axis=1)
    left = [name for name, b, a in zip(seen.base.names, before, after, strict=True) if a > _DECIDED * b]
    if left:
        shown = ", ".join(left[:6]) + (", ..." if len(left) > 6 else "")
        yield f"{len(left)} of {len(before)} base parameters stay near the prior, the motion shows too little: {shown}"
