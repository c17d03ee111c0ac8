"""Models out: URDF and MJCF."""
