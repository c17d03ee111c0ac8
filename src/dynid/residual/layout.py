"""Layout of a compiled predictor: the one definition that Python, the numba kernels and the generated C code share.

A predictor is two flat arrays, one of integers and one of floating-point numbers. Both are divided into fields. The
integer array begins with a head: entry `Field.X` is where field X starts, entry `Field.X + 1` is where it ends. The
generated C code holds every field as an array of the same name in lower case, and takes all other constants from
`c_constants`.

Numba's disk cache does not notice changes of this file: save `compiled.py` again after changing it.
"""

from __future__ import annotations

from enum import IntEnum

from dynid.robot.drives import TermKind

__all__ = ["CHUNK", "FIELDS", "INTEGERS", "NEIGHBOURS", "NUMBERS", "SHAPES", "Field", "Flag", "Shape", "c_constants"]

# Points whose distances are held at once: the intermediate results stay in the first-level cache.
CHUNK = 256
# Local models that share a query.
NEIGHBOURS = 3


class Shape(IntEnum):
    """Shape g(s) of a kernel part over the scaled squared distance s."""

    SE = 0
    MATERN32 = 1
    MATERN52 = 2
    EXPONENTIAL = 3
    RATIONAL_QUADRATIC = 4


SHAPES = tuple(shape.name.lower().replace("_", "-") for shape in Shape)


class Flag(IntEnum):
    """Entries of the field FLAGS."""

    RIGID = 0  # torques include the rigid-body model
    VARIANCE = 1  # variances are computed


class Field(IntEnum):
    """Fields in the order of the arrays; the value of each is its place in the head.

    Let n be the number of joint coordinates, d of features, p of kernel parts and b of blocks. A learned joint has a
    kernel of several parts, and one block of points or several local ones. Blocks with the same points, whatever their
    joint, form a set, so that distances to its points are computed once. A field `X_START` gives where each item's
    share of another field begins, with the end of the last one behind.
    """

    # Integers.
    FLAGS = 0  # as in Flag
    # The kinematic tree, as in dynid.dynamics.tree.
    PARENT = 1
    COORDINATE = 2
    MASSIVE = 3
    # Drive terms.
    KIND = 4
    TERM_START = 5
    TERM_JOINT = 6
    CROSS = 7
    PERIODIC = 8  # (n,) whether the position enters as sine and cosine
    # Learned joints.
    PART_START = 9  # (n + 1,) kernel parts
    NOISE_COLUMN = 10  # (n,) feature that the noise depends on, or -1
    BLOCK_START = 11  # (n + 1,) blocks
    # Kernel parts.
    SHAPE = 12  # (p,) as in Shape
    COLUMN_START = 13  # (p + 1,) entries of COLUMN
    COLUMN = 14
    # Sets of blocks.
    SET_COLUMN_START = 15
    SET_COLUMN = 16
    SET_BLOCK_START = 17
    SET_BLOCK = 18
    SET_SIZE = 19
    SET_POINT_START = 20
    # Blocks.
    JOINT = 21  # (b,)
    WEIGHT_START = 22
    ROWS = 23  # (b,) rows of the variance factor
    TRIANGULAR = 24  # (b,) whether that factor is triangular
    FACTOR_START = 25
    COEFFICIENT_START = 26
    BASIS_ROOT_START = 27
    INTEGERS_END = 28  # no field: where the last integer field ends

    # Numbers. The tree and the drive terms.
    RATIO = 29
    OFFSET = 30
    ROTATION = 31
    POSITION = 32
    SUBSPACE = 33
    GRAVITY = 34
    INERTIA = 35
    TERM_WEIGHT = 36
    REST = 37
    SLOPE = 38
    VALUE = 39
    # Features.
    HOME = 40  # (n,) position used before any finite one was given
    VELOCITY_SCALE = 41  # (n,) rad/s or m/s: the direction of motion is tanh(v / velocity_scale)
    CENTER = 42  # (d,)
    SCALE = 43  # (d,)
    LOW = 44  # (d,) range of the training data, scaled
    HIGH = 45  # (d,)
    EDGE = 46  # (n, d) reciprocal distance beyond the range at which the learned part is gone
    BLEND = 47  # (2,) shares of the prior variance between which the learned part fades
    # Learned joints.
    OUTPUT_SCALE = 48  # (n,) N m or N
    PRIOR_VARIANCE = 49  # (n,) scaled
    NOISE = 50  # (n, 2) logarithms
    TRUST = 51  # (n,)
    BOUND = 52  # (n,) N m or N
    VARIANCE_FACTOR = 53  # (n,)
    # Kernel parts.
    AMPLITUDE = 54  # (p,) squared
    INVERSE_SQUARED_LENGTH = 55  # one per entry of COLUMN
    POWER = 56  # (p,) of a rational quadratic
    # Blocks.
    BLOCK_CENTER = 57  # (b, d)
    POINTS = 58
    WEIGHTS = 59
    COEFFICIENTS = 60
    BASIS_ROOT = 61  # root of the covariance of the basis coefficients
    FACTORS = 62
    NUMBERS_END = 63  # no field: where the last field ends


FIELDS = {field.name.lower(): field for field in Field if field not in (Field.INTEGERS_END, Field.NUMBERS_END)}
INTEGERS = tuple(name for name, field in FIELDS.items() if field < Field.INTEGERS_END)
NUMBERS = tuple(name for name, field in FIELDS.items() if field > Field.INTEGERS_END)


def c_constants() -> str:
    """The constants that C code shares with the kernels, as C enumerations."""
    groups: dict[str, dict[str, int]] = {
        "Flags": {f"HAS_{flag.name}": flag for flag in Flag},
        "Shapes of kernels": {f"SHAPE_{shape.name}": shape for shape in Shape},
        "Drive terms": {f"TERM_{kind.name}": kind for kind in TermKind if kind is not TermKind.CUSTOM},
        "Sizes": {"CHUNK": CHUNK, "NEIGHBOURS": NEIGHBOURS},
    }
    lines = []
    for title, group in groups.items():
        lines += [f"/* {title}. */", "enum {", *(f"    {name} = {int(value)}," for name, value in group.items()), "};"]
    return "\n".join(lines)
