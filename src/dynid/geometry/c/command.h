/* Written by dynid: postures to command so that the tool of the real robot is where it should be.
 *
 * Robot: @ROBOT@; tool: @FRAME@; joints in this order: @COORDINATES@.
 * SI units; placements are 4x4 matrices, row by row. No function allocates memory or keeps a state.
 */
#ifndef @GUARD@
#define @GUARD@

#ifdef __cplusplus
extern "C" {
#endif

enum { @GUARD@_JOINTS = @N@ };

/* Posture to command for a posture q of the robot in its file; 1 if the real tool gets where it should be, else 0. */
int @NAME@(const double q[@N@], double command[@N@]);

/* The same for a wanted placement of the tool in the base, searched from a posture near by. */
int @NAME@_pose(const double wanted[16], const double start[@N@], double command[@N@]);

/* Placement of the real tool in the base. */
void @NAME@_place(const double q[@N@], double tool[16]);

#ifdef __cplusplus
}
#endif

#endif
