/* Torque of a robot with @N@ joints for a motion: rigid bodies, drives and a learned torque.
 *
 * Joints in order: @COORDINATES@.
@NOTES@ * Plain C99 and math.h; no memory is allocated. The functions share static memory: call them from one thread.
 */
#ifndef @GUARD@
#define @GUARD@

#ifdef __cplusplus
extern "C" {
#endif

enum { @NAME@_joints = @N@ };

/* Torques tau from positions q, velocities v and accelerations a, one entry per joint, SI units.
 *
 * Returns 1, or 0 if an input is not finite: tau is then the rigid torque alone, with missing velocities and
 * accelerations replaced by zero and missing positions by the last finite ones. `torque_std` receives the standard
 * deviation of a measured torque about tau, NaN if this predictor computes no variances; it may be a null pointer.
 */
int @NAME@_torque(const double q[], const double v[], const double a[], double tau[], double torque_std[]);

/* Reset the last position to the home position. */
void @NAME@_reset(void);

#ifdef __cplusplus
}
#endif

#endif
