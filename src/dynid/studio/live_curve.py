"""A curve that grows while a command runs, such as the criterion of a search over time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from dynid.progress import Progress
from dynid.report.charts import Chart

__all__ = ["LiveCurve"]

_WIDTH, _HEIGHT = 460.0, 200.0
_KINDS = ("criterion", "best")


@dataclass
class LiveCurve:
    """Values of the reports of one command over the time since its first one.

    Attributes
    ----------
    label : str
        What the values are, for the axis.
    names : tuple of str
        Names of the values that are drawn: what was tried, and the best of it.
    """

    label: str
    names: tuple[str, str] = _KINDS
    _began: float | None = None
    _times: list[float] = field(default_factory=list)
    _values: dict[str, list[float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._times)

    def add(self, progress: Progress, now: float | None = None) -> bool:
        """Take the values of a report, at `now` (s, of a monotonic clock); False where it has none."""
        if not all(name in progress.values for name in self.names):
            return False
        now = time.monotonic() if now is None else now
        self._began = now if self._began is None else self._began
        self._times.append(now - self._began)
        for name in self.names:
            self._values.setdefault(name, []).append(progress.values[name])
        return True

    def svg(self) -> str:
        """The curve as SVG: every trial as a dot, the best so far as a line."""
        tried, best = (self._values.get(name, []) for name in self.names)
        chart = Chart("time of the search in s", self.label, width=_WIDTH, height=_HEIGHT)
        return chart.dots(self._times, tried, "tried").line(self._times, best, "best").svg()

    def words(self) -> str:
        """The first and the last of the best values, for readers who do not see the curve."""
        best = self._values.get(self.names[1], [])
        return f"from {best[0]:.4g} to {best[-1]:.4g} in {self._times[-1]:.1f} s" if best else ""
