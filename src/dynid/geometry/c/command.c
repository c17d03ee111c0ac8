/* Written by dynid; see @NAME@.h.
 *
 * Newton's method with @STEPS@ steps on the position of the tool, and on its orientation as far as the joints can.
 * Tables of the chain: one entry per joint from the base to the tool, with its errors. Tables of the bodies: one per
 * joint of the tree whose weight bends the chain. Placements are 3x4 matrices, row by row.
 */
#include "@NAME@.h"

#include <math.h>

enum { N = @N@, CHAIN = @CHAIN@, BODIES = @BODIES@, STEPS = @STEPS@, SIZE = N + 3, WHOLE = @WHOLE@ };
static const double damping = @DAMPING@, slack = @SLACK@, longest = @LONGEST@, near = @CLOSE@, small = 1e-4;

@TABLES@
typedef double Placement[12];

static void multiply(const double *a, const double *b, double *out)
{
    int i, j;
    for (i = 0; i < 3; i++)
        for (j = 0; j < 4; j++)
            out[4 * i + j] = a[4 * i] * b[j] + a[4 * i + 1] * b[4 + j] + a[4 * i + 2] * b[8 + j] +
                             (j == 3 ? a[4 * i + 3] : 0.0);
}

static void direction(const double *h, const double v[3], double out[3])
{
    int i;
    for (i = 0; i < 3; i++)
        out[i] = h[4 * i] * v[0] + h[4 * i + 1] * v[1] + h[4 * i + 2] * v[2];
}

