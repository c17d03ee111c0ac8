"""Sentences on what a model file holds and the robot read from it does not."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["chain_notes", "listed", "quoted"]


def listed(names: Sequence[str], most: int = 40) -> str:
    """Names in a message, cut where they are very many."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "none"


def quoted(word: str, names: Sequence[str], most: int = 6) -> str:
    """ "joint 'a'" or "joints 'a', 'b'", for a sentence."""
    return f"{word}{'s' if len(names) > 1 else ''} " + listed([f"'{name}'" for name in names], most)


def chain_notes(what: str, joints: Sequence[str], lost: Sequence[str]) -> list[str]:
    """Sentences on a ball or floating joint that became several joints, and on what acted on it as a whole."""
    out = [f"{what} became joints {', '.join(joints)}, singular where {joints[-2]} is 90 degrees"]
    if lost:
        out.append(f"the {', '.join(lost)} of {what} is not modeled: it acts on the rotation as a whole")
    return out
