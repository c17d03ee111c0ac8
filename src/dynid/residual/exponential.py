"""An exponential that the compiler can turn into vector instructions."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dynid.dynamics.kernels.compiler import step


@intrinsic
def _bits_of(context, x):
    """The 64 bits of a number as an integer."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), code


@intrinsic
def _number_of(context, bits):
    """The number that 64 bits stand for."""

    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), code


@step
def decay(x):
    """exp(-x) for x >= 0 to 1e-14 relative, without branches, so that a loop over it becomes vector instructions.

    exp(-x) = 2^n exp(r) with |r| <= ln(2) / 2 and the series of exp(r) to the eleventh power. Beyond 700 it stays at
    exp(-700), 1e-304.
    """
    x = -min(x, 700.0)
    n = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
    p = 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    # 1.5 * 2^52 + 1023: the last bits of the sum are the exponent of 2^n.
    return p * _number_of(_bits_of(n + 6755399441056767.0) << 52)
