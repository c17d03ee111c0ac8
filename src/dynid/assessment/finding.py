"""Finding: one problem, or one noteworthy property, of a recording or a capture."""

from __future__ import annotations

from dataclasses import dataclass, field
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


class FindingCode(str):
    """Stable code of a finding; messages may be reworded, codes are not. Programs compare codes, never messages.

    Parameters
    ----------
    code : str
        The code itself, in small letters.
    meaning : str
        What it says, in a few words for a table.
    severities : str or tuple of str
        Severity of its findings; of several, the worst comes first.
    signal : {"", "t", "q", "v", "torque", "wrench"}
        Signal of a run that shows it; "" where none does.
    limited : bool, default False
        Whether the limit of a joint is exceeded or reached.
    """

    meaning: str
    severities: tuple[Severity, ...]
    signal: str
    limited: bool

    def __new__(
        cls,
        code: str,
        meaning: str = "",
        severities: Severity | tuple[Severity, ...] = SEVERITIES,
        *,
        signal: str = "",
        limited: bool = False,
    ) -> FindingCode:
        """Make a code with what is known of it."""
        self = super().__new__(cls, code)
        self.meaning, self.signal, self.limited = meaning, signal, limited
        self.severities = (severities,) if isinstance(severities, str) else severities
        return self


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
        """Draw the trace that the finding is about, with the rows where it applies and the limits of the check.

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
