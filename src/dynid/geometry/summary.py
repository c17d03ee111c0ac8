"""An identified geometry as text."""

from __future__ import annotations

import numpy as np

from dynid.geometry.estimate import GeometryEstimate, HeldOut
from dynid.terminal import rendered, table_of

__all__ = ["estimate_text", "held_out_line", "largest_errors"]

# Units in which people read geometric errors.
_SHOWN = {"m": (1e3, "mm"), "rad": (180 / np.pi, "deg")}
# Unknowns that the summary names, those first that differ most from the file.
_NAMED = 8


def estimate_text(found: GeometryEstimate) -> str:
    """Errors before and after, the sensors, and the largest differences from the file."""
    lines = [f"geometry of {found.robot.name}: {found.rank} combinations shown"]
    if found.held_out is not None:
        lines.append(held_out_line(found.held_out))
    for s in found.sensors:
        aside = f", {len(s.set_aside)} set aside" if s.set_aside else ""
        lines.append(
            f"  {s.name}: {s.postures} postures of {s.frame}{aside}, "
            f"{1e3 * s.before:.3g} -> {1e3 * s.after:.3g} mm in the fit (root mean square)"
        )
    lines += [f"note: {note}" for note in found.notes]
    return "\n".join(lines) + "\n" + largest_errors(found)


def largest_errors(found: GeometryEstimate) -> str:
    """The unknowns of joints that differ most from the file, in standard deviations, as a table."""
    count = found.joint_count
    ratio = np.abs(found.values[:count]) / found.std[:count]
    table = table_of("largest differences from the file", "unknown", "value", "std", "")
    for k in np.argsort(-ratio, kind="stable")[:_NAMED]:
        scale, unit = _SHOWN.get(found.unknowns[k].unit, (1.0, found.unknowns[k].unit))
        value, std = scale * found.values[k], scale * found.std[k]
        table.add_row(found.unknowns[k].name, f"{value:.4g}", f"{std:.2g}", unit)
    return rendered(table)


def held_out_line(held: HeldOut) -> str:
    """Errors at postures left out, before and after."""
    (mean, mean_after), (most, most_after) = held.mean, held.largest
    return (
        f"  error at {held.by} left out: mean {1e3 * mean:.3g} -> {1e3 * mean_after:.3g} mm, "
        f"95 % below {1e3 * most:.3g} -> {1e3 * most_after:.3g} mm"
    )
