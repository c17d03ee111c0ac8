"""C text of closed loops: the passive joints in closed form or by Newton steps, and what projects torques and matrices.

The iteration is that of `dynid.dynamics.kernels.assembly` with a bound on the number of its steps. `NAME_` stands for
the prefix of the macros; the sizes in capitals are constants that the source defines before these texts.
"""

__all__ = ["ASSEMBLE", "COLUMNS", "ITERATION", "MOTION", "POSITIVE", "PROJECT", "RATES", "SOLVER", "START", "TWO_BARS"]

SOLVER = """
/* Rows of the loops at a posture: residual, columns of the passive joints (orthonormal after factor), columns of the
   independent joints. The triangle belongs to the orthonormal columns; slopes: passive joint per independent joint. */
struct closure {
    double rows[(1 + JOINTS) * ROWS];
    double triangle[PASSIVE * PASSIVE];
    double slopes[PASSIVE * FREE];
};

static void copy(int count, const double *from, double *to)
{
    for (int i = 0; i < count; i++) {
        to[i] = from[i];
    }
}

static double product(const double *x, const double *y)
{
    double sum = 0.0;
    for (int r = 0; r < ROWS; r++) {
        sum += x[r] * y[r];
    }
    return sum;
}

/* Gram-Schmidt, done twice; 0 in a singular posture. */
static int factor(struct closure *w)
{
    for (int j = 0; j < PASSIVE; j++) {
        double *column = w->rows + (1 + j) * ROWS;
        const double whole = product(column, column);
        for (int i = 0; i < j; i++) {
            w->triangle[i * PASSIVE + j] = 0.0;
        }
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < j; i++) {
                const double *before = w->rows + (1 + i) * ROWS;
                const double share = product(before, column);
                w->triangle[i * PASSIVE + j] += share;
                for (int r = 0; r < ROWS; r++) {
                    column[r] -= share * before[r];
                }
            }
        }
        const double left = product(column, column);
        if (!(left > 1e-12 * whole)) {
            return 0;
        }
        const double size = sqrt(left);
        w->triangle[j * PASSIVE + j] = size;
        for (int r = 0; r < ROWS; r++) {
            column[r] /= size;
        }
    }
    return 1;
}

/* Motion x of the passive joints whose columns times x add up to -y, by least squares. */
static void solve(const struct closure *w, const double *y, double *x)
{
    for (int i = PASSIVE - 1; i >= 0; i--) {
        double sum = -product(w->rows + (1 + i) * ROWS, y);
        for (int j = i + 1; j < PASSIVE; j++) {
            sum -= w->triangle[i * PASSIVE + j] * x[j];
        }
        x[i] = sum / w->triangle[i * PASSIVE + i];
    }
}

/* Slopes at an assembled posture. */
static int tangent(struct closure *w, const double *joints)
{
    double x[PASSIVE];
    loop_rows(joints, w->rows);
    for (int r = 0; r < ROWS; r++) {
        if (!(fabs(w->rows[r]) <= 1e-9)) {
            return NAME_BROKEN;
        }
    }
    if (!factor(w)) {
        return NAME_SINGULAR;
    }
    for (int j = 0; j < FREE; j++) {
        solve(w, w->rows + (1 + PASSIVE + j) * ROWS, x);
        for (int i = 0; i < PASSIVE; i++) {
            w->slopes[i * FREE + j] = x[i];
        }
    }
    return NAME_CLOSED;
}
"""

