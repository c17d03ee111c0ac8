"""Search for the causes of a residual: candidates enter one after the other, each tested beside the whole model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.bursts import load_bursts
from dynid.assessment.causes.cause import Cause, Causes, Trial
from dynid.assessment.causes.cause_code import UNKNOWN
from dynid.assessment.causes.cause_groups import Group, Model
from dynid.assessment.causes.cause_rows import CauseRows, cause_rows
from dynid.assessment.causes.cause_source import cause_sources
from dynid.assessment.causes.cause_trials import try_cause
from dynid.assessment.causes.imitated import Imitated, imitated_cause
from dynid.assessment.causes.kinds.contacts import CONTACT, Contacts, find_contacts
from dynid.assessment.causes.kinds.drives import (
    STRIBECK,
    TORQUE_GAIN,
    presliding_groups,
    stribeck_groups,
)
from dynid.assessment.causes.kinds.geometry import BACKLASH, ELASTICITY, elasticity_between
from dynid.assessment.causes.kinds.lags import LOW_PASS, Lag, lag_groups, lagged_rows
from dynid.assessment.causes.kinds.leftover import Leftover, largest_leftover
from dynid.assessment.causes.kinds.stand import Stand
from dynid.assessment.causes.kinds.swapped import JOINTS_SWAPPED, POSITIONS_SWAPPED, Swap, best_swap
from dynid.assessment.causes.resonance import resonances
from dynid.assessment.causes.stepwise import ALTERNATIVE, MOST_ALTERNATIVES, Step, Stepwise
from dynid.dynamics.functions import regressor
from dynid.errors import InvalidValue, MissingData, named
from dynid.identification.estimate import Estimate
from dynid.identification.observation import Observation
from dynid.robot.drives import DriveTerm, TermKind
from dynid.robot.effects import effect_terms
from dynid.robot.model import Robot
from dynid.signals.settings import Motion
from dynid.threads import one_blas_thread

__all__ = ["find_causes", "term_torques"]

Array = NDArray[np.float64]

# Backlash and elasticity that no column explains: level of the test of bursts, their share of the residual, and size
# relative to the torque. A peak of the spectrum is named from pairs of share and size: noise that feedback brings into
# the torques of a joint has peaks too, which stay below 1.5 % of the torque or below half of the residual.
_BURST_LEVEL, _BURST_SHARE, _SIZE = 0.01, 0.5, 0.015
_PEAKS = ((0.5, _SIZE), (1 / 3, 0.02))
# Standard errors of an error of independent rows, at least, within which two causes correct it as well.
_NOISE = 3.0


def find_causes(
    estimate: Estimate,
    observations: Observation | Sequence[Observation],
    *,
    level: float = 0.01,
    max_causes: int = 6,
    without: Collection[str] = (),
) -> Causes:
    """Search for the causes of the residual of an estimate, in data, model and robot.

    Candidates are a tilted or swinging base, gains, torques without gravity or with its opposite, encoder offsets and
    gains, wrong link lengths, exchanged joints, delays and filters of torques, elasticity, backlash, contacts, friction
    of several kinds, ripple, drift, saturation, payloads, springs and coupled drives. Each is tested one step from the
    estimate, with the base parameters fitted again beside it. The one that explains most per column enters the model,
    then the next, until none is significant and large enough to matter. Rows at which a joint reverses are left out,
    because no model knows friction there exactly.

    Parameters
    ----------
    estimate : Estimate
        Estimate whose residual is searched.
    observations : Observation or sequence of Observation
        Observation that the estimate was identified from, and one of unseen motion where it is at hand. Both must keep
        their motions.
    level : float
        Significance level of all tests together; autocorrelated rows count as fewer independent ones.
    max_causes : int
        Largest number of causes.
    without : collection of str
        Kinds that are not candidates, because they are known not to be the cause.

    Returns
    -------
    Causes

    Raises
    ------
    DataError
        If an observation does not keep its motions, or has channels other than joint torques.
    """
    if not 0 < level < 1:
        raise InvalidValue(f"{named('level')} must lie between 0 and 1")
    seen = [observations] if isinstance(observations, Observation) else list(observations)
    with (
        one_blas_thread()
    ):  # small matrices and short vectors: several threads are slower, and much so on a busy machine
        return _searched(estimate, seen, level, max_causes, without)


def _searched(
    estimate: Estimate, seen: Sequence[Observation], level: float, max_causes: int, without: Collection[str]
) -> Causes:
    """The causes that the search finds."""
    rows, whole = cause_rows(seen), cause_rows(seen, reversals=True)
    dead = [name for name, y in zip(rows.base.channels, rows.y, strict=True) if not np.any(y)]
    if dead:
        raise MissingData(f"the torque of joint '{dead[0]}' is zero throughout: log it, or lock the joint")
    parameters = estimate.parameters
    search = Stepwise(rows)
    late = _late(rows, whole, parameters, level, without)
    if late is not None:
        # It comes first: others would have to pass the same low-pass, or act beside friction of unknown shape.
        if late[1] is None or late[0].code == LOW_PASS:
            return Causes((late[0],), 1, level)
        rows, whole = lagged_rows(rows, late[1]), lagged_rows(whole, late[1])
        search = Stepwise(rows)
    model = Model(rows.base.robot, parameters, rows)
    swap = best_swap(rows, search.relative)
    if swap is not None and swap.code in without:
        swap = None
    bursting = None if swap is not None or BACKLASH in without else _bursting(model, search)
    if bursting is not None:
        rows = rows.without(bursting[1])
    found = _explained(rows, parameters, None if swap is None else swap.saving, level, max_causes, without)
    if found is None:
        assert swap is not None
        return Causes((_swapped(swap, rows),), 1, level)
    held = imitated_cause(found.model, seen[0], found.search, found.groups, [s.group for s in found.steps])
    if held is not None:
        again = _explained(rows, held.parameters, None, level, max_causes, without, given=(held.group,))
        assert again is not None
        found = again
    rows, model, search, tested = found.rows, found.model, found.search, found.tested
    tried = _tried(found, [] if held is None else [held.group])
    causes = [
        *([] if late is None else [late[0]]),
        *([] if bursting is None else [bursting[0]]),
        *([] if found.contacts is None else [_contact(found.contacts, rows)]),
        *([] if held is None else [_imitated(held, rows)]),
        *tried,
    ]
    # A lag moves the step of friction beside the reversal: neither law is judged there.
    slow = None if late is not None or STRIBECK in without else _slow(estimate, whole, tested, level)
    alone = None if late is not None else _alone(estimate, whole, level, without)
    if slow is not None and alone is not None and set(alone.joints) & set(slow.joints):
        slow, alone = (None, alone) if alone.unexplained > slow.unexplained else (slow, None)
    causes = _beside(causes, slow)
    left = largest_leftover(model, search.residuals)
    causes += [] if left is None else [_unknown(left, rows)]
    if not causes and ELASTICITY not in without:
        causes = list(_oscillating(model, search))[:1]
    causes = _beside(causes, alone)
    return Causes(tuple(causes[:max_causes]), tested, level, found.visible)


def _tried(found: _Explained, given: Sequence[Group]) -> Iterator[Cause]:
    """The causes whose correction gains on motion that is not in the fit, each after those before it.

    What parameters imitate for the most part gains little anywhere: it is told by its size.
    """
    kept = list(given)
    for step in found.steps:
        remedy = _remedy(found.model, step.group)
        trial = try_cause(found.rows, remedy, kept)
        if not (trial.gains or remedy.code.fatal or remedy.code.relevance.imitated):
            continue  # it explains what was fitted, and nothing else
        others = [
            _cause(x, found.rows)
            for x in found.alternatives.get(step.group, ())
            if x.gain >= ALTERNATIVE * step.gain or _as_well(found.rows, trial, try_cause(found.rows, x.group, kept))
        ]
        first = _cause(replace(step, group=remedy), found.rows, trial)
        yield replace(first, alternatives=tuple(others[:MOST_ALTERNATIVES]))
        kept.append(remedy)


def _as_well(rows: CauseRows, first: Trial, other: Trial) -> bool:
    """Whether another cause corrects the same error as well, within the noise of so many rows."""
    count = len(rows.y[rows.base.channels.index(first.joint)])
    return other.joint == first.joint and other.after <= first.after * (1.0 + _NOISE / np.sqrt(count))


def _beside(causes: list[Cause], other: Cause | None) -> list[Cause]:
    """The causes with one that was found by other rows: first if it adds more, else last."""
    if other is None:
        return causes
    first = not causes or other.unexplained > causes[0].unexplained
    return [other, *causes] if first else [*causes, other]


@dataclass(frozen=True, eq=False)
class _Explained:
    """The causes that entered the model, and those that explain alike; `contacts` are not in the rows any more."""

    rows: CauseRows
    model: Model
    search: Stepwise
    groups: list[Group]
    steps: list[Step]
    alternatives: dict[Group, list[Step]]
    visible: dict[str, float]
    contacts: Contacts | None

    @property
    def tested(self) -> int:
        """Number of candidates."""
        return len(self.groups)


def _explained(
    rows: CauseRows,
    parameters: Array,
    swapped: float | None,
    level: float,
    most: int,
    without: Collection[str],
    contacts: Contacts | None = None,
    given: Sequence[Group] = (),
) -> _Explained | None:
    """The causes that explain most, one after the other; None where exchanged joints save more than the first.

    Causes that are `given` are in the model from the start.
    """
    search, model = Stepwise(rows, given), Model(rows.base.robot, parameters, rows)
    groups = [g for g in _candidates(model, search, level) if g.code not in without]
    names = rows.base.robot.coordinates
    gains = [g for g in groups if g.code == TORQUE_GAIN]
    visible = {names[g.joints[0]]: search.smallest(g) / g.scale for g in gains}
    found: list[Step] = []
    alternatives: dict[Group, list[Step]] = {}
    while len(found) < most:
        best = search.best(groups, level)
        near = [] if best is None else list(_near(model, best.group))
        if best is not None and near:
            best = search.sharpened(best, near, len(groups))
        saving = 0.0 if best is None else best.saving
        if not found and swapped is not None and swapped > saving:
            return None
        seek = contacts is None and CONTACT not in without
        touched = find_contacts(rows, search.residuals) if seek else None
        if touched is not None and touched.relative > _SIZE and touched.saving > saving:
            fewer = rows.without(touched.near)
            left = [_thinned(g, rows, touched.near) for g in given]
            return _explained(fewer, parameters, swapped, level, most, without, touched, left)
        if best is None:
            break
        alternatives[best.group] = search.alternatives(best, groups, level)
        search.include(best.group)
        found = search.needed([*found, best], len(groups))
        if best.group.code.fatal:
            found = found[-1:]
            break  # to be corrected first: friction and rotor inertia were chosen with wrong gravity
    return _Explained(rows, model, search, groups, found, alternatives, visible, contacts)


def _thinned(group: Group, rows: CauseRows, samples: NDArray[np.bool_]) -> Group:
    """The group in the rows that are left without some samples (N,)."""
    pairs = zip(group.columns, rows.index, strict=True)
    return replace(group, columns=tuple(None if c is None else c[~samples[i]] for c, i in pairs))


def _near(model: Model, group: Group) -> Iterator[Group]:
    """Candidates between those that were tried, near the best one."""
    for source in cause_sources().values():
        if group.code in source.near:
            yield from source.near[group.code](model, group)


def _candidates(model: Model, search: Stepwise, level: float) -> list[Group]:
    groups = [group for x in cause_sources().values() if x.groups is not None for group in x.groups(model)]
    stand = Stand(model) if Stand.fits(model) else None
    rocking = [] if stand is None else list(stand.groups())
    found = search.strongest(rocking, len(groups) + len(rocking))
    if stand is not None and found is not None and found.p_value < level:
        rocking += stand.between(rocking, found.group)
    return [*groups, *_elasticity_between(model, search, groups, level), *rocking]


def _unknown(left: Leftover, rows: CauseRows) -> Cause:
    robot = rows.base.robot
    name = rows.base.channels[left.channel]
    torque = robot.channel_units[name]
    length = "m" if torque == "N" else "rad"
    unit = {"load": torque, "position": length, "velocity": f"{length}/s"}.get(left.variable, f"{length}/s\u00b2")
    where = f"mostly between {left.low:.2g} and {left.high:.2g} {unit}"
    return Cause(
        code=UNKNOWN,
        joints=(name,),
        words=f"an unknown effect follows the {left.variable} of '{name}', {where}",
        size=100 * left.effect,
        std=0.0,
        unit="%",
        share=left.share,
        unexplained=left.effect,
        effect=left.effect,
        p_value=0.0,
    )


def _imitated(held: Imitated, rows: CauseRows) -> Cause:
    """The cause that bodies imitate; its shares are those of what bodies near the file leave."""
    group, trial = held.group, held.trial
    share = 1.0 - (trial.after / trial.before) ** 2
    first = Cause(
        code=group.code,
        joints=tuple(rows.base.robot.coordinates[j] for j in group.joints),
        words=group.words(_plus_minus(abs(held.size), held.std), held.size),
        size=held.size,
        std=held.std,
        unit=group.unit,
        share=share,
        unexplained=float(np.sqrt(trial.before**2 - trial.after**2)),
        effect=held.effect,
        p_value=float(np.exp(-held.odds)),
        trial=trial,
        option=group.option,
    )
    others = [
        replace(
            first, code=g.code, joints=tuple(rows.base.robot.coordinates[j] for j in g.joints),
            words=g.words("", 0.0), trial=None, option=g.option,
        )
        for g in held.alternatives
    ]  # fmt: skip
    return replace(first, alternatives=tuple(others))


def _contact(contacts: Contacts, rows: CauseRows) -> Cause:
    robot = rows.base.robot
    name = robot.coordinates[contacts.joint]
    return Cause(
        code=CONTACT,
        joints=(name,),
        words=contacts.words(name, robot.channel_units[name]),
        size=contacts.size,
        std=0.0,
        unit=robot.channel_units[name],
        share=contacts.share,
        unexplained=contacts.relative,
        effect=contacts.relative,
        p_value=0.0,
    )


def _elasticity_between(model: Model, search: Stepwise, groups: Sequence[Group], level: float) -> list[Group]:
    """More frequencies of the elastic joint that explains most, where it is significant."""
    found = search.strongest([g for g in groups if g.code == ELASTICITY], len(groups))
    if found is None or found.p_value >= level:
        return []
    return list(elasticity_between(model, groups, found.group))


def _remedy(model: Model, group: Group) -> Group:
    """The group as the option that adds it to the model has it, which may be simpler; the group itself without one."""
    if not group.option:
        return group
    terms, rows = effect_terms(model.robot, group.option), model.rows
    if {t.name for t in terms} <= set(model.robot.parameter_names):
        return replace(group, option="")
    made = [rows.decimated([term_torques(model.robot, t, m) for m in rows.motions]) for t in terms]
    columns = [np.column_stack([c[k][:, j] for c in made]) for k, j in enumerate(rows.joints)]
    return replace(group, columns=tuple(columns))


def term_torques(robot: Robot, term: DriveTerm, motion: Motion) -> Array:
    """Torques (N, n) per unit of a custom term in the independent joints."""
    q, v, a = motion.q, motion.v, motion.a
    if not robot.loops:
        return term.column(q, v, a)
    whole = robot.with_terms(term)
    return regressor(whole, q, v, a)[:, :, whole.parameter_names.index(term.name)]


def _cause(step: Step, rows: CauseRows, trial: Trial | None = None) -> Cause:
    """The cause of a step; the option that adds it is given only where that gains something."""
    group = step.group
    return Cause(
        code=group.code,
        joints=tuple(rows.base.robot.coordinates[j] for j in group.joints),
        words=group.words(_plus_minus(abs(step.size), step.std), step.size),
        size=step.size,
        std=step.std,
        unit=group.unit,
        share=step.share,
        unexplained=step.unexplained,
        effect=step.effect,
        p_value=step.p_value,
        trial=trial,
        option=group.option if trial is not None and trial.gains else "",
    )


def _plus_minus(size: float, std: float) -> str:
    """A size and its standard deviation, both to the first digit of the latter, without exponents."""
    if not (np.isfinite(std) and std > 0):
        return f"{size:.3g}"
    digits = max(0, -int(np.floor(np.log10(std))))
    return f"{size:.{digits}f} \u00b1 {std:.{digits}f}"


def _swapped(swap: Swap, rows: CauseRows) -> Cause:
    """Two joints that were exchanged."""
    first, second = (rows.base.robot.coordinates[j] for j in swap.joints)
    what = {JOINTS_SWAPPED: "columns", POSITIONS_SWAPPED: "positions"}.get(swap.code, "torques")
    return Cause(
        code=swap.code,
        joints=(first, second),
        words=f"the {what} of '{first}' and '{second}' are exchanged",
        size=1.0,
        std=0.0,
        unit="pairs",
        share=swap.share,
        unexplained=swap.effect,
        effect=swap.effect,
        p_value=0.0,
    )


def _bursting(model: Model, search: Stepwise) -> tuple[Cause, NDArray[np.bool_]] | None:
    """Backlash as bursts of the residual at changes of sign of the load, and the samples (N,) at which they occur."""
    for burst in load_bursts(model, search.residuals)[:1]:
        relative = float(search.relative[model.rows.joints.index(burst.joint)])
        name, times = model.robot.coordinates[burst.joint], float(np.sqrt(burst.ratio))
        if burst.p_value < _BURST_LEVEL and burst.share > _BURST_SHARE and relative > _SIZE:
            cause = Cause(
                code=BACKLASH,
                joints=(name,),
                words=f"'{name}' has backlash: its residual is {times:.1f} times larger where its load reverses",
                size=times,
                std=0.0,
                unit="times",
                share=burst.share,
                unexplained=relative,
                effect=relative,
                p_value=burst.p_value,
            )
            return cause, burst.near
    return None


def _late(
    rows: CauseRows, whole: CauseRows, parameters: Array, level: float, without: Collection[str]
) -> tuple[Cause, Lag | None] | None:
    """A lag of all torques, or friction that builds up after reversals; both show best where joints reverse."""
    model = Model(whole.base.robot, parameters, whole)
    lags = [(lag, g) for lag, g in lag_groups(model) if g.code not in without and not g.joints]
    search = Stepwise(whole)
    best = search.best([group for _, group in lags], level)
    groups = [g for g in presliding_groups(model) if g.code not in without and not g.joints]
    soft = search.best(groups, level)
    if soft is not None and (best is None or soft.gain > best.gain):
        return _cause(soft, rows, try_cause(whole, soft.group, ())), None
    if best is None:
        return None
    (step, lag), *others = search.without_lag(best, lags, rows)
    cause = _cause(step, rows, try_cause(whole, step.group, (), lagged_rows(whole, lag)))
    return replace(cause, alternatives=tuple(_cause(other, rows) for other, _ in others)), lag


def _alone(estimate: Estimate, rows: CauseRows, level: float, without: Collection[str]) -> Cause | None:
    """One joint whose torque is late, or whose friction builds up after reversals, by all rows."""
    model, search = Model(rows.base.robot, estimate.parameters, rows), Stepwise(rows)
    groups = [*(g for _, g in lag_groups(model)), *presliding_groups(model)]
    groups = [g for g in groups if g.joints and g.code not in without]
    best = search.best(groups, level)
    if best is None:
        return None
    others = search.alternatives(best, groups, level, ALTERNATIVE)[:MOST_ALTERNATIVES]
    others = [s for s in others if s.group.joints == best.group.joints]
    cause = _cause(best, rows, try_cause(rows, best.group, ()))
    return replace(cause, alternatives=tuple(_cause(other, rows) for other in others))


def _slow(estimate: Estimate, rows: CauseRows, tested: int, level: float) -> Cause | None:
    """Friction that is larger near standstill, or not that of a Stribeck law in the model.

    All rows are used, with those where joints reverse. Where one joint has a law, others probably need one too.
    """
    robot = rows.base.robot
    model, search = Model(robot, estimate.parameters, rows), Stepwise(rows)
    owners = {robot.tree_coordinates[t.owner] for t in robot.drives if t.kind == TermKind.STRIBECK}
    with_law = {j for j, name in enumerate(robot.coordinates) if name in owners}
    found: dict[int, Step] = {}
    for step in search.all(list(stribeck_groups(model)), tested):
        j = step.group.joints[0]
        relevant = (step.misses_law and (j in with_law or step.size > 0)) if with_law else step.relevant
        if step.p_value < level and relevant and (j not in found or step.gain > found[j].gain):
            found[j] = step
    if not found:
        return None
    worst = max(found.values(), key=lambda s: s.unexplained)
    names = tuple(robot.coordinates[j] for j in sorted(found))
    j = worst.group.joints[0]
    where = robot.coordinates[j]
    size = f"{_plus_minus(worst.size, worst.std)} {robot.channel_units[where]} in '{where}'"
    what = "is not that of its Stribeck law" if j in with_law else "is larger (Stribeck)"
    words = f"friction near standstill {what} in {', '.join(names)}: {size}"
    return replace(_cause(worst, rows, try_cause(rows, worst.group, ())), joints=names, words=words)


def _oscillating(model: Model, search: Stepwise) -> Iterator[Cause]:
    """A peak in the spectrum of the residual: elasticity."""
    for peak in resonances(model):
        name = model.rows.base.channels[peak.channel]
        size = float(search.relative[peak.channel]) * float(np.sqrt(peak.share))
        if any(peak.share > share and size > least for share, least in _PEAKS):
            yield Cause(
                code=ELASTICITY,
                joints=(name,),
                words=f"the residual of '{name}' oscillates at {peak.frequency:.2g} Hz, as of an elastic joint",
                size=peak.frequency,
                std=0.0,
                unit="Hz",
                share=peak.share,
                unexplained=size,
                effect=size,
                p_value=0.0,
            )
