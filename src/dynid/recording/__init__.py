"""What a robot did: recordings, the files they come from, and checks that speak plainly."""
