"""Other ways to a possible robot, on the same problem as the cone programs: what they find, and at what price."""
