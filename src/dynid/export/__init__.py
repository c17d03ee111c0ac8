"""Models out: URDF."""
