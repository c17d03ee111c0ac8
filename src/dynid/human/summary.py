"""What a human model is made of, as plain data and as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.human.table import AnthropometricTable
from dynid.robot.inertia import inertia_to_com, move_inertia
from dynid.robot.model import Robot
from dynid.robot.posture import link_placements

__all__ = ["human_data", "human_text"]


def human_data(robot: Robot, table: AnthropometricTable) -> dict[str, Any]:
    """Segments (mass in kg, centre in m from the segment's joint, principal radii in m), sizes and sources."""
    places = link_placements(robot)
    level = {f.name: float((places[f.link] @ f.placement)[2, 3]) for f in robot.frames}
    ground = min(level["left_sole"], level["right_sole"])
    whole = np.sum([move_inertia(link.inertia, h) for link, h in zip(robot.links, places, strict=True)], axis=0)
    segments = []
    for i in robot.parameter_links:
        mass, centre, tensor = inertia_to_com(robot.links[i].inertia)
        radii = np.sqrt(np.linalg.eigvalsh(tensor) / mass)
        segments.append(
            {
                "name": robot.links[i].name,
                "mass": float(mass),
                "centre": [round(float(x), 12) + 0.0 for x in centre],
                "radii_of_gyration": [float(r) for r in radii],
            }
        )
    return {
        "name": robot.name,
        "sex": table.sex,
        "table": table.name,
        "reference": table.reference,
        "mass": float(whole[0]),
        "standing_height": level["vertex"] - ground,
        "centre_of_mass_height": float(whole[3] / whole[0]) - ground,
        "segments": segments,
        "joints": list(robot.coordinates),
        "frames": [f.name for f in robot.frames],
    }


def human_text(data: dict[str, Any]) -> str:
    """The same as a table to read."""
    lines = [
        f"{data['name']}: {data['sex']}, {data['mass']:.4g} kg, {len(data['segments'])} segments, "
        f"{len(data['joints'])} joints on a floating base",
        f"stands {data['standing_height']:.3f} m tall, centre of mass {data['centre_of_mass_height']:.3f} m high",
        f"table {data['table']}: {data['reference']}",
        "",
        f"{'segment':<16} {'mass kg':>8}  {'centre m':<26} radii of gyration m",
    ]
    for s in data["segments"]:
        centre = " ".join(f"{x:8.4f}" for x in s["centre"])
        radii = " ".join(f"{r:.4f}" for r in s["radii_of_gyration"])
        lines.append(f"{s['name']:<16} {s['mass']:8.3f}  {centre}  {radii}")
    return "\n".join(lines)
