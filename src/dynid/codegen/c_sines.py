"""Sine and cosine of one angle together, as C that the compiler can put in line.

The angle is brought to [-pi/4, pi/4] by subtracting a multiple of pi/2 in three parts, the first two of 33 bits so that
their products with the multiple are exact (Cody and Waite 1980); there the Taylor series to x^15 and x^16 are exact to
rounding. No branch depends on the quadrant. Angles beyond 1e5, and what is no number, go to the library.
"""

from __future__ import annotations

from math import factorial

__all__ = ["SINE_COSINE"]


def _series(first: int) -> str:
    """Seven terms in z = x^2 of alternating 1/n! from n = first on, grouped so that they can run side by side."""
    sign = 1 if first % 4 in (0, 1) else -1
    terms = [sign * (-1) ** k / factorial(first + 2 * k) for k in range(7)]
    pairs = [f"({terms[k]!r} + z * {terms[k + 1]!r})" for k in (0, 2, 4)]
    return f"({pairs[0]} + z2 * {pairs[1]})\n                    + z4 * ({pairs[2]} + z2 * {terms[6]!r})"


SINE_COSINE = f"""static inline void sine_cosine(double x, double *s, double *c)
{{
    static const double turn[4] = {{1.0, 0.0, -1.0, 0.0}};
    if (!(fabs(x) < 100000.0)) {{
        *s = sin(x);
        *c = cos(x);
        return;
    }}
    /* Added before the cut, 131072 makes it a rounding for either sign. */
    const int k = (int)(x * 0.6366197723675814 + 131072.5) - 131072;
    const double n = (double)k, here = turn[k & 3], back = turn[(k + 3) & 3];
    const double r = ((x - n * 1.5707963267341256) - n * 6.077100506303966e-11) - n * 2.0222662487959506e-21;
    const double z = r * r, z2 = z * z, z4 = z2 * z2;
    const double odd = {_series(3)};
    const double even = {_series(4)};
    const double sine = r + r * z * (odd), cosine = (1.0 - 0.5 * z) + z2 * (even);
    *s = here * sine + back * cosine;
    *c = here * cosine - back * sine;
}}
"""
