"""Kinds of causes: each module holds records of what is searched for, with its codes."""
