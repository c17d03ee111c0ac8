"""Colors of bodies by how well a motion has shown them: one scale for the terminal and for drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table

    from dynid.excitation.live import LiveScore

__all__ = ["UNKNOWN", "color_of", "score_table"]

# From well known to not known at all; shades that eyes without red or green tell apart, too.
_SCALE = ("#0072b2", "#56b4e9", "#f0e442", "#e69f00", "#d55e00")
# Of bodies without a base parameter of their own.
UNKNOWN = "#9a9a9a"
_BAR = 20


def color_of(share: float, target: float) -> str:
    """The color of a share of the a-priori uncertainty that is left: blue up to the target, red at 1."""
    place = np.log(max(share, 1e-300) / target) / np.log(1.0 / target)
    return _SCALE[int(np.clip(np.ceil(place * (len(_SCALE) - 1)), 0, len(_SCALE) - 1))]


def score_table(score: LiveScore) -> Table:
    """A table of the bodies, the least known first; the bar is what is left of the uncertainty, in its color."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"{score.samples} samples, {score.time:.1f} s")
    for name in ("segment", "known", "of", "relative std %", "left to learn"):
        table.add_column(name, justify="left" if name in ("segment", "left to learn") else "right")
    for x in score.segments:
        filled = int(np.ceil(_BAR * min(x.relative_std / 100, 1.0)))
        bar = Text("\u2588" * filled + "\u2591" * (_BAR - filled), style=color_of(x.relative_std / 100, score.target))
        table.add_row(x.name, str(x.known), str(x.count), f"{x.relative_std:.1f}", bar)
    return table
