"""Left and right: links that are mirror images of each other, one pair or a whole body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dynid.errors import DataError
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
    """One link is the mirror image of another, as left and right limbs are: pi_link = move(pi_of, placement).

    `placement` (4, 4) maps points of the other link's frame to this one's; the default mirrors x, y or z.
    """

    link: str
    of: str
    axis: Literal["x", "y", "z"] = "y"
    placement: ArrayLike | None = None
    extra: int = field(default=0, init=False)

    def blocks(self, robot: Robot) -> list[Block]:
        mirror = np.eye(4)
        if self.axis not in ("x", "y", "z"):
            raise DataError(f"mirror axis '{self.axis}' is unknown: use x, y or z")
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
    """A body is its own mirror image: pairs of links (left, right) mirror each other, a link paired with itself itself.

    `plane` is the normal of the plane of symmetry in the base frame, "x", "y", "z" or a vector (3,). How link frames
    mirror each other follows from how they lie with all joints at zero, which must be a symmetric posture. Their
    origins are taken as mirrored points: small differences between the sides of a measured skeleton do no harm.
    `placements` gives other reflections (4, 4) by right link; they map points of the left link's frame to its own.
    """

    pairs: Sequence[tuple[str, str]] | Mapping[str, str]
    plane: str | ArrayLike = "y"
    placements: Mapping[str, ArrayLike] = field(default_factory=dict)
    extra: int = field(default=0, init=False)

    @staticmethod
    def by_name(
        robot: Robot, plane: str | ArrayLike = "y", *, left: str = "left", right: str = "right", middle: bool = True
    ) -> Symmetry:
        """Pairs are links whose names differ in `left` and `right`; with `middle` all others mirror themselves."""
        names = [robot.links[i].name for i in robot.parameter_links]
        pairs = []
        for name in names:
            if left in name:
                other = name.replace(left, right, 1)
                if other not in names:
                    raise DataError(f"link '{name}' has no partner '{other}'")
                pairs.append((name, other))
            elif right in name and name.replace(right, left, 1) not in names:
                raise DataError(f"link '{name}' has no partner '{name.replace(right, left, 1)}'")
        if not pairs:
            raise DataError(f"robot '{robot.name}' has no pair of links named '{left}' and '{right}'")
        taken = {name for pair in pairs for name in pair}
        return Symmetry((*pairs, *((n, n) for n in names if middle and n not in taken)), plane)

    def reflections(self, robot: Robot) -> Iterator[tuple[str, str, Array]]:
        """Left link, right link and the reflection (4, 4) from the left one's frame to the right one's."""
        given = list(self.pairs.items() if isinstance(self.pairs, Mapping) else self.pairs)
        normal = _normal(self.plane)
        mirror = np.eye(3) - 2.0 * np.outer(normal, normal)
        turned = link_placements(robot)[:, :3, :3]
        seen: set[str] = set()
        for pair in given:
            if isinstance(pair, str) or len(pair) != 2:
                raise DataError(f"symmetry needs pairs of link names, got {pair!r:.60}")
            left, right = (link_named(robot, name) for name in pair)
            for name in {left, right}:
                if name in seen:
                    raise DataError(f"link '{name}' is in two pairs of the symmetry")
                seen.add(name)
            h = np.eye(4)
            h[:3, :3] = turned[robot.link_index(right)].T @ mirror @ turned[robot.link_index(left)]
            if right in self.placements:
                h = _reflection(self.placements[right], right)
            yield left, right, h
        unknown = sorted(set(self.placements) - seen)
        if unknown:
            raise DataError(f"symmetry has a placement for '{unknown[0]}', which is in none of its pairs")

    def blocks(self, robot: Robot) -> list[Block]:
        out = []
        for left, right, h in self.reflections(robot):
            transform = inertia_transform(h)
            # Entries within rounding of zero would couple numbers that have nothing to do with each other.
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
    if isinstance(plane, str):
        if plane not in ("x", "y", "z"):
            raise DataError(f"plane of symmetry '{plane}' is unknown: use x, y or z for its normal, or a vector")
        return np.eye(3)["xyz".index(plane)]
    normal = checked(plane, (3,), "normal of the plane of symmetry", DataError)
    if np.linalg.norm(normal) < 1e-9:
        raise DataError("the normal of the plane of symmetry is zero")
    return np.asarray(normal / np.linalg.norm(normal))


def _reflection(given: ArrayLike, link: str) -> Array:
    """A checked matrix (4, 4) that mirrors, and turns and shifts besides."""
    h = checked(given, (4, 4), f"mirror placement of '{link}'", DataError)
    orthogonal = np.allclose(h[:3, :3] @ h[:3, :3].T, np.eye(3), atol=1e-6) and np.linalg.det(h[:3, :3]) < 0
    if not orthogonal or not np.array_equal(h[3], [0, 0, 0, 1]):
        raise DataError(f"mirror placement of '{link}' must be a reflection, with a rotation and a translation at most")
    return h


def _independent(rows: Array) -> Array:
    """A basis of the space the rows span; plain rows where all that do not vanish are independent already."""
    kept = rows[np.abs(rows).max(axis=1) > 1e-12]
    if np.linalg.matrix_rank(kept) == len(kept):
        return kept
    _, size, basis = np.linalg.svd(kept)
    return np.asarray(basis[: len(size)][size > 1e-9 * size[0]])
