"""What the machine is: bodies, joints, drives, and the files they come from."""
