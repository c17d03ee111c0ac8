"""Which robots are possible: constraint sets, cone programs, and the questions asked of them."""