ITERATION = """
static int newton(struct closure *w, double *joints)
{
    for (int k = 0; k < 12; k++) {
        double x[PASSIVE], size = 0.0;
        loop_rows(joints, w->rows);
        if (!factor(w)) {
            return NAME_SINGULAR;
        }
        solve(w, w->rows, x);
        for (int i = 0; i < PASSIVE; i++) {
            if (!(fabs(x[i]) < 1e3)) {
                return NAME_BROKEN;
            }
            joints[passive_joint[i]] += x[i];
            size = fmax(size, fabs(x[i]));
        }
        if (size <= 1e-7) { /* the next step would be below rounding */
            return NAME_CLOSED;
        }
    }
    return NAME_BROKEN;
}

/* Move from the posture to the target on a line, with the passive joints on their branch. A step follows the tangent;
   where its correction is large it is tried again with half the length, so that no step jumps to another branch. */
static int close_loops(const double *target, double *posture, struct closure *w)
{
    double old[JOINTS], joints[JOINTS], guess[PASSIVE], left = 0.0;
    copy(JOINTS, posture, old);
    copy(JOINTS, posture, joints);
    int status = tangent(w, old);
    if (status != NAME_CLOSED) {
        return status;
    }
    for (int j = 0; j < FREE; j++) {
        const double distance = fabs(target[j] - old[free_joint[j]]);
        if (!(distance <= 1e9)) {
            return NAME_FAR;
        }
        left = fmax(left, distance);
    }
    double length = fmin(0.2, left);
    for (int k = 0; k < NAME_STRIDES; k++) {
        const int last = left <= length;
        const double share = last ? 1.0 : length / left;
        double longest = 0.0, bend = 0.0;
        for (int j = 0; j < FREE; j++) {
            const int i = free_joint[j];
            joints[i] = last ? target[j] : old[i] + share * (target[j] - old[i]);
            longest = fmax(longest, fabs(joints[i] - old[i]));
        }
        for (int i = 0; i < PASSIVE; i++) {
            double sum = 0.0;
            for (int j = 0; j < FREE; j++) {
                sum += w->slopes[i * FREE + j] * (joints[free_joint[j]] - old[free_joint[j]]);
            }
            longest = fmax(longest, fabs(sum));
            guess[i] = old[passive_joint[i]] + sum;
            joints[passive_joint[i]] = guess[i];
        }
        status = newton(w, joints);
        for (int i = 0; i < PASSIVE; i++) {
            bend = fmax(bend, fabs(joints[passive_joint[i]] - guess[i]));
        }
        if (status == NAME_CLOSED && bend <= 0.25 * longest + 1e-7) {
            status = tangent(w, joints);
            if (status != NAME_CLOSED) {
                return status;
            }
            if (last) {
                copy(JOINTS, joints, posture);
                return NAME_CLOSED;
            }
            copy(JOINTS, joints, old);
            left -= share * left;
            length = fmin(0.2, 2.0 * length);
        } else {
            length = 0.5 * fmin(length, left);
            if (length < 1e-5) {
                return status == NAME_CLOSED ? NAME_SINGULAR : status;
            }
        }
    }
    return NAME_FAR;
}
"""

TWO_BARS = """
/* Both joints that turn two bars, from the vector between the fixed ends of the bars, the bars, and the angles by which
   other joints turn them; 0 where the bars do not meet. Angles are those closest to the ones before. */
static int two_bars(const double *bars, double branch, int serial, const double *signs, double *first, double *second)
{
    const double x = bars[0], y = bars[1], turn = 6.283185307179586;
    const double one = sqrt(bars[2] * bars[2] + bars[3] * bars[3]), two = sqrt(bars[4] * bars[4] + bars[5] * bars[5]);
    const double apart = sqrt(x * x + y * y);
    const double area = (one + two + apart) * (one + two - apart) * (apart + one - two) * (apart - one + two);
    if (!(area >= 0.0 && apart > 0.0)) {
        return 0;
    }
    const double along = 0.5 * (1.0 + (one - two) * (one + two) / (apart * apart));
    const double across = 0.5 * branch * sqrt(area) / (apart * apart);
    const double ax = along * x - across * y, ay = along * y + across * x, bx = ax - x, by = ay - y;
    const double alpha = atan2(bars[2] * ay - bars[3] * ax, bars[2] * ax + bars[3] * ay);
    const double beta = atan2(bars[4] * by - bars[5] * bx, bars[4] * bx + bars[5] * by);
    *first += remainder(signs[0] * (alpha - bars[6]) - *first, turn);
    *second += remainder(signs[1] * (beta - bars[7] - (serial ? alpha : 0.0)) - *second, turn);
    return 1;
}
"""

MOTION = """
/* Velocities of all joints for those of the independent ones. */
static void move_all(const struct closure *w, const double *x, double *all)
{
    for (int j = 0; j < FREE; j++) {
        all[free_joint[j]] = x[j];
    }
    for (int i = 0; i < PASSIVE; i++) {
        double sum = 0.0;
        for (int j = 0; j < FREE; j++) {
            sum += w->slopes[i * FREE + j] * x[j];
        }
        all[passive_joint[i]] = sum;
    }
}

/* Velocities and accelerations of all joints. */
static void move_joints(const struct closure *w, const double *joints, const double *v, const double *a,
                        double *joint_v, double *joint_a)
{
    double drift[ROWS], x[PASSIVE];
    move_all(w, v, joint_v);
    move_all(w, a, joint_a);
    loop_drift(joints, joint_v, drift);
    solve(w, drift, x);
    for (int i = 0; i < PASSIVE; i++) {
        joint_a[passive_joint[i]] += x[i];
    }
}
"""

