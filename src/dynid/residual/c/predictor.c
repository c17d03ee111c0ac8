/* Written by dynid; see @NAME@.h.
 *
@NOTES@ * The constants and tables come first. A joint's learned torque has a kernel, a sum of parts, and blocks of points with
 * weights, one or several local ones; blocks with the same points form a set. A *_start table gives where the share of
 * each item in another table begins, with the end of the last one behind.
 */
#include "@NAME@.h"

#include <math.h>
#include <stddef.h>

enum { N = @N@, D = @D@, JOINTS = @JOINTS@, TERMS = @TERMS@, SETS = @SETS@, BLOCKS = @BLOCKS@ };
enum { WEIGHTS = @WEIGHTS@ };
@CONSTANTS@

@TABLES@
/* Intermediate results of one sample. Body 0 is the base. */
static double motion[3][N];
static double last[N] = {@HOME@};
static double R[JOINTS + 1][9], P[JOINTS + 1][3], V[JOINTS + 1][6], A[JOINTS + 1][6], F[JOINTS + 1][6];
static double J[JOINTS + 1][6];
static double x[D], squares[D][CHUNK], distance[CHUNK], k[WEIGHTS + 1];
static double part[BLOCKS + 1], mean[BLOCKS + 1], r[D + 1];

static void cross_product(const double a[3], const double b[3], double out[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static void rotate(const double m[9], const double u[3], double out[3])
{
    int i;
    for (i = 0; i < 3; i++)
        out[i] = m[3 * i] * u[0] + m[3 * i + 1] * u[1] + m[3 * i + 2] * u[2];
}

static void unrotate(const double m[9], const double u[3], double out[3])
{
    int i;
    for (i = 0; i < 3; i++)
        out[i] = m[i] * u[0] + m[3 + i] * u[1] + m[6 + i] * u[2];
}

/* Rotation, position, twist and acceleration less gravity of every body, twist of every joint, in base coordinates. */
static void place_and_move(const double q[N], const double v[N], const double a[N])
{
    int i, l, j;
    for (i = 0; i < 9; i++)
        R[0][i] = i % 4 == 0;
    for (i = 0; i < 3; i++)
        P[0][i] = 0.0;
    for (i = 0; i < 6; i++) {
        V[0][i] = 0.0;
        A[0][i] = i < 3 ? -gravity[i] : 0.0;
    }
    for (j = 0; j < JOINTS; j++) {
        const int p = parent[j], b = j + 1;
        const double angle = ratio[j] * q[coordinate[j]] + offset[j], s = sin(angle), c = cos(angle);
        const double rate = ratio[j] * v[coordinate[j]], gain = ratio[j] * a[coordinate[j]];
        const double *m = rotation + 27 * j, *t = position + 12 * j, *S = subspace + 6 * j;
        double own[9], shift[3], moved[6], c1[3], c2[3], c3[3];
        for (i = 0; i < 9; i++)
            own[i] = m[i] + s * m[9 + i] + c * m[18 + i];
        for (i = 0; i < 3; i++)
            shift[i] = t[i] + s * t[3 + i] + c * t[6 + i] + angle * t[9 + i];
        for (i = 0; i < 3; i++)
            for (l = 0; l < 3; l++)
                R[b][3 * i + l] = R[p][3 * i] * own[l] + R[p][3 * i + 1] * own[3 + l] + R[p][3 * i + 2] * own[6 + l];
        rotate(R[p], shift, P[b]);
        for (i = 0; i < 3; i++)
            P[b][i] += P[p][i];
        rotate(R[b], S, J[j]);
        rotate(R[b], S + 3, J[j] + 3);
        cross_product(P[b], J[j] + 3, c1);
        for (i = 0; i < 3; i++)
            J[j][i] += c1[i];
        for (i = 0; i < 6; i++)
            moved[i] = rate * J[j][i];
        cross_product(V[p] + 3, moved, c1);
        cross_product(V[p], moved + 3, c2);
        cross_product(V[p] + 3, moved + 3, c3);
        for (i = 0; i < 3; i++) {
            V[b][i] = V[p][i] + moved[i];
            V[b][3 + i] = V[p][3 + i] + moved[3 + i];
            A[b][i] = A[p][i] + gain * J[j][i] + c1[i] + c2[i];
            A[b][3 + i] = A[p][3 + i] + gain * J[j][3 + i] + c3[i];
        }
    }
}

/* Newton-Euler for body b, its wrench moved to the base: f = m d + a x h + w x (w x h), n = I a + w x I w + h x d. */
static void body_wrench(int b)
{
    const double *in = inertia + 10 * b, *h = in + 1;
    const double I[9] = {in[4], in[5], in[7], in[5], in[6], in[8], in[7], in[8], in[9]};
    double u[3], c1[3], c2[3], c3[3], w[3], alpha[3], d[3], f[3], n[3];
    int i;
    cross_product(V[b] + 3, P[b], u);
    for (i = 0; i < 3; i++)
        u[i] += V[b][i];
    cross_product(A[b] + 3, P[b], c1);
    cross_product(V[b] + 3, u, c2);
    for (i = 0; i < 3; i++)
        u[i] = A[b][i] + c1[i] + c2[i];
    unrotate(R[b], u, d);
    unrotate(R[b], A[b] + 3, alpha);
    unrotate(R[b], V[b] + 3, w);
    cross_product(w, h, u);
    cross_product(w, u, c1);
    cross_product(alpha, h, c2);
    for (i = 0; i < 3; i++)
        f[i] = in[0] * d[i] + c2[i] + c1[i];
    rotate(I, w, u);
    cross_product(w, u, c1);
    cross_product(h, d, c2);
    rotate(I, alpha, c3);
    for (i = 0; i < 3; i++)
        n[i] = c3[i] + c1[i] + c2[i];
    rotate(R[b], f, F[b]);
    rotate(R[b], n, F[b] + 3);
    cross_product(P[b], F[b], c1);
    for (i = 0; i < 3; i++)
        F[b][3 + i] += c1[i];
}

static void add_rigid(double tau[N])
{
    int b, i, j;
    for (b = 0; b <= JOINTS; b++) {
        for (i = 0; i < 6; i++)
            F[b][i] = 0.0;
        if (massive[b])
            body_wrench(b);
    }
    for (j = JOINTS - 1; j >= 0; j--) {
        double power = 0.0;
        for (i = 0; i < 6; i++) {
            power += J[j][i] * F[j + 1][i];
            F[parent[j]][i] += F[j + 1][i];
        }
        tau[coordinate[j]] += ratio[j] * power;
    }
}

static double effort(int t, double s)
{
    const double low = kind[t] != TERM_COULOMB_POSITIVE ? -1.0 : 0.0, high = kind[t] != TERM_COULOMB_NEGATIVE ? 1.0 : 0.0;
    const double faded = kind[t] == TERM_STRIBECK ? exp(-(s / rest[t]) * (s / rest[t])) : 1.0;
    switch (kind[t]) {
    case TERM_STRIBECK:
    case TERM_COULOMB:
    case TERM_COULOMB_POSITIVE:
    case TERM_COULOMB_NEGATIVE:
        if (slope[t] > 0.0)
            return faded * (0.5 * (high + low) + 0.5 * (high - low) * tanh(slope[t] * s));
        return faded * (s > 0.0 ? high : (s < 0.0 ? low : 0.0));
    case TERM_VISCOUS_POSITIVE:
        return s > 0.0 ? s : 0.0;
    case TERM_VISCOUS_NEGATIVE:
        return s < 0.0 ? s : 0.0;
    default:
        return s;
    }
}

/* A shaft moves with s = d . motion; the torque of a term is value d effort(s), of cross terms only the coupling. */
static void add_drives(double tau[N])
{
    int t, i;
    for (t = 0; t < TERMS; t++) {
        const double *from = motion[kind[t] == TERM_SPRING ? 0 : (kind[t] == TERM_INERTIA ? 2 : 1)];
        double s = 0.0;
        for (i = term_start[t]; i < term_start[t + 1]; i++)
            s += term_weight[i] * from[term_joint[i]];
        if (kind[t] == TERM_SPRING)
            s -= rest[t];
        if (kind[t] == TERM_OFFSET)
            s = 1.0;
        for (i = term_start[t]; i < term_start[t + 1]; i++) {
            const double d = term_weight[i];
            const double e = cross[t] ? s - d * from[term_joint[i]] : effort(t, s);
            tau[term_joint[i]] += value[t] * d * e;
        }
    }
}

static void features(void)
{
    int j, c = 0;
    for (j = 0; j < N; j++) {
        if (periodic[j]) {
            x[c++] = sin(motion[0][j]);
            x[c++] = cos(motion[0][j]);
        } else {
            x[c++] = motion[0][j];
        }
    }
    for (j = 0; j < N; j++) {
        x[c + j] = motion[1][j];
        x[c + N + j] = motion[2][j];
        x[c + 2 * N + j] = tanh(motion[1][j] / velocity_scale[j]);
    }
    for (c = 0; c < D; c++)
        x[c] = (x[c] - center[c]) / scale[c];
}

/* Weights of the blocks of joint j at a query: the nearest ones share it. */
static void divide(int j)
{
    const int first = block_start[j], end = block_start[j + 1], p = part_start[j];
    double nearest = INFINITY, least = 0.0, total = 0.0;
    int b, i, other;
    if (end - first <= 1) {
        if (end > first)
            part[first] = 1.0;
        return;
    }
    for (b = first; b < end; b++) {
        mean[b] = 0.0;
        for (i = column_start[p]; i < column_start[p + 1]; i++) {
            const double gap = x[column[i]] - block_center[b * D + column[i]];
            mean[b] += inverse_squared_length[i] * gap * gap;
        }
        if (mean[b] < nearest)
            nearest = mean[b];
    }
    for (b = first; b < end; b++)
        mean[b] = exp(-0.5 * (mean[b] - nearest));
    for (b = first; end - first > NEIGHBOURS && b < end; b++) {
        int ahead = 0;
        for (other = first; other < end; other++)
            ahead += mean[other] > mean[b] || (mean[other] == mean[b] && other < b);
        if (ahead == NEIGHBOURS)
            least = mean[b];
    }
    for (b = first; b < end; b++) {
        part[b] = mean[b] > least ? mean[b] - least : 0.0;
        total += part[b];
    }
    for (b = first; b < end; b++)
        part[b] = total > 0.0 ? part[b] / total : 1.0 / (end - first);
}

/* Covariances of block b to some points of its set, from squared differences of all columns. */
static void covariances(int b, int low, int count)
{
    double *out = k + weight_start[b] + low;
    int p, e, i;
    for (i = 0; i < count; i++)
        out[i] = 0.0;
    for (p = part_start[joint[b]]; p < part_start[joint[b] + 1]; p++) {
        for (i = 0; i < count; i++)
            distance[i] = 0.0;
        for (e = column_start[p]; e < column_start[p + 1]; e++) {
            const double c = inverse_squared_length[e], *square = squares[column[e]];
            for (i = 0; i < count; i++)
                distance[i] += c * square[i];
        }
        for (i = 0; i < count; i++) {
            const double s = distance[i];
            double g;
            if (shape[p] == SHAPE_SE) {
                g = exp(-0.5 * s);
            } else if (shape[p] == SHAPE_MATERN32) {
                const double u = sqrt(3.0 * s);
                g = (1.0 + u) * exp(-u);
            } else if (shape[p] == SHAPE_MATERN52) {
                const double u = sqrt(5.0 * s);
                g = (1.0 + u + u * u / 3.0) * exp(-u);
            } else if (shape[p] == SHAPE_EXPONENTIAL) {
                g = exp(-sqrt(s));
            } else {
                g = exp(-power[p] * log1p(s / (2.0 * power[p])));
            }
            out[i] += amplitude[p] * g;
        }
    }
}

static void set_means(int set)
{
    const int size = set_size[set], first = set_block_start[set], end = set_block_start[set + 1];
    int active = 0, low, e, i;
    for (e = first; e < end; e++) {
        mean[set_block[e]] = 0.0;
        active = active || part[set_block[e]] > 0.0;
    }
    for (low = 0; active && low < size; low += CHUNK) {
        const int count = size - low < CHUNK ? size - low : CHUNK;
        const double *z = points + set_point_start[set] + low;
        for (e = set_column_start[set]; e < set_column_start[set + 1]; e++, z += size) {
            const double at = x[set_column[e]];
            double *square = squares[set_column[e]];
            for (i = 0; i < count; i++)
                square[i] = (z[i] - at) * (z[i] - at);
        }
        for (e = first; e < end; e++) {
            const int b = set_block[e], start = weight_start[b] + low;
            if (part[b] > 0.0) {
                covariances(b, low, count);
                for (i = 0; i < count; i++)
                    mean[b] += weights[start + i] * k[start + i];
            }
        }
    }
}

static double basis(int i)
{
    return i > 0 ? x[i - 1] : 1.0;
}

/* Posterior variance of block b, from its prior variance. */
static double block_variance(int b, double left)
{
    const int first = weight_start[b], end = weight_start[b + 1];
    const int count = coefficient_start[b + 1] - coefficient_start[b];
    const double *f = factors + factor_start[b], *root = basis_root + basis_root_start[b];
    int i, l;
    for (i = 0; i < rows[b]; i++) {
        double y = 0.0;
        for (l = first + (triangular[b] ? i : 0); l < end; l++)
            y += *f++ * k[l];
        left -= y * y;
    }
    for (i = 0; i < count; i++) {
        r[i] = basis(i);
        for (l = first; l < end; l++)
            r[i] -= *f++ * k[l];
    }
    for (l = 0; l < count; l++) {
        double y = 0.0;
        for (i = 0; i < count; i++)
            y += root[i * count + l] * r[i];
        left += y * y;
    }
    return left > 0.0 ? left : 0.0;
}

/* Share of the learned torque that is used. */
static double faded(double uncertainty)
{
    const double whole = blend[0], gone = blend[1];
    double share;
    if (whole == gone)
        return uncertainty <= whole ? 1.0 : 0.0;
    share = (gone - uncertainty) / (gone - whole);
    return share < 0.0 ? 0.0 : (share > 1.0 ? 1.0 : share);
}

/* 1 where the positions in joint j's kernel are within the range of the training data, falling to 0 beyond. */
static double inside(int j)
{
    double beyond = 0.0;
    int c;
    for (c = 0; c < D; c++) {
        const double under = low[c] - x[c], over = x[c] - high[c], out = edge[j * D + c] * (under > over ? under : over);
        if (out > beyond)
            beyond = out;
    }
    return beyond < 1.0 ? 1.0 - beyond : 0.0;
}

/* Learned torque of joint j from its blocks, and the standard deviation of a measurement. */
static double learned(int j, double *torque_std)
{
    const int first = block_start[j], end = block_start[j + 1], direction = noise_column[j];
    const double unit = output_scale[j] * output_scale[j];
    double total = 0.0, left = 0.0, second = 0.0, share = inside(j) * trust[j], log_noise = 2.0 * noise[2 * j];
    int b, i;
    *torque_std = flags[HAS_VARIANCE] ? 0.0 : NAN;
    if (first == end)
        return 0.0;
    for (b = first; b < end; b++) {
        double y = mean[b];
        if (!(part[b] > 0.0))
            continue;
        for (i = 0; i < coefficient_start[b + 1] - coefficient_start[b]; i++)
            y += coefficients[coefficient_start[b] + i] * basis(i);
        y *= output_scale[j];
        total += part[b] * y;
        if (flags[HAS_VARIANCE]) {
            left = unit * block_variance(b, prior_variance[j]);
            second += part[b] * (left + y * y);
        }
    }
    if (flags[HAS_VARIANCE]) {
        if (end - first > 1)
            left = second - total * total;
        share *= faded(left / (unit * prior_variance[j]));
        if (direction >= 0) {
            const double s = x[direction] * scale[direction] + center[direction];
            log_noise += 2.0 * noise[2 * j + 1] * (1.0 - s * s);
        }
        *torque_std = sqrt(variance_factor[j] * (left + unit * exp(log_noise)));
    }
    total *= share;
    return total > bound[j] ? bound[j] : (total < -bound[j] ? -bound[j] : total);
}

int @NAME@_torque(const double q[], const double v[], const double a[], double tau[], double torque_std[])
{
    int j, set, valid = 1;
    for (j = 0; j < N; j++) {
        if (isfinite(q[j]))
            last[j] = q[j];
        valid = valid && isfinite(q[j]) && isfinite(v[j]) && isfinite(a[j]);
        motion[0][j] = last[j];
        motion[1][j] = isfinite(v[j]) ? v[j] : 0.0;
        motion[2][j] = isfinite(a[j]) ? a[j] : 0.0;
    }
    for (j = 0; j < N; j++)
        tau[j] = 0.0;
    if (flags[HAS_RIGID]) {
        place_and_move(motion[0], motion[1], motion[2]);
        add_rigid(tau);
        add_drives(tau);
    }
    features();
    for (j = 0; j < N; j++)
        divide(j);
    for (set = 0; set < SETS; set++)
        set_means(set);
    for (j = 0; j < N; j++) {
        double joint_std;
        const double y = learned(j, &joint_std);
        if (valid)
            tau[j] += y;
        if (torque_std != NULL)
            torque_std[j] = joint_std;
    }
    return valid;
}

void @NAME@_reset(void)
{
    int j;
    for (j = 0; j < N; j++)
        last[j] = home[j];
}
