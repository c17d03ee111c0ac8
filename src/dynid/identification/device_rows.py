"""Rows of filtered runs made and folded on a device of PyTorch, such as a graphics card.

The same rows as those of the kernels, to rounding: the same segments, the same filter before decimation, and the same
rows left out. Signals are filtered on the processor before, and factors come back to it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.batch import as_batch
from dynid.dynamics.tree import compile_robot
from dynid.errors import DataError, DynidError
from dynid.identification.loads import measured, state
from dynid.identification.row_stream import Segment, SegmentRows
from dynid.parameters.base import BaseParameters
from dynid.reading import whole_number
from dynid.robot.model import Robot
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion

if TYPE_CHECKING:
    from dynid.identification.torch_rows import FilterBlock

__all__ = ["DeviceRows", "check_device"]

Array = NDArray[np.float64]

# Numbers of a segment without decimation, all channels together.
_NUMBERS = 2**25
# Samples that the filter before decimation takes at once.
_FILTERED = 512


def check_device(robot: Robot, device: str | None, client: Any = None) -> None:
    """Raise an error if rows of a robot cannot be folded on a device; None is the processor without PyTorch."""
    if device is None:
        return
    if client is not None:
        raise DataError("device= folds in this process and client= on the workers of a cluster: give one")
    custom = [term.name for term in robot.drives if term.function is not None]
    has = "closed loops" if robot.loops else f"a base that is {robot.base}" if robot.base != "fixed" else ""
    has = has or (f"the custom drive term '{custom[0]}'" if custom else "")
    if has:
        raise DataError(f"robot '{robot.name}' has {has}, which device= does not support: fold without it")
    try:
        import torch
    except ImportError:
        raise DynidError("device= needs PyTorch: pip install 'dynid[gpu]'") from None
    name, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if name not in ("cuda", "cpu") or (number and whole_number(number) is None):
        raise DataError(f"device {device!r:.40} is unknown: use 'cuda', 'cuda:1' for a second graphics card, or 'cpu'")
    if name == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise DynidError(f"device '{device}' is not there: PyTorch {torch.__version__} finds no such graphics card")


class DeviceRows(SegmentRows):
    """Makes the rows of all channels of a segment on a device, and folds them there.

    Parameters
    ----------
    base : BaseParameters
        The unknowns.
    device : str
        A device that `check_device` accepts.
    """

    def __init__(self, base: BaseParameters, device: str) -> None:
        from dynid.identification.torch_rows import TorchRows

        super().__init__(base, threads=1)
        model, kept = compile_robot(base.robot), np.array(base.kept)
        self._backend = TorchRows(model.tree, model.drives, self.row, [kept[c] for c in self.touched], device)
        self.chunk = max(_NUMBERS // self.width, self.chunk)

    def table(self, motion: Motion, part: Segment) -> Any:
        """Decimated rows of all channels, side by side."""
        robot = self.base.robot
        (q, v, a), _, _ = as_batch(robot, **dict(zip("qva", state(robot, motion, part.whole), strict=True)))
        table = self._backend.table(q, v, a, measured(robot, motion, q, part.whole))
        return part.inside(decimate(table, part.factors, self._zero_phase))

    def _zero_phase(self, sos: Array, x: Any, pad: int) -> Any:
        return self._backend.zero_phase(x, pad, _block(sos.tobytes()))

    def channel(self, table: Any, part: Segment, k: int) -> tuple[Any, Array]:
        """Rows [W y] (m, touched + 1) of a channel, on the device, and the velocities (m,) of its joint."""
        rows = table[:, self.spans[k]]
        return rows[:, :-1], rows[:, -1].cpu().numpy()

    def folded(self, factor: Array, rows: Any) -> Array:
        """Triangular factor of a factor and rows on the device."""
        return self._backend.folded(factor, rows)


@lru_cache(maxsize=64)
def _block(sections: bytes) -> FilterBlock:
    """Second-order sections as a filter over blocks of samples."""
    from dynid.identification.torch_rows import FilterBlock

    sos = np.frombuffer(sections).reshape(-1, 6).copy()
    size = 2 * len(sos)
    response, driven = scipy.signal.sosfilt(sos, np.eye(_FILTERED), axis=0, zi=np.zeros((len(sos), 2, _FILTERED)))
    unit = np.eye(size).reshape(len(sos), 2, size)
    free, carried = scipy.signal.sosfilt(sos, np.zeros((_FILTERED, size)), axis=0, zi=unit)
    steady = scipy.signal.sosfilt_zi(sos).ravel()
    return FilterBlock(response, free, driven.reshape(size, -1), carried.reshape(size, size), steady)
