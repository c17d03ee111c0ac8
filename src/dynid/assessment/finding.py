"""Finding: one problem, or one noteworthy property, of a recording or a capture."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from dynid.attached import attached
from dynid.markup import frame_html
from dynid.results import Result, about

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from dynid.recording.recording import Recording
    from dynid.robot.model import Robot

__all__ = ["SEVERITIES", "Finding", "FindingCode", "Findings", "Severity"]

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class FindingCode(StrEnum):
    """Stable code of a finding; messages may be reworded, codes are not. Programs compare codes, never messages."""

    # Clock
    TIME_NOT_ADVANCING = "time_not_advancing"
    TIME_BACKWARDS = "time_backwards"
    TIME_FROZEN = "time_frozen"
    TIME_REPEATED = "time_repeated"
    SAMPLES_MISSING = "samples_missing"
    SAMPLING_UNEVEN = "sampling_uneven"
    STAMPS_NOISY = "stamps_noisy"
    ROWS_REPEATED = "rows_repeated"
    RUN_TOO_SHORT = "run_too_short"
    PARTITION_UNUSABLE = "partition_unusable"
    # Single channels
    VALUE_IMPLAUSIBLE = "value_implausible"
    POSITION_STUCK = "position_stuck"
    VELOCITY_CONSTANT = "velocity_constant"
    TORQUE_CONSTANT = "torque_constant"
    TORQUE_ZERO = "torque_zero"
    TORQUE_SATURATED = "torque_saturated"
    TORQUE_SPIKES = "torque_spikes"
    POSITION_RESOLUTION = "position_resolution"
    TORQUE_RESOLUTION = "torque_resolution"
    JOINT_NOT_MOVING = "joint_not_moving"
    ROBOT_NOT_MOVING = "robot_not_moving"
    STANDSTILL = "standstill"
    # Units and limits
    POSITION_UNIT = "position_unit"
    POSITION_ZERO = "position_zero"
    ANGLE_WRAPPED = "angle_wrapped"
    POSITION_LIMIT = "position_limit"
    VELOCITY_LIMIT = "velocity_limit"
    TORQUE_LIMIT = "torque_limit"
    MECHANICAL_STOP = "mechanical_stop"
    # Order of columns
    JOINT_NAME_ORDER = "joint_name_order"
    VELOCITY_ORDER = "velocity_order"
    TORQUE_ORDER = "torque_order"
    JOINT_ORDER = "joint_order"
    # Velocity against position
    VELOCITY_IS_POSITION = "velocity_is_position"
    VELOCITY_UNRELATED = "velocity_unrelated"
    VELOCITY_SIGN = "velocity_sign"
    VELOCITY_UNIT = "velocity_unit"
    VELOCITY_GAIN = "velocity_gain"
    VELOCITY_DELAY = "velocity_delay"
    VELOCITY_NOISE = "velocity_noise"
    # Torque against the a-priori model
    TORQUE_MISSING = "torque_missing"
    TORQUE_NOT_COMPARED = "torque_not_compared"
    TORQUE_UNSIGNED = "torque_unsigned"
    TORQUE_SIGN = "torque_sign"
    FRICTION_SIGN = "friction_sign"
    TORQUE_GAIN = "torque_gain"
    TORQUE_UNIT = "torque_unit"
    TORQUE_DELAY = "torque_delay"
    TORQUE_OFFSET = "torque_offset"
    TORQUE_TOO_SMALL = "torque_too_small"
    TORQUE_GRAVITY_COMPENSATED = "torque_gravity_compensated"
    TORQUE_UNRELATED = "torque_unrelated"
    TORQUE_COMPUTED = "torque_computed"
    # Wrenches on the base
    WRENCH_UNUSABLE = "wrench_unusable"
    WRENCH_SIGN = "wrench_sign"
    WRENCH_AXES = "wrench_axes"
    WRENCH_WEIGHT = "wrench_weight"
    WRENCH_POINT = "wrench_point"
    WRENCH_NOT_ZEROED = "wrench_not_zeroed"
    # Excitation
    ROWS_FEW = "rows_few"
    PARAMETERS_NOT_EXCITED = "parameters_not_excited"
    ILL_CONDITIONED = "ill_conditioned"
    # Markers and force plates of motion capture
    MARKER_MISSING = "marker_missing"
    MARKER_NEVER_SEEN = "marker_never_seen"
    MARKERS_SWAPPED = "markers_swapped"
    MARKER_SPIKE = "marker_spike"
    PLATE_NOT_FINITE = "plate_not_finite"
    PLATE_NOT_ZEROED = "plate_not_zeroed"
    PLATE_SIGN = "plate_sign"
    PLATE_AXES = "plate_axes"
    PLATE_CENTER_OF_PRESSURE = "plate_center_of_pressure"
    PLATE_HORIZONTAL_FORCE = "plate_horizontal_force"
    PLATE_WEIGHT = "plate_weight"
    PLATE_DELAY = "plate_delay"


@dataclass(frozen=True)
class Finding(Result):
    """One finding on a run."""

    code: FindingCode = field(metadata=about("Stable code of the problem."))
    severity: Severity = field(
        metadata=about(
            "An error makes the data unusable as they are, a warning makes results worse, an info is good to know."
        )
    )
    run: str = field(metadata=about("Name of the run or capture."))
    joint: str = field(metadata=about('Name of the joint, marker or force plate; "" where the whole run is meant.'))
    what: str = field(metadata=about("The problem, in one sentence."))
    how_much: str = field(metadata=about("Its size: a number first, then its unit in words."))
    what_to_do: str = field(metadata=about("The recommended remedy."))
    rows: tuple[tuple[int, int], ...] = field(
        default=(),
        metadata=about(
            "Where it applies: first row and the row after the last of each stretch of the run, counted from 0,"
            " in order and apart. Empty where it applies to the whole run. Of very many stretches, near ones "
            "are joined."
        ),
    )

    def plot(self, recording: Recording, *, robot: Robot | None = None, ax: Axes | None = None) -> Axes:
        """Draw the trace that the finding is about, with the rows where it applies and the limits it was held against.

        Parameters
        ----------
        recording : Recording
            The recording that was checked.
        robot : Robot, optional
            Its robot, for units and limits.
        ax : Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        Axes

        Raises
        ------
        DataError
            If the finding is not about a signal over time, or the recording does not have the signal.
        DynidError
            If matplotlib is not installed.
        """
        place: Axes = attached(self, "plot")(self, recording, robot, ax)
        return place

    def _repr_html_(self) -> str:
        return Findings((self,))._repr_html_()


class Findings(tuple[Finding, ...]):
    """Findings on a recording, errors first: a tuple that is also a table.

    Parameters
    ----------
    iterable : iterable of Finding
        The findings.
    """

    __slots__ = ()

    def to_frame(self) -> pl.DataFrame:
        """The findings as a table.

        Returns
        -------
        polars.DataFrame
            One row per finding: code, severity, run, joint, what, how_much and what_to_do.
        """
        import polars as pl

        names = ("code", "severity", "run", "joint", "what", "how_much", "what_to_do")
        rows = [[str(getattr(f, name)) for name in names] for f in self]
        return pl.DataFrame(rows, schema=dict.fromkeys(names, str), orient="row")

    def _repr_html_(self) -> str:
        counts = {kind: sum(f.severity == kind for f in self) for kind in ("error", "warning", "info")}
        words = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        return frame_html(f"findings: {words or 'none'}", self.to_frame())
