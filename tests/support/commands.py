"""The commands of the command line."""

from __future__ import annotations

from typing import Any


def leaves(group: Any, *before: str) -> dict[str, Any]:
    """Every command by its words, those of groups such as `human` included."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        words = (*before, name)
        found |= leaves(command, *words) if hasattr(command, "commands") else {" ".join(words): command}
    return found