START = """{
    copy(JOINTS, assembled, posture);
}
"""

ASSEMBLE = """{
    struct closure w;
    const int status = close_loops(q + BASE_Q, posture, &w);
    if (status != NAME_CLOSED) {
        return status;
    }
    move_joints(&w, posture, v + BASE, a + BASE, joint_v, joint_a);
    copy(PASSIVE * FREE, w.slopes, slopes);
    return NAME_CLOSED;
}
"""

PROJECT = """
/* Rows of the independent joints from those of all joints; the first rows, those of the base, stay as they are. */
static void project(const struct closure *w, int head, int count, const double *rows, double *out)
{
    copy(head * count, rows, out);
    for (int j = 0; j < FREE; j++) {
        double *to = out + (head + j) * count;
        copy(count, rows + (head + free_joint[j]) * count, to);
        for (int i = 0; i < PASSIVE; i++) {
            const double share = w->slopes[i * FREE + j];
            const double *from = rows + (head + passive_joint[i]) * count;
            for (int c = 0; share != 0.0 && c < count; c++) {
                to[c] += share * from[c];
            }
        }
    }
}
"""

COLUMNS = """
/* A matrix over the velocities of the tree, with its columns projected. */
static void columns(const struct closure *w, const double *matrix, double *half)
{
    for (int r = 0; r < TREE_NV; r++) {
        const double *row = matrix + r * TREE_NV;
        copy(BASE, row, half + r * NV);
        for (int j = 0; j < FREE; j++) {
            double sum = row[BASE + free_joint[j]];
            for (int i = 0; i < PASSIVE; i++) {
                sum += w->slopes[i * FREE + j] * row[BASE + passive_joint[i]];
            }
            half[r * NV + BASE + j] = sum;
        }
    }
}
"""

RATES = """
/* Add the mass matrix times the rate of the slopes. The drift g(v) is quadratic in v, so that column j of the rate
   is (g(v + e_j) - g(v - e_j)) / 4, without an error of differences. */
static void add_rates(const struct closure *w, const double *joints, const double *v, const double *mass, double *half)
{
    for (int j = 0; j < FREE; j++) {
        for (int side = -1; side <= 1; side += 2) {
            double moved[FREE], all[JOINTS], drift[ROWS], x[PASSIVE];
            copy(FREE, v, moved);
            moved[j] += side;
            move_all(w, moved, all);
            loop_drift(joints, all, drift);
            solve(w, drift, x);
            for (int r = 0; r < TREE_NV; r++) {
                for (int i = 0; i < PASSIVE; i++) {
                    half[r * NV + BASE + j] += 0.25 * side * mass[r * TREE_NV + BASE + passive_joint[i]] * x[i];
                }
            }
        }
    }
}
"""

POSITIVE = """
/* M = L L' in place; 0 where M is not positive definite. */
static int factor_positive(double *M)
{
    for (int k = 0; k < NV; k++) {
        for (int i = k; i < NV; i++) {
            double sum = M[i * NV + k];
            for (int j = 0; j < k; j++) {
                sum -= M[i * NV + j] * M[k * NV + j];
            }
            if (i == k && !(sum > 0.0)) {
                return 0;
            }
            M[i * NV + k] = i == k ? sqrt(sum) : sum / M[k * NV + k];
        }
    }
    return 1;
}

/* Solve L L' y = x in place. */
static void solve_positive(const double *L, double *x)
{
    for (int i = 0; i < NV; i++) {
        for (int j = 0; j < i; j++) {
            x[i] -= L[i * NV + j] * x[j];
        }
        x[i] /= L[i * NV + i];
    }
    for (int i = NV - 1; i >= 0; i--) {
        for (int j = i + 1; j < NV; j++) {
            x[i] -= L[j * NV + i] * x[j];
        }
        x[i] /= L[i * NV + i];
    }
}
"""
