"""Labels of axes: what is drawn, and its unit."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["SIGNALS", "axis_label", "signal_groups", "signal_label"]

# Name of each signal and its unit, for a joint that rotates and for one that translates.
SIGNALS: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "q": (("position", "rad"), ("position", "m")),
    "v": (("velocity", "rad/s"), ("velocity", "m/s")),
    "a": (("acceleration", "rad/s2"), ("acceleration", "m/s2")),
    "torque": (("torque", "N m"), ("force", "N")),
    "current": (("current", "A"), ("current", "A")),
    "reference": (("reference", "rad"), ("reference", "m")),
    "link_q": (("link position", "rad"), ("link position", "m")),
}


def axis_label(name: str, unit: str) -> str:
    """Name and unit as an axis shows them: "acceleration (rad/s²)"; a number without unit is marked as such."""
    return f"{name} ({unit.replace('2', '²') if unit else '-'})"


def signal_label(signal: str, prismatic: bool | None) -> str:
    """Label of the axis of a signal of joints; both units where it is not known how the joints move."""
    (name, unit), (linear_name, linear_unit) = SIGNALS[signal]
    if prismatic is None and unit != linear_unit:
        both = name if name == linear_name else f"{name} or {linear_name}"
        return axis_label(both, f"{unit} or {linear_unit}")
    return axis_label(linear_name, linear_unit) if prismatic else axis_label(name, unit)


def signal_groups(signal: str, prismatic: Sequence[bool] | None, chosen: Sequence[int]) -> list[tuple[str, list[int]]]:
    """Joints that share an axis: the label of the axis and the numbers of the joints, by unit.

    Parameters
    ----------
    signal : str
        One of `SIGNALS`.
    prismatic : sequence of bool or None
        Whether each joint of the robot is prismatic; None where that is not known.
    chosen : sequence of int
        Numbers of the joints that are drawn.
    """
    if prismatic is None:
        return [(signal_label(signal, None), list(chosen))]
    groups: dict[str, list[int]] = {}
    for j in chosen:
        groups.setdefault(signal_label(signal, prismatic[j]), []).append(j)
    return list(groups.items())
