"""Simulation error by horizon: how far simulated motion is from measured motion, some time after a measured state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.attached import attached
from dynid.markup import frame_html
from dynid.simulation.replay import Ending
from dynid.terminal import rendered, table_of

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

__all__ = ["Comparison", "ModelErrors", "SimulationError"]

Array = NDArray[np.float64]

_RESAMPLES = 500
_FEWEST = 5  # starts
_LEVEL = 0.95
_SMALLEST = 1e-3  # ratio of errors that is told
_LARGEST = 1e6  # ratio of errors where one of two models diverges


@dataclass(frozen=True, eq=False)
class ModelErrors:
    """Errors of one model; infinite where the simulation ended early, NaN where the recording does.

    Attributes
    ----------
    joints : ndarray, shape (start, horizon, joint)
        Magnitude of the error of joint positions, in rad or m.
    tools : ndarray, shape (start, horizon, tool)
        Distance between simulated and measured position of the end links, in m.
    whole_joints, whole_tools : ndarray, shape (run, joint) and (run, tool)
        Root mean square of the same errors over the whole run, simulated from its first sample.
    endings : tuple of Ending
        How each start ended.
    """

    joints: Array
    tools: Array
    whole_joints: Array
    whole_tools: Array
    endings: tuple[Ending, ...]

    def counts(self) -> dict[Ending, int]:
        """Number of starts per ending, those that occur."""
        found = Counter(self.endings)
        return {ending: found[ending] for ending in Ending if found[ending]}

    def failed(self) -> float:
        """Share of the starts that did not complete."""
        return 1.0 - self.counts().get(Ending.COMPLETED, 0) / max(len(self.endings), 1)

    def joint_quantiles(self, share: float = 0.5) -> Array:
        """Quantile of the joint errors over the starts, shape (horizon, joint); 0.5 is the median."""
        return _quantile(self.joints, share)

    def tool_quantiles(self, share: float = 0.5) -> Array:
        """Quantile of the tool errors over the starts, shape (horizon, tool)."""
        return _quantile(self.tools, share)


@dataclass(frozen=True)
class Comparison:
    """Errors of the identified model over those of the a-priori model.

    Attributes
    ----------
    horizon : float
        Time after the start in s.
    ratio : float
        Geometric mean over joints and tools of the ratio of the median errors.
    low, high : float
        Its 95 % interval, by resampling the starts.
    share : float
        Geometric mean of the ratio to the errors of a constant velocity: the share of the change of velocity that the
        identified model does not explain.
    """

    horizon: float
    ratio: float
    low: float
    high: float
    share: float

    @property
    def words(self) -> str:
        """The ratio and its interval in words."""
        ratio, low, high = (_times(x) for x in (self.ratio, self.low, self.high))
        told = self.high >= _SMALLEST and self.low <= 1 / _SMALLEST  # one of the models has diverged otherwise
        sure = f" (95 % interval {low} to {high})" if told else ""
        return f"{ratio} times those of the a-priori model{sure}"


@dataclass(frozen=True, eq=False)
class SimulationError:
    """Errors of simulated motion by horizon, of the identified and the a-priori model.

    Attributes
    ----------
    robot : str
        Name of the robot.
    loop : {"open", "closed"}
        Whether the measured torque moves the model, or its controller does.
    joints, units, tools : tuple of str
        Joints, their units (rad or m), and the frames whose positions are compared.
    horizons : tuple of float
        Seconds after the start.
    starts : tuple of int
        Number of starts per horizon.
    runs : int
        Number of runs.
    interval : float
        Seconds between starts.
    step : float
        Integration step in s.
    halving : float
        Change of the positions with half the step, relative to the error; NaN where it was not computed.
    identified : ModelErrors or None
        Errors of the estimate; None where nothing was simulated.
    prior : ModelErrors or None
        Errors of the a-priori model; None where there is none.
    baseline : ModelErrors or None
        Errors of holding the velocity of the start.
    reason : str
        Why nothing was simulated, or the a-priori model was not.
    seconds : float
        Computing time in s.
    """

    robot: str
    loop: Literal["open", "closed"]
    joints: tuple[str, ...]
    units: tuple[str, ...]
    tools: tuple[str, ...]
    horizons: tuple[float, ...]
    starts: tuple[int, ...] = ()
    runs: int = 0
    interval: float = np.nan
    step: float = np.nan
    halving: float = np.nan
    identified: ModelErrors | None = None
    prior: ModelErrors | None = None
    baseline: ModelErrors | None = None
    reason: str = ""
    seconds: float = 0.0

    @property
    def simulated(self) -> bool:
        """Whether the identified model was simulated."""
        return self.identified is not None

    @property
    def models(self) -> dict[str, ModelErrors]:
        """The errors that are known, by the name of the model."""
        named = {"identified": self.identified, "a-priori": self.prior, "constant velocity": self.baseline}
        return {name: errors for name, errors in named.items() if errors is not None}

    def compare(self, horizon: float) -> Comparison | None:
        """Compare the identified with the a-priori model at a horizon.

        Parameters
        ----------
        horizon : float
            One of `horizons`, in s.

        Returns
        -------
        Comparison or None
            None where one of the two was not simulated, or fewer than five starts reach the horizon.
        """
        if self.identified is None or self.prior is None or self.baseline is None or horizon not in self.horizons:
            return None
        k = self.horizons.index(horizon)
        each = [np.hstack([m.joints[:, k], m.tools[:, k]]) for m in (self.identified, self.prior, self.baseline)]
        known = ~np.isnan(each[0]).any(axis=1)
        ours, theirs, still = (x[known] for x in each)
        if len(ours) < _FEWEST:
            return None
        rng = np.random.default_rng(0)
        # Neighbouring starts share part of their motion, so blocks of them are drawn.
        size = min(len(ours), 1 + int(np.ceil(horizon / self.interval)))
        firsts = rng.integers(0, len(ours), (_RESAMPLES, -(-len(ours) // size)))
        rows = (firsts[..., None] + np.arange(size)).reshape(_RESAMPLES, -1)[:, : len(ours)] % len(ours)
        drawn = np.concatenate([_ratios(ours[r], theirs[r]) for r in np.array_split(rows, _RESAMPLES // 50)])
        low, high = np.quantile(drawn, [0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2])
        found, beside_still = (float(_ratios(ours[None], x[None])[0]) for x in (theirs, still))
        return Comparison(horizon, found, float(low), float(high), beside_still)

    def to_dict(self) -> dict[str, Any]:
        """Medians, 90th percentiles, errors over whole runs and counted endings as plain data for JSON."""
        page: dict[str, Any] = {
            "loop": self.loop,
            "simulated": self.simulated,
            "reason": self.reason,
            "horizons": list(self.horizons),
            "starts": list(self.starts),
            "runs": self.runs,
            "interval": _plain(self.interval),
            "step": _plain(self.step),
            "halving": _plain(self.halving),
            "seconds": self.seconds,
            "units": dict(zip(self.joints, self.units, strict=True)) | dict.fromkeys(self.tools, "m"),
            "models": {},
            "ratio": {},
        }
        for name, errors in self.models.items():
            parts = [(self.joints, errors.joint_quantiles, errors.whole_joints)]
            parts.append((self.tools, errors.tool_quantiles, errors.whole_tools))
            page["models"][name] = {"endings": {e.value: c for e, c in errors.counts().items()}} | {
                channel: {
                    "median": [_plain(x) for x in quantiles(0.5)[:, i]],
                    "p90": [_plain(x) for x in quantiles(0.9)[:, i]],
                    "whole_run": _plain(_quantile(whole, 0.5)[i]),
                }
                for channels, quantiles, whole in parts
                for i, channel in enumerate(channels)
            }
        for horizon in self.horizons:
            found = self.compare(horizon)
            if found is not None:
                page["ratio"][f"{horizon:g}"] = asdict(found)
        return page

    def to_frame(self) -> pl.DataFrame:
        """Errors by model, position and horizon as a table.

        Returns
        -------
        polars.DataFrame
            One row per model, position and horizon: model, position, unit, horizon in s, median and p90 (90th
            percentile over the starts). Infinite where simulations diverge.
        """
        import polars as pl

        rows: list[tuple[str, str, str, float, float, float]] = []
        for model, errors in self.models.items():
            parts = [(self.joints, self.units, errors.joint_quantiles)]
            parts.append((self.tools, ("m",) * len(self.tools), errors.tool_quantiles))
            for channels, units, quantiles in parts:
                median, tail = quantiles(0.5), quantiles(0.9)
                rows += [
                    (model, channel, units[i], horizon, float(median[k, i]), float(tail[k, i]))
                    for i, channel in enumerate(channels)
                    for k, horizon in enumerate(self.horizons)
                ]
        words = {"model": str, "position": str, "unit": str, "horizon": float, "median": float, "p90": float}
        return pl.DataFrame(rows, schema=words, orient="row")

    def plot(
        self, *, joints: str | Sequence[str] | None = None, ax: Axes | Sequence[Axes] | None = None
    ) -> NDArray[Any]:
        """Draw the median errors over the horizon, of the identified and the a-priori model and of a constant velocity.

        Parameters
        ----------
        joints : str or sequence of str, optional
            Names or patterns of the joints to draw; by default all of them and the tools.
        ax : Axes or sequence of Axes, optional
            Where to draw: as many axes as are returned, or one, whose place is divided. By default a new figure.

        Returns
        -------
        ndarray of Axes, shape (position,)
            Joints, then tools.

        Raises
        ------
        DataError
            If nothing was simulated, or no joint matches.
        DynidError
            If matplotlib is not installed.
        """
        axes: NDArray[Any] = attached(self, "plot")(self, joints, ax)
        return axes

    def _repr_html_(self) -> str:
        return frame_html(f"simulation error ({self.loop} loop)", self.to_frame(), self.reason)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head and rows of the median errors: per joint and tool, the identified over the a-priori model."""
        head = ["position", "unit", *(f"{h:g} s" for h in self.horizons), "whole run"]
        if self.identified is None:
            return head, []
        rows = []
        shown = [m for m in (self.identified, self.prior) if m is not None]
        for channels, of in ((self.joints, "joints"), (self.tools, "tools")):
            columns = [_with_whole(m, of) for m in shown]
            for i, channel in enumerate(channels):
                name, unit = (channel, self.units[i]) if of == "joints" else (f"tool {channel}", "m")
                rows.append(
                    [name, unit, *(" / ".join(_number(c[k, i]) for c in columns) for k in range(len(head) - 2))]
                )
        assert self.baseline is not None
        still = _with_whole(self.baseline, "tools")
        for i, channel in enumerate(self.tools):
            rows.append([f"tool {channel}, constant velocity", "m", *(_number(x) for x in still[:, i])])
        return head, rows

    def summary(self) -> str:
        """A table of the median errors by horizon, and how the simulations ended."""
        title = f"simulation error ({self.loop} loop)"
        if self.identified is None:
            return f"{title}: not simulated: {self.reason}"
        pair = "identified / a-priori" if self.prior is not None else "identified"
        head, rows = self.table()
        table = table_of(f"{title}, {pair}, median over {max(self.starts)} starts", *head, text=("position", "unit"))
        for row in rows:
            table.add_row(*row)
        return "\n".join([rendered(table).rstrip("\n"), *self.remarks()])

    def remarks(self) -> list[str]:
        """Sentences on the 90th percentile, on the a-priori model, and on simulations that ended early."""
        assert self.identified is not None
        out = [f"a-priori model: {self.reason}"] if self.prior is None else []
        for i, tool in enumerate(self.tools):
            tail = ", ".join(
                f"{_number(x)} m after {h:g} s"
                for x, h in zip(self.identified.tool_quantiles(0.9)[:, i], self.horizons, strict=True)
                if np.isfinite(x)
            )
            out += [f"tool {tool}: 90 % of the starts are within {tail}"] if tail else []
        compared: dict[str, list[str]] = {}
        for horizon in self.horizons:
            found = self.compare(horizon)
            if found is not None:
                compared.setdefault(found.words, []).append(f"{horizon:g} s")
        out += [f"after {' and '.join(times)} the errors are {words}" for words, times in compared.items()]
        for name, errors in self.models.items():
            counts = errors.counts()
            out += [
                f"{name}: {count} of {len(errors.endings)} starts ended early: {ending.value}"
                for ending, count in counts.items()
                if ending.ended_early
            ]
        return out


