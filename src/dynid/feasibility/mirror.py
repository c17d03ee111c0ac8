"""Symmetry constraints: links that are mirror images of each other, one pair or the whole body.

    pi_right = X(H) pi_left,    H = R_right' (1 - 2 n n') R_left with all joints at zero

with the map X(H) of the inertial parameters under a reflection H, which acts on second moments as H S H'.

Source: own constraint; Wensing, Kim and Slotine (2018), for second moments on which it acts linearly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dynid.errors import DataError, Duplicate, InvalidType, InvalidValue, MissingData, UnknownName
from dynid.feasibility.columns import first_column, link_named, wide
from dynid.feasibility.cone import Block
from dynid.robot.inertia import inertia_transform
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.robot.posture import link_placements

__all__ = ["Mirrored", "Symmetry"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Mirrored:
    """One link is the mirror image of another, such as left and right limbs.

    Attributes
    ----------
    link, of : str
        Names of the two links.
    axis : {"x", "y", "z"}
        Axis that is mirrored.
    placement : array_like, shape (4, 4), optional
        Reflection that maps points in the frame of link `of` to the frame of `link`, instead of `axis`.
    """

    link: str
    of: str
    axis: Literal["x", "y", "z"] = "y"
    placement: ArrayLike | None = None
    extra: int = field(default=0, init=False)

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        mirror = np.eye(4)
        if self.axis not in ("x", "y", "z"):
            raise UnknownName(f"mirror axis '{self.axis}' is unknown: use x, y or z", "axis")
        mirror["xyz".index(self.axis), "xyz".index(self.axis)] = -1.0
        if self.placement is not None:
            mirror = checked(self.placement, (4, 4), f"mirror placement of '{self.link}'", DataError)
        link, other = link_named(robot, self.link), link_named(robot, self.of)
        a, b = first_column(robot, link), first_column(robot, other)
        matrix = np.zeros((10, len(robot.layout)))
        matrix[:, a : a + 10] = np.eye(10)
        matrix[:, b : b + 10] -= inertia_transform(mirror)
        return [Block("zero", sparse.csr_array(matrix), np.zeros(10), f"{link}: mirror image of {other}")]


@dataclass(frozen=True)
class Symmetry:
    """The robot is symmetric: pairs of links are mirror images of each other.

    The reflection between two link frames follows from their orientation with all joints at zero, which must be a
    symmetric posture. Their origins are assumed to be mirrored points, so that small differences between the two sides
    of a measured skeleton do not matter.

    Attributes
    ----------
    pairs : sequence of (str, str) or mapping
        Left and right link of each pair. A link that is paired with itself is symmetric.
    plane : {"x", "y", "z"} or array_like, shape (3,)
        Normal of the plane of symmetry in the base frame.
    placements : mapping
        Right link to a reflection (4, 4), which maps points in the frame of the left link to that of the right link.
    """

    pairs: Sequence[tuple[str, str]] | Mapping[str, str]
    plane: str | ArrayLike = "y"
    placements: Mapping[str, ArrayLike] = field(default_factory=dict)
    extra: int = field(default=0, init=False)

    @staticmethod
    def by_name(
        robot: Robot, plane: str | ArrayLike = "y", *, left: str = "left", right: str = "right", middle: bool = True
    ) -> Symmetry:
        """Pairs of links whose names differ in `left` and `right`; with `middle`, all other links are symmetric."""
        names = [robot.links[i].name for i in robot.parameter_links]
        pairs = []
        for name in names:
            if left in name:
                other = name.replace(left, right, 1)
                if other not in names:
                    raise MissingData(f"link '{name}' has no counterpart '{other}'")
                pairs.append((name, other))
            elif right in name and name.replace(right, left, 1) not in names:
                raise MissingData(f"link '{name}' has no counterpart '{name.replace(right, left, 1)}'")
        if not pairs:
            raise UnknownName(f"robot '{robot.name}' has no pair of links named '{left}' and '{right}'", "pairs")
        taken = {name for pair in pairs for name in pair}
        return Symmetry((*pairs, *((n, n) for n in names if middle and n not in taken)), plane)

    def reflections(self, robot: Robot) -> Iterator[tuple[str, str, Array]]:
        """Left link, right link and the reflection (4, 4) from the left link frame to the right link frame."""
        given = list(self.pairs.items() if isinstance(self.pairs, Mapping) else self.pairs)
        normal = _normal(self.plane)
        mirror = np.eye(3) - 2.0 * np.outer(normal, normal)
        turned = link_placements(robot)[:, :3, :3]
        seen: set[str] = set()
        for pair in given:
            if isinstance(pair, str) or len(pair) != 2:
                raise InvalidType(f"symmetry needs pairs of link names, got {pair!r:.60}", "pairs")
            left, right = (link_named(robot, name) for name in pair)
            for name in {left, right}:
                if name in seen:
                    raise Duplicate(f"link '{name}' is in two pairs of the symmetry", "pairs")
                seen.add(name)
            h = np.eye(4)
            h[:3, :3] = turned[robot.link_index(right)].T @ mirror @ turned[robot.link_index(left)]
            if right in self.placements:
                h = _reflection(self.placements[right], right)
            yield left, right, h
        unknown = sorted(set(self.placements) - seen)
        if unknown:
            raise UnknownName(
                f"symmetry has a placement for '{unknown[0]}', which is in none of its pairs", "placements"
            )

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        out = []
        for left, right, h in self.reflections(robot):
            transform = inertia_transform(h)
            # Rounding errors would couple parameters that are independent.
            transform[np.abs(transform) < 1e-12] = 0.0
            a, b = first_column(robot, right), first_column(robot, left)
            if left == right:
                rows = _independent(np.eye(10) - transform)
                words = f"{left}: its own mirror image"
                out.append(Block("zero", wide(rows, range(a, a + 10), len(robot.layout)), np.zeros(len(rows)), words))
                continue
            both = np.hstack([np.eye(10), -transform])
            columns = [*range(a, a + 10), *range(b, b + 10)]
            matrix = sparse.csr_array(wide(both, columns, len(robot.layout)))
            matrix.sort_indices()
            out.append(Block("zero", matrix, np.zeros(10), f"{right}: mirror image of {left}"))
        return out


def _normal(plane: str | ArrayLike) -> Array:
    """Unit normal of the plane of symmetry."""
    if isinstance(plane, str):
        if plane not in ("x", "y", "z"):
            raise UnknownName(
                f"plane of symmetry '{plane}' is unknown: use x, y or z for its normal, or a vector", "plane"
            )
        return np.eye(3)["xyz".index(plane)]
    normal = checked(plane, (3,), "normal of the plane of symmetry", DataError)
    if np.linalg.norm(normal) < 1e-9:
        raise InvalidValue("the normal of the plane of symmetry is zero", "plane")
    return np.asarray(normal / np.linalg.norm(normal))


def _reflection(given: ArrayLike, link: str) -> Array:
    """A checked 4x4 reflection, with a rotation and a translation."""
    h = checked(given, (4, 4), f"mirror placement of '{link}'", DataError)
    orthogonal = np.allclose(h[:3, :3] @ h[:3, :3].T, np.eye(3), atol=1e-6) and np.linalg.det(h[:3, :3]) < 0
    if not orthogonal or not np.array_equal(h[3], [0, 0, 0, 1]):
        raise InvalidValue(
            f"mirror placement of '{link}' must be a reflection, with a rotation and a translation at most",
            "placements",
        )
    return h


def _independent(rows: Array) -> Array:
    """A basis of the row space; the nonzero rows themselves where they are independent."""
    kept = rows[np.abs(rows).max(axis=1) > 1e-12]
    if np.linalg.matrix_rank(kept) == len(kept):
        return kept
    _, size, basis = np.linalg.svd(kept)
    return np.asarray(basis[: len(size)][size > 1e-9 * size[0]])
