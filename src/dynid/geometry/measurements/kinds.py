"""The kinds of measurements by name: those of this package, and those that other packages add."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.base.records import joined
from dynid.geometry.measurements.camera import BoardImages
from dynid.geometry.measurements.contacts import PointContacts
from dynid.geometry.measurements.inclination import Inclination
from dynid.geometry.measurements.lengths import Lengths
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.measurements.points import Points
from dynid.geometry.measurements.poses import Poses
from dynid.geometry.measurements.sockets import Sockets
from dynid.geometry.measurements.touches import Touches

__all__ = ["MEASUREMENTS", "MeasurementKind"]


@dataclass(frozen=True)
class MeasurementKind:
    """A kind of measurement. Other packages add theirs by the entry-point group `dynid.measurements`.

    Attributes
    ----------
    measurement : type
        Its class, whose `kind` is the name of the entry point.
    """

    measurement: type[Measurement]

    @property
    def name(self) -> str:
        """Name by which it is chosen."""
        return self.measurement.kind


_OWN: tuple[type[Measurement], ...] = (
    *(Points, Poses, Sockets, Touches),
    *(Lengths, BoardImages, PointContacts, Inclination),
)

MEASUREMENTS: dict[str, type[Measurement]] = {
    name: record.measurement
    for name, record in joined(
        [MeasurementKind(own) for own in _OWN], MeasurementKind, "dynid.measurements", "measurement"
    ).items()
}
