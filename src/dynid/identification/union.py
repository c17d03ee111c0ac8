"""The standard parameters of several models as one joint vector, in which shared parameters appear once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError, DynidError
from dynid.feasibility.cone import Block
from dynid.feasibility.constraints import Constraints
from dynid.feasibility.sets import FeasibleSet, feasible_set
from dynid.parameters.base import BaseParameters
from dynid.parameters.rank import independent_columns
from dynid.patterns import matching_names
from dynid.robot.model import Robot

__all__ = ["Union", "UnionBase", "feasible_union", "shared_parameters", "union_base"]

Array = NDArray[np.float64]
Patterns = str | Sequence[str]

_ZERO_COLUMN = 1e-10
_WEIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class Union:
    """The joint vector (P,): its names and labels, the models and their marks, and the columns of each model."""

    robots: tuple[Robot, ...]
    marks: tuple[str, ...]
    names: tuple[str, ...]
    labels: tuple[str, ...]
    columns: tuple[NDArray[np.intp], ...]

    @property
    def size(self) -> int:
        """Number of joint parameters P."""
        return len(self.names)

    @property
    def shared(self) -> tuple[str, ...]:
        """Names of the parameters that more than one model has."""
        count = np.zeros(self.size)
        for columns in self.columns:
            count[columns] += 1
        return tuple(n for n, c in zip(self.names, count, strict=True) if c > 1)

    @cached_property
    def prior(self) -> Array:
        """A-priori values (P,); those of shared parameters come from the first model that has them."""
        out = np.zeros(self.size)
        for robot, columns in zip(reversed(self.robots), reversed(self.columns), strict=True):
            out[columns] = robot.parameters
        return out

    def expand(self, rows: Array, model: int) -> Array:
        """Rows over the standard parameters of one model as rows over the joint vector (k, P)."""
        out = np.zeros((len(rows), self.size))
        out[:, self.columns[model]] = rows
        return out


@dataclass(frozen=True, eq=False)
class UnionBase:
    """Base parameters beta = K pi of the joint vector: `matrix` is K (b, P), `kept` are the representatives."""

    union: Union
    matrix: Array
    kept: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of joint base parameters b."""
        return len(self.kept)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the representative of each combination, with an R if other parameters are regrouped into it."""
        rows = zip(self.kept, self.matrix, strict=True)
        return tuple(self.union.names[j] + ("R" if np.count_nonzero(row) > 1 else "") for j, row in rows)


class FeasibleUnion(FeasibleSet):
    """The constraints of all models over the joint vector."""

    union: Union

    @property
    def size(self) -> int:
        return self.union.size

    @cached_property
    def scale(self) -> Array:
        out = np.ones(self.size + self.extra)
        for robot, columns in zip(reversed(self.union.robots), reversed(self.union.columns), strict=True):
            out[columns] = FeasibleSet(robot, (), 0).scale
        return out


def shared_parameters(robots: Sequence[Robot], marks: Sequence[str], shared: Patterns, own: Patterns) -> Union:
    """The joint vector: parameters of one name that match `shared` and not `own` are one parameter."""
    yes, no = (tuple([x] if isinstance(x, str) else x) for x in (shared, own))
    everything = [(p.name, p.label, p.inertial) for robot in robots for p in robot.layout]
    for pattern in yes + no:
        if not any(_matches(pattern, *p) for p in everything):
            raise DataError(f"no parameter matches '{pattern}'")
    place: dict[str, int] = {}
    labels: list[str] = []
    columns = []
    for robot, mark in zip(robots, marks, strict=True):
        mine = []
        for p in robot.layout:
            common = any(_matches(x, p.name, p.label, p.inertial) for x in yes)
            apart = any(_matches(x, p.name, p.label, p.inertial) for x in no)
            name = p.name if common and not apart else f"{p.name}@{mark}"
            if name not in place:
                place[name] = len(place)
                labels.append(p.label if common and not apart else f"{p.label}@{mark}")
            mine.append(place[name])
        columns.append(np.array(mine))
    return Union(tuple(robots), tuple(marks), tuple(place), tuple(labels), tuple(columns))


def union_base(union: Union, bases: Sequence[BaseParameters]) -> UnionBase:
    """Base parameters of all models together, from those of each.

    Every measured torque is a combination of the base parameters of one model, so the rows of all K over the joint
    vector span what is identifiable.
    """
    rows = np.vstack([union.expand(base.matrix, i) for i, base in enumerate(bases)])
    norms = np.linalg.norm(rows, axis=0)
    seen = norms > _ZERO_COLUMN * norms.max(initial=0.0)
    unit = np.where(seen, rows / np.where(seen, norms, 1.0), 0.0)
    # In the order of the scan of each model, so that the groupings are the usual ones.
    scan = [int(union.columns[i][j]) for i, base in enumerate(bases) for j in (*base.kept, *reversed(base.dependent))]
    singular = np.linalg.svd(unit, compute_uv=False)
    kept = independent_columns(unit, [j for j in dict.fromkeys(scan) if seen[j]], singular)
    if not kept:
        raise DynidError("the structural rank of the models together is not clear")
    found = np.linalg.lstsq(unit[:, kept], unit, rcond=None)[0] * norms / norms[kept][:, None]
    matrix = np.where(np.abs(found) < _WEIGHT, 0.0, found)
    matrix[:, kept] = np.eye(len(kept))
    return UnionBase(union, matrix, tuple(kept))


def feasible_union(union: Union, constraints: Constraints) -> FeasibleUnion:
    """The constraints that make every model physically consistent; those of shared parts appear once."""
    sets = [feasible_set(robot, constraints) for robot in union.robots]
    extra = sum(s.extra for s in sets)
    blocks: list[Block] = []
    known = set()
    own = union.size
    for one, columns, mark in zip(sets, union.columns, union.marks, strict=True):
        where = np.concatenate([columns, own + np.arange(one.extra)])
        own += one.extra
        for block in one.blocks:
            coo = block.matrix.tocoo()
            place = where[coo.col]
            unshared = any(c >= union.size or union.names[c].endswith(f"@{mark}") for c in np.unique(place))
            label = f"{block.label} ({mark})" if unshared else block.label
            key = (label, block.cone, tuple(np.unique(place)))
            if key in known:
                continue
            known.add(key)
            matrix = type(block.matrix)((coo.data, (coo.row, place)), shape=(block.rows, union.size + extra))
            blocks.append(Block(block.cone, matrix, block.constant, label, block.unit))
    out = FeasibleUnion(union.robots[0], tuple(blocks), extra)
    object.__setattr__(out, "union", union)
    return out


def _matches(pattern: str, name: str, label: str, inertial: bool) -> bool:
    """Whether a pattern or group matches a parameter."""
    groups = {"all": True, "links": inertial, "drives": not inertial}
    return groups[pattern] if pattern in groups else bool(matching_names(pattern, (name, label)))