static void cross_product(const double a[3], const double b[3], double out[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static double dot_product(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* A translation, then the rotation by a rotation vector. */
static void motion(const double shift[3], const double w[3], double out[12])
{
    const double k[9] = {0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0};
    const double angle = sqrt(dot_product(w, w));
    const double first = angle < small ? 1.0 - angle * angle / 6.0 : sin(angle) / angle;
    const double second = angle < small ? 0.5 - angle * angle / 24.0 : (1.0 - cos(angle)) / (angle * angle);
    int i, j;
    for (i = 0; i < 3; i++) {
        for (j = 0; j < 3; j++) {
            const double square = k[3 * i] * k[j] + k[3 * i + 1] * k[3 + j] + k[3 * i + 2] * k[6 + j];
            out[4 * i + j] = (i == j) + first * k[3 * i + j] + second * square;
        }
        out[4 * i + 3] = shift[i];
    }
}

static void joint_motion(const double axis[3], int slides, double position, double out[12])
{
    const double moved[3] = {axis[0] * position, axis[1] * position, axis[2] * position}, none[3] = {0, 0, 0};
    motion(slides ? moved : none, slides ? none : moved, out);
}

/* Moments of gravity about the axes of every joint of the bodies, or the force along a sliding one; joints are
   extra[j] further than they read. */
static void gravity_loads(const double q[N], const double extra[BODIES + 1], double load[BODIES + 1][3])
{
    Placement link[BODIES + 1], frame[BODIES + 1], moving, moved;
    double mass[BODIES + 1], first[BODIES + 1][3], turned[3], moment[3], axis[3];
    int i, b;
    for (i = 0; i < 12; i++)
        link[0][i] = i % 5 == 0;
    for (b = 0; b <= BODIES; b++) {
        if (b > 0) {
            const int j = b - 1, c = body_coordinate[j];
            multiply(link[body_parent[j]], body_placement + 12 * j, frame[j]);
            joint_motion(body_axes + 9 * j + 6, body_slides[j],
                         body_ratio[j] * (c < 0 ? 0.0 : q[c]) + body_offset[j] + extra[j], moving);
            multiply(frame[j], moving, moved);
            multiply(moved, body_mount + 12 * j, link[b]);
        }
        mass[b] = body_mass[b];
        direction(link[b], body_first + 3 * b, turned);
        for (i = 0; i < 3; i++)
            first[b][i] = mass[b] * link[b][4 * i + 3] + turned[i];
    }
    for (b = BODIES; b > 0; b--) {
        const int j = b - 1, p = body_parent[j];
        double lever[3];
        mass[p] += mass[b];
        for (i = 0; i < 3; i++) {
            first[p][i] += first[b][i];
            lever[i] = first[b][i] - mass[b] * frame[j][4 * i + 3];
        }
        cross_product(lever, gravity, moment);
        for (i = 0; i < 3; i++) {
            direction(frame[j], body_axes + 9 * j + 3 * i, axis);
            load[j][i] = i == 2 && body_slides[j] ? mass[b] * dot_product(axis, gravity) : dot_product(axis, moment);
        }
    }
}

/* Placement of the tool and its Jacobian, with all errors (share 1) or as in the file (share 0). */
static void place(const double q[N], double share, double tool[12], double jacobian[6][N])
{
    Placement at, next, shifted, moving;
    double load[BODIES + 1][3], extra[BODIES + 1] = {0}, axis[CHAIN][3], start[CHAIN][3], rate[CHAIN], more[CHAIN];
    const double none[3] = {0, 0, 0};
    int i, j;
    for (j = 0; j < CHAIN; j++) {
        const double *w = waves + 4 * j, reading = ratio[j] * q[coordinate[j]] + offset[j];
        const double s1 = sin(reading), c1 = cos(reading), s2 = sin(2 * reading), c2 = cos(2 * reading);
        more[j] = gear[j] * reading + zero[j] + w[0] * c1 + w[1] * s1 + w[2] * c2 + w[3] * s2;
        rate[j] = ratio[j] * (1 + share * (gear[j] - w[0] * s1 + w[1] * c1 - 2 * w[2] * s2 + 2 * w[3] * c2));
        if (BODIES > 0 && carried[j] >= 0)
            extra[carried[j]] = more[j];
    }
    if (BODIES > 0) {
        /* Where the joints are without load, and then deflected by the load there. */
        gravity_loads(q, extra, load);
        for (j = 0; j < CHAIN; j++)
            if (carried[j] >= 0)
                extra[carried[j]] += compliance[j] * load[carried[j]][2];
        gravity_loads(q, extra, load);
    }
    for (i = 0; i < 12; i++)
        at[i] = i % 5 == 0;
    for (j = 0; j < CHAIN; j++) {
        const double *m = carried[j] < 0 || BODIES == 0 ? none : load[carried[j]];
        const double reading = ratio[j] * q[coordinate[j]] + offset[j];
        double bend[3], move[3];
        for (i = 0; i < 3; i++) {
            move[i] = share * shift[3 * j + i];
            bend[i] = share * (turn[3 * j + i] + bending[2 * j] * m[0] * axes[9 * j + i] +
                               bending[2 * j + 1] * m[1] * axes[9 * j + 3 + i]);
        }
        multiply(at, placement + 12 * j, next);
        motion(move, bend, moving);
        multiply(next, moving, shifted);
        direction(shifted, axes + 9 * j + 6, axis[j]);
        for (i = 0; i < 3; i++)
            start[j][i] = shifted[4 * i + 3];
        joint_motion(axes + 9 * j + 6, slides[j], reading + share * (more[j] + compliance[j] * m[2]), moving);
        multiply(shifted, moving, next);
        multiply(next, mount + 12 * j, at);
    }
    multiply(at, on_link, tool);
    for (i = 0; i < 6; i++)
        for (j = 0; j < N; j++)
            jacobian[i][j] = 0.0;
    for (j = 0; j < CHAIN; j++) {
        double lever[3], moved[3];
        for (i = 0; i < 3; i++)
            lever[i] = tool[4 * i + 3] - start[j][i];
        cross_product(axis[j], lever, moved);
        for (i = 0; i < 3; i++) {
            jacobian[i][coordinate[j]] += rate[j] * (slides[j] ? axis[j][i] : moved[i]);
            jacobian[3 + i][coordinate[j]] += slides[j] ? 0.0 : rate[j] * axis[j][i];
        }
    }
}

/* Position and rotation vector from a placement to the wanted one. */
static void apart(const double wanted[12], const double tool[12], double error[6])
{
    double m[9], size, angle;
    int i, j;
    for (i = 0; i < 3; i++) {
        error[i] = wanted[4 * i + 3] - tool[4 * i + 3];
        for (j = 0; j < 3; j++)
            m[3 * i + j] = wanted[4 * i] * tool[4 * j] + wanted[4 * i + 1] * tool[4 * j + 1] +
                           wanted[4 * i + 2] * tool[4 * j + 2];
    }
    error[3] = 0.5 * (m[7] - m[5]);
    error[4] = 0.5 * (m[2] - m[6]);
    error[5] = 0.5 * (m[3] - m[1]);
    size = sqrt(dot_product(error + 3, error + 3));
    angle = atan2(size, 0.5 * (m[0] + m[4] + m[8] - 1.0));
    for (i = 3; i < 6 && size > 1e-12; i++)
        error[i] *= angle / size;
}

/* Solve a system in place, with row pivots. */
static void solve(double a[SIZE][SIZE], double x[SIZE])
{
    int i, j, k, p;
    for (k = 0; k < SIZE; k++) {
        for (p = k, i = k + 1; i < SIZE; i++)
            if (fabs(a[i][k]) > fabs(a[p][k]))
                p = i;
        for (j = k; j < SIZE; j++) {
            const double t = a[k][j];
            a[k][j] = a[p][j];
            a[p][j] = t;
        }
        {
            const double t = x[k];
            x[k] = x[p];
            x[p] = t;
        }
        for (i = k + 1; i < SIZE; i++) {
            const double f = a[i][k] / a[k][k];
            for (j = k; j < SIZE; j++)
                a[i][j] -= f * a[k][j];
            x[i] -= f * x[k];
        }
    }
    for (k = SIZE - 1; k >= 0; k--) {
        for (j = k + 1; j < SIZE; j++)
            x[k] -= a[k][j] * x[j];
        x[k] /= a[k][k];
    }
}

static int search(const double wanted[12], double q[N])
{
    double tool[12], jacobian[6][N], error[6], a[SIZE][SIZE], x[SIZE];
    int step, i, j, k;
    for (step = 0;; step++) {
        double most = 0.0;
        place(q, 1.0, tool, jacobian);
        apart(wanted, tool, error);
        if (step == STEPS)
            break;
        for (i = 0; i < SIZE; i++)
            for (j = 0; j < SIZE; j++)
                a[i][j] = 0.0;
        for (i = 0; i < N; i++) {
            x[i] = 0.0;
            for (k = 3; k < 6; k++)
                x[i] += jacobian[k][i] * error[k];
            for (j = 0; j < N; j++) {
                for (k = 3; k < 6; k++)
                    a[i][j] += jacobian[k][i] * jacobian[k][j];
            }
            a[i][i] += damping;
            for (k = 0; k < 3; k++)
                a[i][N + k] = a[N + k][i] = jacobian[k][i];
        }
        for (k = 0; k < 3; k++) {
            a[N + k][N + k] = -slack;
            x[N + k] = error[k];
        }
        solve(a, x);
        for (i = 0; i < N; i++)
            most = fmax(most, fabs(x[i]));
        for (i = 0; i < N; i++)
            q[i] += most > longest ? x[i] * longest / most : x[i];
    }
    return sqrt(dot_product(error, error)) <= near && (!WHOLE || sqrt(dot_product(error + 3, error + 3)) <= near);
}

int @NAME@(const double q[N], double command[N])
{
    double wanted[12], jacobian[6][N];
    int i;
    place(q, 0.0, wanted, jacobian);
    for (i = 0; i < N; i++)
        command[i] = q[i];
    return search(wanted, command);
}

int @NAME@_pose(const double wanted[16], const double start[N], double command[N])
{
    int i;
    for (i = 0; i < N; i++)
        command[i] = start[i];
    return search(wanted, command);
}

void @NAME@_place(const double q[N], double tool[16])
{
    double jacobian[6][N];
    int i;
    place(q, 1.0, tool, jacobian);
    for (i = 12; i < 16; i++)
        tool[i] = i == 15;
}
