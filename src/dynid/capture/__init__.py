"""Motion capture: marker files, force plates on one clock with the cameras, joint angles from markers."""
