"""What is wrong with a capture, in words."""

from __future__ import annotations

from collections.abc import Iterator

from dynid.assessment.finding import SEVERITIES, Finding, FindingCode, Findings
from dynid.mocap.faults import Gap, find_gaps, find_spikes, find_swaps
from dynid.mocap.plate_checks import PLATE_CODES, plate_findings
from dynid.mocap.trial import Trial

__all__ = ["CAPTURE_CODES", "find"]

MARKER_NEVER_SEEN = FindingCode("marker_never_seen", "a marker is missing in all frames", "warning")
MARKER_MISSING = FindingCode("marker_missing", "a marker is missing in some frames", ("warning", "info"))
MARKERS_SWAPPED = FindingCode("markers_swapped", "two markers have exchanged their names", "error")
MARKER_SPIKE = FindingCode("marker_spike", "a marker jumps away and back", "warning")
CAPTURE_CODES = (MARKER_MISSING, MARKER_NEVER_SEEN, MARKERS_SWAPPED, MARKER_SPIKE, *PLATE_CODES)

_SHOWN = 5
_MOSTLY = 0.5


def find(capture: Trial, mass: float | None) -> Findings:
    """Findings on markers, plates and clocks, worst first."""
    out = [*_swaps(capture), *_gaps(capture), *_spikes(capture), *plate_findings(capture, mass)]
    return Findings(sorted(out, key=lambda f: SEVERITIES.index(f.severity)))


def _gaps(capture: Trial) -> Iterator[Finding]:
    frames = len(capture.positions)
    by_marker: dict[str, list[Gap]] = {}
    for gap in find_gaps(capture):
        by_marker.setdefault(gap.marker, []).append(gap)
    for marker, gaps in by_marker.items():
        missing = sum(g.frames for g in gaps)
        where = _listed([_frames(g.start, g.stop) for g in gaps])
        if missing == frames:
            code = MARKER_NEVER_SEEN
            what, to_do = "the marker is never seen", "leave it out"
        else:
            code = MARKER_MISSING
            what = f"the marker is missing in {where}"
            to_do = "inverse kinematics goes on with the other markers; keep at least three a segment in sight"
        longest = max(g.frames for g in gaps)
        share = f"{missing} of {frames} frames, the longest gap {longest} frames ({longest / capture.rate:.2f} s)"
        yield Finding(
            code, "warning" if missing > _MOSTLY * frames else "info", capture.name, marker, what, share, to_do
        )


def _swaps(capture: Trial) -> Iterator[Finding]:
    for swap in find_swaps(capture):
        yield Finding(
            MARKERS_SWAPPED,
            "error",
            capture.name,
            swap.first,
            f"the markers {swap.first} and {swap.second} bear each other's name in {_frames(swap.start, swap.stop)}",
            f"{swap.stop - swap.start} frames",
            "exchange them back: capture.unswapped()",
        )


def _spikes(capture: Trial) -> Iterator[Finding]:
    by_marker: dict[str, list[tuple[str, float]]] = {}
    for spike in find_spikes(capture):
        by_marker.setdefault(spike.marker, []).append((_frames(spike.start, spike.stop), spike.size))
    for marker, spikes in by_marker.items():
        yield Finding(
            MARKER_SPIKE,
            "warning",
            capture.name,
            marker,
            f"the marker leaps away and back in {_listed([where for where, _ in spikes])}",
            f"{1000 * max(size for _, size in spikes):.0f} mm at most",
            "leave these frames of the marker out (NaN)",
        )


def _frames(start: int, stop: int) -> str:
    return f"frame {start}" if stop == start + 1 else f"frames {start} to {stop - 1}"


def _listed(parts: list[str]) -> str:
    more = len(parts) - _SHOWN
    return ", ".join(parts[:_SHOWN]) + (f" and {more} more intervals" if more > 0 else "")
