"""Checks of force plates: zero, direction of the weight, centre of pressure, clock against the cameras."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.finding import Finding, FindingCode
from dynid.errors import DataError, InvalidValue, MissingData, NotIdentifiable, TooFew, named
from dynid.mocap.plate import Plate
from dynid.mocap.trial import Trial

__all__ = ["PLATE_CODES", "compare_clocks", "plate_findings"]

Array = NDArray[np.float64]

PLATE_SIGN = FindingCode("plate_sign", "the force of a plate points down", "error")
PLATE_AXES = FindingCode("plate_axes", "the force of a plate is in another frame", "error")
PLATE_NOT_ZEROED = FindingCode("plate_not_zeroed", "a force plate was not zeroed", "warning")
PLATE_CENTER_OF_PRESSURE = FindingCode(
    "plate_center_of_pressure", "the centre of pressure lies outside the plate", ("error", "warning")
)
PLATE_HORIZONTAL_FORCE = FindingCode("plate_horizontal_force", "the mean horizontal force is not zero", "warning")
PLATE_WEIGHT = FindingCode("plate_weight", "the mean vertical force is not the weight of the body", "warning")
PLATE_DELAY = FindingCode("plate_delay", "the clocks of plates and cameras differ", "warning")
PLATE_NOT_FINITE = FindingCode("plate_not_finite", "the wrench of a force plate is not finite", "error")
PLATE_CODES = (
    *(PLATE_NOT_FINITE, PLATE_NOT_ZEROED, PLATE_SIGN, PLATE_AXES, PLATE_CENTER_OF_PRESSURE, PLATE_HORIZONTAL_FORCE),
    *(PLATE_WEIGHT, PLATE_DELAY),
)

_GRAVITY = 9.81
# Amplifiers drift by a newton or two in a trial; more is an offset.
_ZERO_FORCE, _ZERO_MOMENT = 3.0, 1.0
_LOADED = 0.2  # of the largest force
_UNLOADED = 0.1
_QUIET = 0.2  # s that a plate must stand free for its zero to be told
_TILT = 20.0  # degrees
_SIDE_FORCE = 0.02  # of the weight, mean over a trial
_BAND = 6.0  # Hz, where a body moves
_TELLING = 0.6  # correlation from which the clocks can be compared
_EXPLAINED = 0.5  # of what is missing to full correlation may be left by a shift
_LONGEST_OFFSET = 0.5  # s


def plate_findings(capture: Trial, mass: float | None) -> Iterator[Finding]:
    """What the plates say of themselves, then of the clocks."""
    if mass is not None and not mass > 0:
        raise InvalidValue(f"{named('mass')} must be positive, got {mass:g} kg")
    for plate in capture.plates:
        finite = np.isfinite(plate.wrench).all(axis=1)
        if not finite.all():
            count = f"{int((~finite).sum())} samples"
            to_do = "leave these samples out or read the file again"
            yield Finding(
                PLATE_NOT_FINITE,
                "error",
                capture.name,
                plate.name,
                "the wrench is not finite",
                count,
                to_do,
            )
            continue
        yield from _zero(capture, plate)
        yield from _direction(capture, plate)
        yield from _pressure(capture, plate)
    if capture.plates and all(np.isfinite(p.wrench).all() for p in capture.plates):
        yield from _together(capture, mass)
        yield from _clock(capture)


def _zero(capture: Trial, plate: Plate) -> Iterator[Finding]:
    force = plate.in_laboratory()[:, :3]
    size = np.linalg.norm(force, axis=1)
    top = float(np.quantile(size, 0.99))
    free = size < max(_UNLOADED * top, 2 * _ZERO_FORCE)
    if free.sum() < _QUIET * plate.rate or top < 4 * _ZERO_FORCE:
        return
    mean = np.median(plate.wrench[free], axis=0)
    off, turn = float(np.linalg.norm(mean[:3])), float(np.linalg.norm(mean[3:]))
    if off > _ZERO_FORCE or turn > _ZERO_MOMENT:
        yield Finding(
            PLATE_NOT_ZEROED,
            "warning",
            capture.name,
            plate.name,
            "the plate is not zeroed: it tells a force while nobody stands on it",
            f"{off:.1f} N and {turn:.2f} N m",
            "subtract what it tells then: plate.zeroed(start, stop)",
        )


def _direction(capture: Trial, plate: Plate) -> Iterator[Finding]:
    force = plate.in_laboratory()[:, :3]
    size = np.linalg.norm(force, axis=1)
    if size.max() < 4 * _ZERO_FORCE:
        return
    mean = force[size > _LOADED * size.max()].mean(axis=0)
    angle = float(np.degrees(np.arccos(np.clip(mean[2] / np.linalg.norm(mean), -1, 1))))
    if angle <= _TILT:
        return
    axis = "xyz"[int(np.argmax(np.abs(mean)))]
    if angle > 180 - _TILT:
        code = PLATE_SIGN
        what = "the force points down: the channels tell the action on the plate, not the reaction on the body"
        to_do = "read the file with plates='action'"
    else:
        sign = "+" if mean["xyz".index(axis)] > 0 else "-"
        code = PLATE_AXES
        what = f"the weight is carried along {sign}{axis}, not upwards: the force is given in another frame"
        to_do = "check the plate's corners, and which axis of the file points up (up=)"
    yield Finding(code, "error", capture.name, plate.name, what, f"{angle:.0f} degrees from vertical", to_do)


def _pressure(capture: Trial, plate: Plate) -> Iterator[Finding]:
    if plate.corners is None:
        return
    normal = np.abs(plate.wrench[:, 2])
    loaded = normal > max(_LOADED * normal.max(), 10.0)
    if not loaded.any():
        return
    local = (plate.centre_of_pressure()[loaded] - plate.placement[:3, 3]) @ plate.placement[:3, :3]
    half = np.abs((plate.corners - plate.placement[:3, 3]) @ plate.placement[:3, :3]).max(axis=0)
    outside = np.any(np.abs(local[:, :2]) > half[:2] + 0.01, axis=1)
    if outside.mean() > 0.02:
        far = float(np.max(np.abs(local[:, :2]) - half[:2]))
        yield Finding(
            PLATE_CENTER_OF_PRESSURE,
            "error" if outside.mean() > 0.5 else "warning",
            capture.name,
            plate.name,
            "the centre of pressure lies beside the plate",
            f"{100 * outside.mean():.0f} % of the loaded samples, up to {100 * far:.0f} cm outside",
            "check the plate's origin, its corners, the unit of its moments and its zero",
        )


def _together(capture: Trial, mass: float | None) -> Iterator[Finding]:
    """All plates as one, where they carry the body all the time: the mean force is its weight, nothing sideways."""
    if len({(p.rate, len(p.wrench)) for p in capture.plates}) != 1:
        return
    force = np.sum([p.in_laboratory()[:, :3] for p in capture.plates], axis=0)
    mean, top = force.mean(axis=0), float(np.quantile(np.abs(force[:, 2]), 0.95))
    weight = mass * _GRAVITY if mass is not None else abs(float(mean[2]))
    # A jump leaves the plates and comes back; a walk over them does not carry the body from end to end.
    ends = max(1, int(0.1 * capture.plates[0].rate))
    carried = min(abs(force[:ends, 2].mean()), abs(force[-ends:, 2].mean())) > 0.5 * top
    if not carried or weight < 4 * _ZERO_FORCE:
        return
    side = float(np.linalg.norm(mean[:2]))
    if side > max(_SIDE_FORCE * weight, _ZERO_FORCE) and side < abs(mean[2]):
        yield Finding(
            PLATE_HORIZONTAL_FORCE,
            "warning",
            capture.name,
            "",
            "the mean horizontal force is not zero: the plates are not zeroed, or do not stand level",
            f"{mean[0]:.1f} N along x, {mean[1]:.1f} N along y",
            "zero the plates while nobody stands on them, check their corners",
        )
    if mass is not None and abs(mean[2] - weight) > max(0.02 * weight, _ZERO_FORCE):
        yield Finding(
            PLATE_WEIGHT,
            "warning",
            capture.name,
            "",
            "the mean vertical force is not the body's weight: plates not zeroed, wrongly scaled, or other support",
            f"{mean[2] - weight:.1f} N of {weight:.0f} N",
            "zero the plates, check their calibration and the mass",
        )


def _clock(capture: Trial) -> Iterator[Finding]:
    if not capture.markers:
        return
    try:
        lag, correlation, unshifted = compare_clocks(capture, None)
    except DataError:
        return
    # The mean of the markers is not the centre of mass; only a shift that explains most of the misfit counts.
    if correlation > _TELLING and abs(lag) > 1.5 / capture.rate and 1 - correlation < _EXPLAINED * (1 - unshifted):
        yield Finding(
            PLATE_DELAY,
            "warning",
            capture.name,
            "",
            f"the plates {'lag' if lag > 0 else 'lead'} the cameras",
            f"{1000 * abs(lag):.0f} ms (correlation {correlation:.2f})",
            f"shift their clock: capture.wrench(delay={lag:.4f}) or capture.resampled(rate, delay={lag:.4f})",
        )


def compare_clocks(capture: Trial, height: Array | None) -> tuple[float, float, float]:
    """Lag of the plates behind the cameras, correlation there and without it; both within the motion's band."""
    from dynid.signals.filters import derivative, lowpass

    if not capture.plates:
        raise MissingData(f"capture '{capture.name}' has no force plate to compare the cameras with")
    if height is None:
        if not capture.markers:
            raise MissingData(f"capture '{capture.name}' has no markers to compare the plates with")
        height = _mean_height(capture.positions)
    if len(height) != len(capture.t) or len(height) < 2 * capture.rate:
        raise TooFew(f"{len(height)} frames are too few to compare clocks: two seconds are needed")
    band = min(_BAND, 0.2 * capture.rate)
    force = capture.wrench()[:, 2]
    both = np.flatnonzero(np.isfinite(force))
    force, height = force[both[0] : both[-1] + 1], height[both[0] : both[-1] + 1]
    smooth = lowpass(height[:, None], band, capture.rate)
    lift = derivative(derivative(smooth, capture.rate), capture.rate)[:, 0]
    force = lowpass(force[:, None], band, capture.rate)[:, 0]
    edge = int(capture.rate / band)
    lift, force = lift[edge:-edge], force[edge:-edge]
    if np.std(lift) < 0.02 or np.std(force) < 1.0:
        raise NotIdentifiable(
            "the body hardly moves up and down, its clocks cannot be compared", where=f"capture '{capture.name}'"
        )
    return _best_lag(lift, force, capture.rate)


