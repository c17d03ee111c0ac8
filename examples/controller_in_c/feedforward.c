/* The feed-forward part of a controller: reads positions, velocities and accelerations of six joints, writes torques.
   arm.h and arm.c are generated; they need math.h alone and allocate nothing. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>

#include "arm.h"

#define JOINTS 6

int main(void)
{
    double x[3 * JOINTS], tau[JOINTS];
    double seconds = 0.0;
    long samples = 0;

    for (;;) {
        struct timespec begin, end;
        for (int i = 0; i < 3 * JOINTS; i++) {
            if (scanf("%lf", &x[i]) != 1) {
                if (i != 0 || samples == 0) {
                    fprintf(stderr, "the motion ends within a row\n");
                    return 1;
                }
                fprintf(stderr, "%ld samples, %.2f us each\n", samples, 1e6 * seconds / samples);
                return 0;
            }
        }
        clock_gettime(CLOCK_MONOTONIC, &begin);
        arm_inverse_dynamics(x, x + JOINTS, x + 2 * JOINTS, tau);
        clock_gettime(CLOCK_MONOTONIC, &end);
        seconds += (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
        for (int i = 0; i < JOINTS; i++)
            printf("%.17g%c", tau[i], i + 1 < JOINTS ? ' ' : '\n');
        samples++;
    }
}
