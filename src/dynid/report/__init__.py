"""What people look at: terminal pages and figures."""
