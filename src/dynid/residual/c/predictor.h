/* Torque of a robot with @N@ joints for a motion: rigid bodies, drives and a learned part.
 *
 * Joints in order: @COORDINATES@.
 * Plain C99 and math.h; no memory is allocated. The functions share static memory: call them from one thread.
 */
#ifndef @GUARD@
#define @GUARD@

#ifdef __cplusplus
extern "C" {
#endif

enum { @NAME@_joints = @N@ };

/* Torques tau from positions q, speeds v and accelerations a, one entry a joint, SI units.
 *
 * Returns 1, or 0 where an input is not finite: tau is then the rigid torque alone, with missing speeds and
 * accelerations taken as zero and missing positions as the last ones before. `deviation` is that of a measured torque
 * about tau (1 sigma), NaN where this predictor was made without variances; it may be a null pointer.
 */
int @NAME@_torque(const double q[], const double v[], const double a[], double tau[], double deviation[]);

/* Forget the last position. */
void @NAME@_reset(void);

#ifdef __cplusplus
}
#endif

#endif