def _quantile(values: Array, share: float) -> Array:
    """Quantile over the first axis without NaN; infinite values are values."""
    out = np.full(values.shape[1:], np.nan)
    for at in np.ndindex(*out.shape):
        known = np.sort(values[(slice(None), *at)])
        known = known[~np.isnan(known)]
        if known.size:
            out[at] = known[min(int(share * known.size), known.size - 1)]
    return out


def _ratios(ours: Array, theirs: Array) -> Array:
    """Geometric mean over channels of the ratio of median errors, one per set of errors (set, start, channel)."""
    a, b = np.median(ours, axis=1), np.median(theirs, axis=1)
    same = (np.isinf(a) & np.isinf(b)) | (a == b)
    with np.errstate(all="ignore"):
        ratio = np.where(same, 1.0, a / b)
    return np.asarray(np.exp(np.mean(np.log(np.clip(ratio, 1.0 / _LARGEST, _LARGEST)), axis=1)))


def _with_whole(errors: ModelErrors, of: str) -> Array:
    """Median errors (horizon + 1, channel); the last row is that of whole runs."""
    values, whole = getattr(errors, of), getattr(errors, f"whole_{of}")
    return np.vstack([_quantile(values, 0.5), _quantile(whole, 0.5)])


def _times(ratio: float) -> str:
    """A ratio of errors for people; one of the two models may have diverged."""
    if ratio < _SMALLEST:
        return f"less than {_SMALLEST:g}"
    return f"more than {1 / _SMALLEST:g}" if ratio > 1 / _SMALLEST else f"{ratio:.2g}"


def _number(value: float) -> str:
    """An error for people."""
    return "-" if np.isnan(value) else "diverged" if np.isinf(value) else f"{value:.2g}"


def _plain(value: float) -> float | str | None:
    """An error for JSON."""
    return None if np.isnan(value) else float(value) if np.isfinite(value) else "inf"
