/* Inverse dynamics of the 2-joint example robot of Sousa (2014), section 7.1.3, from the formulas printed there.
 * Parameters in its order: Lxx Lxy Lxz Lyy Lyz Lzz lx ly lz m fv fc of link 1, then of link 2. */

#include <math.h>

void printed_inverse_dynamics(const double *q, const double *v, const double *a, const double *p, double *tau);

static double sign(double x)
{
    return (double)((x > 0.0) - (x < 0.0));
}

void printed_inverse_dynamics(const double *q, const double *v, const double *a, const double *p, double *tau)
{
    const double s = sin(q[1]), c = cos(q[1]), g = 9.81;
    const double w_z = s * v[0], w_x = c * v[0];
    const double rate_z = v[1] * w_x + s * a[0], rate_x = c * a[0] - v[1] * w_z;
    const double along_y = v[1] * p[15] + p[13] * w_x + p[16] * w_z;
    const double along_z = v[1] * p[16] + p[14] * w_x + p[17] * w_z;
    const double along_x = v[1] * p[13] + p[12] * w_x + p[14] * w_z;
    const double about_x = a[1] * p[13] + v[1] * along_z + p[12] * rate_x + p[14] * rate_z + p[19] * g * s - along_y * w_z;
    const double about_z = -a[1] * p[16] + v[1] * along_x - p[14] * rate_x - p[17] * rate_z + p[19] * g * c - w_x * along_y;
    tau[0] = v[0] * p[10] + p[11] * sign(v[0]) + p[3] * a[0] + c * about_x - s * about_z;
    tau[1] = a[1] * p[15] + v[1] * p[22] + p[13] * rate_x + p[16] * rate_z - p[18] * g * s + p[20] * g * c
             + p[23] * sign(v[1]) - along_z * w_x + along_x * w_z;
}
