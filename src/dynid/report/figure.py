"""Figure of a robot: its skeleton, and a map of its identifiable parameters.

SVG, because `dynid inspect --figure` must draw it in the default install; no chart library draws such a picture.
"""

from __future__ import annotations

from html import escape

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.frames import frame_placement
from dynid.parameters.base import BaseParameters
from dynid.report.inspection import parameter_groups, parameter_symbols
from dynid.robot.inertia import inertia_violations
from dynid.robot.model import Robot

__all__ = ["robot_figure"]

Array = NDArray[np.float64]

_COLOR = {"identifiable": "#2a9d5c", "combined": "#f2b134", "unidentifiable": "#d9dde3"}
_LEGEND = {
    "identifiable": "identifiable alone",
    "combined": "only in combination",
    "unidentifiable": "not identifiable",
}
_CELL, _LEFT, _TOP, _VIEW = 34, 40, 96, 420
_BEND = 0.6  # rad; the joints of a straight arm overlap
_AXES = ("#d1495b", "#2a9d5c", "#3d6fb6")


def robot_figure(robot: Robot, base: BaseParameters) -> str:
    """Return an SVG with the robot on the left and the map of its parameters on the right.

    Parameters
    ----------
    robot : Robot
        Robot to draw.
    base : BaseParameters
        Base parameters of the robot, which classify its standard parameters.

    Returns
    -------
    str
        The SVG file.
    """
    symbols = parameter_symbols(robot)
    owners = list(dict.fromkeys(parameter_groups(robot).values()))
    name_width = 9 + 7.2 * max(map(len, owners))
    map_left = _LEFT + _VIEW + 40 + name_width
    width = map_left + _CELL * len(symbols) + 40
    height = max(_TOP + _CELL * len(owners) + 70, _TOP + _VIEW + 40)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="34" font-size="22" font-weight="bold" fill="#1d2b3a">{escape(robot.name)}</text>',
        f'<text x="{_LEFT}" y="58" fill="#52606d">{len(robot.layout)} standard parameters, {base.effective_count} with '
        f"an effect, {base.count} base parameters</text>",
        *_skeleton(robot),
        *_map(robot, base, symbols, owners, map_left),
    ]
    x = map_left
    for kind, words in _LEGEND.items():
        y = height - 34
        out.append(f'<rect x="{x}" y="{y - 12}" width="14" height="14" rx="3" fill="{_COLOR[kind]}"/>')
        out.append(f'<text x="{x + 20}" y="{y}" fill="#1d2b3a">{words}</text>')
        x += 30 + 7 * len(words)
    return "\n".join([*out, "</svg>", ""])


def _map(robot: Robot, base: BaseParameters, symbols: list[str], owners: list[str], left: float) -> list[str]:
    """Map of parameters: one row per link or motor, one column per symbol."""
    out, group = [], parameter_groups(robot)
    inconsistent = {robot.links[i].name for i in robot.parameter_links if inertia_violations(robot.links[i].inertia)}
    for column, symbol in enumerate(symbols):
        x = left + _CELL * (column + 0.5)
        out.append(f'<text x="{x}" y="{_TOP - 10}" text-anchor="middle" fill="#52606d">{escape(symbol)}</text>')
    for row, owner in enumerate(owners):
        y = _TOP + _CELL * (row + 0.5) + 4
        color = "#c1121f" if owner in inconsistent else "#1d2b3a"
        note = "<title>the a-priori inertia is not physically consistent</title>" if owner in inconsistent else ""
        out.append(f'<text x="{left - 9}" y="{y}" text-anchor="end" fill="{color}">{note}{escape(owner)}</text>')
    for p, value in zip(robot.layout, robot.parameters, strict=True):
        x = left + _CELL * symbols.index(p.symbol) + 2
        y = _TOP + _CELL * owners.index(group[p.owner]) + 2
        kind = base.classes[p.name]
        title = escape(f"{p.name} = {value:.6g} {p.unit} ({_LEGEND[kind]})")
        out.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{_CELL - 4}" height="{_CELL - 4}" rx="5" fill="{_COLOR[kind]}">'
            f"<title>{title}</title></rect>"
        )
    return out


