"""Cross products of twists and wrenches, linear part and force first.

For a twist (u, w), another twist (s, t) and a wrench (f, n):

    (u, w) x (s, t) = (w x s + u x t, w x t),    (u, w) x* (f, n) = (w x f, u x f + w x n).

Source: Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 2, where the angular part comes first.
"""

from dynid.dynamics.kernels.compiler import step
from dynid.dynamics.kernels.kinematics import cross


@step
def twist_cross(ux, uy, uz, wx, wy, wz, sx, sy, sz, tx, ty, tz):
    """(u, w) x (s, t): linear part w x s + u x t, angular part w x t."""
    ax, ay, az = cross(wx, wy, wz, sx, sy, sz)
    bx, by, bz = cross(ux, uy, uz, tx, ty, tz)
    cx, cy, cz = cross(wx, wy, wz, tx, ty, tz)
    return ax + bx, ay + by, az + bz, cx, cy, cz


@step
def wrench_cross(ux, uy, uz, wx, wy, wz, fx, fy, fz, nx, ny, nz):
    """(u, w) x* (f, n): force w x f, moment u x f + w x n."""
    ax, ay, az = cross(wx, wy, wz, fx, fy, fz)
    bx, by, bz = cross(ux, uy, uz, fx, fy, fz)
    cx, cy, cz = cross(wx, wy, wz, nx, ny, nz)
    return ax, ay, az, bx + cx, by + cy, bz + cz
