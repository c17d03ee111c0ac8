"""Other published methods for physically consistent parameters, on the same problem as the cone programs."""