def _skeleton(robot: Robot) -> list[str]:
    """Joints, axes and centres of mass in a slightly bent posture, seen from the front right above."""
    limits = list(robot.limits.values())
    q = np.clip(np.full(robot.n, _BEND), [x.lower for x in limits], [x.upper for x in limits])
    if robot.base == "floating":
        q = np.concatenate([[0, 0, 0, 0, 0, 0, 1], q])
    places = [frame_placement(robot, q, link.name) for link in robot.links]
    joints = [np.array(places[j.parent] @ j.placement) for j in robot.joints]
    centres = [
        p[:3, 3] + p[:3, :3] @ (link.inertia[1:4] / link.inertia[0]) if link.inertia[0] > 0 else None
        for p, link in zip(places, robot.links, strict=True)
    ]
    points = np.array([p[:3, 3] for p in places] + [h[:3, 3] for h in joints] + [c for c in centres if c is not None])
    flat = _project(points)
    low, high = flat.min(axis=0), flat.max(axis=0)
    reach = max(float((high - low).max()), 1e-3)
    scale = 0.8 * _VIEW / reach
    centre = 0.5 * (low + high)

    def on_page(x: Array) -> tuple[float, float]:
        u, v = (_project(x[None])[0] - centre) * scale
        return _LEFT + _VIEW / 2 + u, _TOP + _VIEW / 2 - v

    out = [f'<rect x="{_LEFT}" y="{_TOP}" width="{_VIEW}" height="{_VIEW}" rx="10" fill="#f4f6f8"/>']
    heaviest = max((link.inertia[0] for link in robot.links), default=1.0)
    for i, (joint, h) in enumerate(zip(robot.joints, joints, strict=True)):
        for start, stop in ((places[joint.parent], h), (h, places[i + 1])):
            (x1, y1), (x2, y2) = on_page(start[:3, 3]), on_page(stop[:3, 3])
            out.append(
                f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#7b8794" stroke-width="7" '
                'stroke-linecap="round"/>'
            )
    for place, link, c in zip(places, robot.links, centres, strict=True):
        if c is None:
            continue
        (x, y), (ox, oy) = on_page(c), on_page(place[:3, 3])
        size = 4 + 10 * (link.inertia[0] / heaviest) ** (1 / 3)
        title = escape(f"centre of mass of {link.name}, {link.inertia[0]:.4g} kg")
        out.append(
            f'<line x1="{ox:.1f}" y1="{oy:.1f}" x2="{x:.1f}" y2="{y:.1f}" stroke="#e07a5f" stroke-dasharray="2 3"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" fill="#e07a5f" fill-opacity="0.55">'
            f"<title>{title}</title></circle>"
        )
    for joint, h in zip(robot.joints, joints, strict=True):
        (x, y) = on_page(h[:3, 3])
        tip_x, tip_y = on_page(h[:3, 3] + 0.09 * reach * (h[:3, :3] @ joint.axis))
        title = escape(f"{joint.name} ({joint.kind})")
        shape = (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="#1d3557">'
            if joint.kind == "revolute"
            else f'<rect x="{x - 6:.1f}" y="{y - 6:.1f}" width="12" height="12" fill="#1d3557">'
        )
        out.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{tip_x:.1f}" y2="{tip_y:.1f}" stroke="#3d6fb6" stroke-width="2.5"/>'
            f"{shape}<title>{title}</title></{'circle' if joint.kind == 'revolute' else 'rect'}>"
        )
    origin = places[0]
    for k, color in enumerate(_AXES):
        (x1, y1), (x2, y2) = on_page(origin[:3, 3]), on_page(origin[:3, 3] + 0.1 * reach * origin[:3, k])
        out.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="2"/>')
    return out


def _project(points: Array) -> Array:
    """Orthographic view (N, 2): right and up."""
    turn, tilt = np.radians(35.0), np.radians(20.0)
    right = np.array([-np.sin(turn), np.cos(turn), 0.0])
    up = np.array([-np.sin(tilt) * np.cos(turn), -np.sin(tilt) * np.sin(turn), np.cos(tilt)])
    return points @ np.column_stack([right, up])
