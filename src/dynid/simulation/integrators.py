"""Coefficients of the integrators.

    K_s = f(x + h sum of a_sr K_r),    x1 = x + h sum of b_s K_s,    error = h sum of (b_s - fourth_s) K_s

Sources: Dormand and Prince, A Family of Embedded Runge-Kutta Formulae (1980), for dopri5; Hairer, Norsett and Wanner,
Solving Ordinary Differential Equations I (1993), chapter II, for rk4 and the control of the step; Hairer, Lubich and
Wanner, Geometric Numerical Integration (2006), for the semi-implicit (symplectic) Euler method. Steps that are implicit
in friction are those of `dynid.dynamics.kernels.integrate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from dynid.errors import InvalidValue, UnknownName, did_you_mean, named

if TYPE_CHECKING:
    from dynid.dynamics.kernels.integrate import Method

__all__ = ["INTEGRATORS", "Integrator", "integration_method"]

Integrator = Literal["auto", "rk4", "semi-implicit", "dopri5", "implicit"]
INTEGRATORS: tuple[Integrator, ...] = ("auto", "rk4", "semi-implicit", "dopri5", "implicit")

_RK4 = ([[0, 0, 0, 0], [1 / 2, 0, 0, 0], [0, 1 / 2, 0, 0], [0, 0, 1, 0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6])
# Dormand and Prince (1980): fifth order, with an embedded fourth-order solution for the error estimate.
_DOPRI5_STAGES = [
    [0, 0, 0, 0, 0, 0, 0],
    [1 / 5, 0, 0, 0, 0, 0, 0],
    [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
    [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
]
_DOPRI5_FOURTH = [5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40]


def integration_method(name: str, substeps: int = 1, tolerance: float = 1e-8) -> Method:
    """Coefficients of an integrator, with `substeps` fixed steps per control period, or `tolerance` for dopri5."""
    from dynid.dynamics.kernels.integrate import Method

    if substeps < 1:
        raise InvalidValue(f"a control period has at least one step, got {substeps}", "substeps")
    if name == "dopri5":
        if not 0 < tolerance < 1:
            raise InvalidValue(
                f"the tolerance of an adaptive integrator lies between 0 and 1, got {tolerance}", "tolerance"
            )
        b = np.array(_DOPRI5_STAGES[-1], float)
        a = np.array(_DOPRI5_STAGES, float)
        return Method(a, b, b - np.array(_DOPRI5_FOURTH), 0, 0, 1, float(tolerance), float(tolerance))
    if name == "rk4":
        a, b = np.array(_RK4[0], float), np.array(_RK4[1], float)
    elif name in ("semi-implicit", "implicit"):
        a, b = np.zeros((1, 1)), np.ones(1)
    else:
        hint = did_you_mean(name, INTEGRATORS)
        raise UnknownName(f"{named('integrator')} '{name}' is unknown: use {', '.join(INTEGRATORS)}{hint}")
    euler = name != "rk4"
    return Method(a, b, np.zeros_like(b), int(euler), int(name == "implicit"), int(substeps), 0.0, 0.0)
