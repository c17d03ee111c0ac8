"""Operation counts of generated functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from dynid.codegen.graph import Node, reachable

__all__ = ["Operations", "count_operations"]


@dataclass(frozen=True)
class Operations:
    """Operations of one evaluation. A subtraction is an addition; changes of sign that none absorbs stand alone."""

    additions: int = 0
    multiplications: int = 0
    divisions: int = 0
    sines: int = 0
    signs: int = 0
    tanh: int = 0
    exponentials: int = 0
    negations: int = 0

    @property
    def total(self) -> int:
        """Additions, multiplications and divisions."""
        return self.additions + self.multiplications + self.divisions

    def __add__(self, other: Operations) -> Operations:
        return Operations(*(getattr(self, x.name) + getattr(other, x.name) for x in fields(self)))

    def __str__(self) -> str:
        words = [f"{self.additions} additions", f"{self.multiplications} multiplications"]
        more = {
            "divisions": self.divisions,
            "sines and cosines": self.sines,
            "signs": self.signs,
            "tanh": self.tanh,
            "exponentials": self.exponentials,
            "changes of sign": self.negations,
        }
        return ", ".join(words + [f"{n} {what}" for what, n in more.items() if n])


_FIELD = {
    "add": "additions",
    "sub": "additions",
    "mul": "multiplications",
    "div": "divisions",
    "sin": "sines",
    "cos": "sines",
    "sign": "signs",
    "step": "signs",
    "ramp": "signs",
    "tanh": "tanh",
    "exp": "exponentials",
    "neg": "negations",
}


def count_operations(outputs: Sequence[Node]) -> Operations:
    """Operations of everything the outputs need, each shared expression once."""
    counts = dict.fromkeys(_FIELD.values(), 0)
    for node in reachable(outputs):
        if node.kind in _FIELD:
            counts[_FIELD[node.kind]] += 1
    return Operations(**counts)
