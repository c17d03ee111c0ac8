"""Base parameters of closed loops: counts by sampling and by closed forms with exact or 40-digit arithmetic."""

import numpy as np
import pytest

import dynid
from tests.support.linkages import leg, parallelogram

PLANAR = ("m", "mx", "mz", "Iyy")


def _columns(sp, q, lengths, angles, gravity):
    """(inertia, potential energy) of each of the 12 planar parameters of crank, coupler and rocker, over the crank."""
    crank, ground = lengths
    starts = [(sp.Integer(0), sp.Integer(0)), (crank * sp.cos(q), -crank * sp.sin(q)), (ground, sp.Integer(0))]
    out = []
    for (x, z), angle in zip(starts, angles, strict=True):
        vx, vz, w = sp.diff(x, q), sp.diff(z, q), sp.diff(angle, q)
        c, s = sp.cos(angle), sp.sin(angle)
        out += [
            (vx**2 + vz**2, gravity * z),
            (-2 * w * (vx * s + vz * c), -gravity * s),
            (2 * w * (vx * c - vz * s), gravity * c),
            (w**2, sp.Integer(0)),
        ]
    return out


def test_parallelogram_by_exact_coefficients():
    sp = pytest.importorskip("sympy")
    q = sp.symbols("q")
    columns = _columns(sp, q, (sp.Rational(3, 10), sp.Rational(1, 2)), (q, 0 * q, q), sp.Rational(981, 100))
    basis = (sp.Integer(1), sp.cos(q), sp.sin(q))
    rows = []
    for inertia, potential in columns:
        parts = [sp.expand(sp.simplify(x)) for x in (inertia, sp.diff(potential, q))]
        rows.append([x.as_independent(q, as_Add=True)[0] if b == 1 else x.coeff(b) for x in parts for b in basis])
        assert all(
            sp.simplify(x - r[0] - r[1] * basis[1] - r[2] * basis[2]) == 0
            for x, r in zip(parts, (rows[-1][:3], rows[-1][3:]), strict=True)
        )
    base = dynid.base_parameters(parallelogram())
    assert base.count == sp.Matrix(rows).rank() == 3
    assert base.expressions == ("Iyy_1 + 0.09 m_2 + Iyy_3", "mx_1 + 0.3 m_2 + mx_3", "mz_1 + mz_3")


@pytest.mark.slow
def test_four_bar_by_forty_digits():
    sp = pytest.importorskip("sympy")
    mp = pytest.importorskip("mpmath")
    robot = dynid.load_robot("fourbar").without("*")
    q = sp.symbols("q")
    crank, ground, coupler, rocker = (sp.Rational(x, 100) for x in (15, 50, 45, 35))
    dx, dz = ground - crank * sp.cos(q), crank * sp.sin(q)
    d = sp.sqrt(dx**2 + dz**2)
    first = sp.atan2(-dz, dx) - sp.acos((coupler**2 + d**2 - rocker**2) / (2 * coupler * d))
    ex, ez = crank * sp.cos(q) + coupler * sp.cos(first) - ground, -crank * sp.sin(q) - coupler * sp.sin(first)
    columns = _columns(sp, q, (crank, ground), (q, first, sp.atan2(-ez, ex)), sp.Rational(981, 100))
    functions = [
        sp.lambdify(q, sp.Matrix([m, sp.diff(m, q) / 2, sp.diff(V, q)]), "mpmath", cse=True) for m, V in columns
    ]
    with mp.workdps(40):
        W = mp.matrix(32, 12)
        for k in range(32):
            v, a = mp.mpf(k * 37 % 11 - 5), mp.mpf(k * 53 % 13 - 6)
            for j, f in enumerate(functions):
                m, slope, gravity = f(mp.mpf(k) / 9 - 2)
                W[k, j] = m * a + slope * v**2 + gravity
        singular = sorted((float(mp.log10(s + mp.mpf(10) ** -60)) for s in mp.svd_r(W, compute_uv=False)), reverse=True)
    count = sum(s > -20 for s in singular)
    assert min(s for s in singular if s > -20) > -6  # clearly independent
    assert max((s for s in singular if s <= -20), default=-40) < -30  # or zero to 40 digits
    assert dynid.base_parameters(robot).count == dynid.base_parameters(robot, method="pivoted").count == count == 8


@pytest.mark.parametrize("make", [lambda: dynid.load_robot("palletizer"), leg])
def test_structure_does_not_depend_on_seed_and_method(make):
    robot = make()
    base = dynid.base_parameters(robot)
    assert base.gap > 1e6
    assert dynid.base_parameters(robot, seed=7).kept == base.kept
    assert dynid.base_parameters(robot, method="pivoted").count == base.count
    # Loops add groupings: the tree has more base parameters.
    assert base.count < dynid.base_parameters(robot.tree).count
    q = robot.home + 0.1
    v = np.linspace(0.5, 1.0, robot.n)
    full = dynid.inverse_dynamics(robot, q, v, -v)
    assert base.regressor(q, v, -v) @ base.values() == pytest.approx(full, rel=1e-8)