def _best_lag(a: Array, b: Array, rate: float) -> tuple[float, float, float]:
    """Seconds by which b lags a, correlation there and at no lag; an upside-down likeness does not count."""
    reach = min(round(_LONGEST_OFFSET * rate), len(a) // 4)
    scores = np.empty(2 * reach + 1)
    for k, lag in enumerate(range(-reach, reach + 1)):
        early, late = a[max(0, -lag) : len(a) - max(0, lag)], b[max(0, lag) : len(b) - max(0, -lag)]
        scores[k] = np.corrcoef(early, late)[0, 1]
    best = int(np.argmax(scores))
    shift = 0.0
    if 0 < best < len(scores) - 1:
        left, middle, right = scores[best - 1 : best + 2]
        bend = left - 2 * middle + right
        shift = 0.5 * (left - right) / bend if bend else 0.0
    return float((best - reach + shift) / rate), float(scores[best]), float(scores[reach])


def _mean_height(positions: Array) -> Array:
    """Mean height of the markers (N,) whose gaps, filled linearly, are at most a tenth of the frames."""
    seen = np.isfinite(positions[..., 2])
    good = np.flatnonzero(seen.mean(axis=0) >= 0.9)
    if not len(good):
        raise MissingData("no marker is seen in nine of ten frames")
    frames = np.arange(len(positions))
    tracks = [np.interp(frames, frames[seen[:, m]], positions[seen[:, m], m, 2]) for m in good]
    return np.asarray(np.mean(tracks, axis=0))
