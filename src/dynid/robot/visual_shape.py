"""A visible shape of a robot file, in the same terms for every format."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.robot.xmlfile import numbers

__all__ = ["VisualShape", "hex_color"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class VisualShape:
    """A visible shape of a link.

    Attributes
    ----------
    link : int
        Index of the link of the robot that carries it.
    placement : ndarray, shape (4, 4)
        Where it is on that link.
    kind : str
        "mesh", or a primitive: box, sphere, cylinder, capsule, ellipsoid.
    size : ndarray
        Dimensions of a primitive (m): the edges of a box, the semi-axes of an ellipsoid, otherwise the radius and,
        unless it is a sphere, the length along z, that of a capsule without its ends.
    mesh : str
        Name of the mesh in the file; empty for a primitive.
    scale : ndarray, shape (3,)
        Scale of the mesh.
    color : str or None
        "#rrggbb"; None where the file gives none.
    """

    link: int
    placement: Array
    kind: str
    size: Array
    mesh: str
    scale: Array
    color: str | None


def hex_color(text: str, where: str) -> str:
    """Red, green, blue and opacity between 0 and 1, as "#rrggbb"."""
    rgba = numbers(text, 4, where)
    return "#" + "".join(f"{round(255 * float(x)):02x}" for x in np.clip(rgba[:3], 0.0, 1.0))
