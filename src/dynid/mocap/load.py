"""Loading of motion capture: C3D, TRC, MOT and STO files to metres, radians and newtons with z up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.errors import UnknownName, WrongFormat, keyword, named
from dynid.mocap.c3d import C3D, read_c3d
from dynid.mocap.capture import Capture
from dynid.mocap.opensim import read_storage, read_trc
from dynid.mocap.platforms import LENGTHS, read_plates
from dynid.mocap.trial import Channels, unique_names
from dynid.recording.files import kind_of, stem_of
from dynid.robot.spatial import axis_rotation, placement

__all__ = ["load_capture"]

Array = NDArray[np.float64]

# Rotation of the vertical axis of the file to z.
_UP = {
    "x": axis_rotation((0, 1, 0), -np.pi / 2),
    "y": axis_rotation((1, 0, 0), np.pi / 2),
    "z": np.eye(3),
}
# Computed curves that some programs store among the markers.
_COMPUTED = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", "REACTIONS", "MODELED_MARKERS")


def load_capture(
    path: str | Path,
    *,
    up: Literal["x", "y", "z"] = "z",
    unit: str | None = None,
    plates: Literal["reaction", "action", "none"] = "reaction",
    translations: Sequence[str] = (),
) -> Capture:
    """Load a motion-capture file: .c3d, .trc, .mot or .sto (also compressed as .gz, .xz, .bz2).

    Parameters
    ----------
    path : str or Path
        The file.
    up : {"x", "y", "z"}, default "z"
        Vertical axis of the file ("y" in OpenSim files). The capture has z up.
    unit : str, optional
        Unit of length, where the file names none or a wrong one.
    plates : {"reaction", "action", "none"}, default "reaction"
        Whether the plate channels of a C3D file are the reaction on the body (most programs) or the action of the
        body on the plate; "none" does not read them.
    translations : sequence of str
        Columns of a motion file in degrees that are lengths, besides those that end in _tx, _ty, _tz.

    Returns
    -------
    Capture
        The trial.

    Raises
    ------
    DataError
        If the file cannot be read, or an option is unknown.
    """
    path = Path(path)
    if up not in _UP:
        raise UnknownName(f"up '{up}' is unknown: use x, y or z", "up")
    if plates not in ("reaction", "action", "none"):
        raise UnknownName(f"plates '{plates}' is unknown: use reaction, action or none", "plates")
    if unit is not None and unit not in LENGTHS:
        raise UnknownName(f"{named('unit')} '{unit}' is unknown: use {', '.join(LENGTHS)}")
    kind = kind_of(path)
    if kind == ".c3d":
        capture = _of_c3d(read_c3d(path), stem_of(path), unit, plates)
    elif kind == ".trc":
        capture = read_trc(path, unit)
    elif kind in (".mot", ".sto"):
        capture = read_storage(path, translations)
    else:
        raise WrongFormat(f"ending '{kind}' is unknown, known are .c3d, .trc, .mot and .sto", where=path.name)
    return capture if up == "z" else _turned(capture, np.round(_UP[up]))


def _of_c3d(c3d: C3D, name: str, unit: str | None, plates: str) -> Capture:
    length = _length(c3d, unit)
    labels = unique_names(c3d.texts("POINT", "LABELS"), c3d.points.shape[1], "marker")
    computed = {x for group in _COMPUTED for x in c3d.texts("POINT", group)}
    keep = [k for k, label in enumerate(labels) if label not in computed]
    channels = c3d.analogs.shape[1]
    units = c3d.texts("ANALOG", "UNITS")[:channels]
    analogs = Channels(
        unique_names(c3d.texts("ANALOG", "LABELS"), channels, "channel"),
        tuple(units + [""] * (channels - len(units))),
        c3d.rate * c3d.subsamples,
        c3d.analogs,
    )
    sign = -1.0 if plates == "action" else 1.0
    return Capture(
        name,
        c3d.rate,
        tuple(labels[k] for k in keep),
        length * c3d.points[:, keep],
        analogs,
        () if plates == "none" else read_plates(c3d, length, sign),
        events=_events(c3d),
    )


def _length(c3d: C3D, unit: str | None) -> float:
    if unit is None:
        given = c3d.need("POINT", "UNITS", "tells the unit of length: give unit=")
        unit = str(given[0]).strip().lower()
    if unit not in LENGTHS:
        raise UnknownName(
            f"{c3d.file} has the unit '{unit}' in POINT:UNITS: give {keyword('unit')} as one of {', '.join(LENGTHS)}"
        )
    return LENGTHS[unit]


def _events(c3d: C3D) -> tuple[tuple[str, float], ...]:
    """Names and times since the first frame; the file counts minutes and seconds since frame 1.

    Older files have no group of events but up to eighteen of them in the header.
    """
    labels, times = c3d.texts("EVENT", "LABELS"), c3d.get("EVENT", "TIMES")
    late = (c3d.first - 1) / c3d.rate
    if not isinstance(times, np.ndarray) or times.ndim != 2 or len(times) != 2:
        return tuple((name, t - late) for name, t in c3d.header_events)
    contexts = c3d.texts("EVENT", "CONTEXTS")
    contexts += [""] * (len(labels) - len(contexts))
    seconds = 60.0 * times[0] + times[1] - late
    return tuple((f"{a} {b}".strip(), float(s)) for a, b, s in zip(contexts, labels, seconds, strict=False))


def _turned(capture: Capture, turn: Array) -> Capture:
    whole = placement(turn)
    plates = tuple(
        replace(p, placement=whole @ p.placement, corners=None if p.corners is None else p.corners @ turn.T)
        for p in capture.plates
    )
    return replace(capture, positions=capture.positions @ turn.T, plates=plates)
