"""Predictor: a residual in the form for control, compiled and without allocation."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import first_use, for_kernel, run
from dynid.errors import DataError
from dynid.files import writing
from dynid.residual.residual import Prediction, Residual, mended
from dynid.residual.tables import Fields, fault, join, tabulate

__all__ = ["Predictor"]

Array = NDArray[np.float64]

_FORMAT = "dynid predictor 1"


class Predictor:
    """Rigid and learned torques at control rate: what `Residual.predict` gives, compiled, from preallocated memory.

    Made with `Predictor.of(residual)` or `Predictor.load(path)`. Without variances the learned part does not fade, and
    deviations are NaN. One predictor serves one thread: it remembers its last position and works in its own memory.

    `valid` says whether the last single sample was finite; where not, its torque was the rigid one alone.
    """

    def __init__(self, fields: Fields, coordinates: tuple[str, ...]) -> None:
        from dynid.residual import compiled

        self.fields = fields
        self.coordinates = coordinates
        self.n = len(coordinates)
        self.variance = bool(fields["flags"][1])
        self._shape = (self.n,)
        self._state = np.zeros((3, 1, self.n))
        self._q, self._v, self._a = self._state[:, 0]
        self._results = np.zeros((5, 1, self.n))
        self._torque = np.zeros(self.n)
        self._index, self._numbers = join(fields)
        self._kernel = compiled.single
        self._arguments = (self._index, self._numbers, np.zeros(0), self._state, self._results, self._torque)
        with first_use(compiled.single):
            work = np.zeros(compiled.room(self._index, self._numbers))
            self._arguments = (self._index, self._numbers, work, self._state, self._results, self._torque)
            self._kernel(*self._arguments)
        self.reset()

    @staticmethod
    def of(residual: Residual, variance: bool = True, rank: int = 100) -> Predictor:
        """The predictor of a residual; variances from at most `rank` directions a block, never less than they are."""
        if rank < 1:
            raise DataError(f"rank must be positive, got {rank}")
        return Predictor(tabulate(residual, variance, rank), residual.robot.coordinates)

    def reset(self) -> None:
        """Forget the last position and what was computed for it."""
        self.valid = True
        self._results[:4] = np.nan
        self._results[4] = self.fields["home"]

    def __call__(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Array | None = None) -> Array:
        """Torque (n,) of one sample, written into `out` where one is given."""
        shape = self._shape
        if np.shape(q) != shape or np.shape(v) != shape or np.shape(a) != shape:
            raise DataError(f"q, v and a must each be ({self.n},), got {np.shape(q)}, {np.shape(v)} and {np.shape(a)}")
        self._q[:] = q
        self._v[:] = v
        self._a[:] = a
        self.valid = self._kernel(*self._arguments)
        if out is None:
            return self._torque.copy()
        if out.shape != shape:
            raise DataError(f"out must be ({self.n},), got {out.shape}")
        out[:] = self._torque
        return out

    @property
    def deviation(self) -> Array:
        """Deviation (n,) of a measurement about the torque of the last single sample."""
        return np.array(self._results[3, 0])

    def torques(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Torques (N, n) along a motion; what controllers feed forward."""
        return self.predict(q, v, a).torque

    def predict(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Prediction:
        """Torques of a motion, (N, n) each, with their deviation."""
        from dynid.residual import compiled

        motion, valid = mended(self.n, self.fields["home"], q, v, a)
        rigid, learned, share, deviation = np.zeros((4, len(valid), self.n))
        before = (self._index, self._numbers, *map(for_kernel, motion))
        run(compiled.batch, len(valid), before, (rigid, learned, share, deviation))
        learned[~valid], share[~valid] = 0.0, 0.0
        return Prediction(rigid + learned, rigid, learned, deviation, share, valid)

    def save(self, path: str | Path) -> None:
        """Write all there is to it into one .npz file."""
        with writing(path) as part, part.open("wb") as file:
            np.savez(file, format=np.array(_FORMAT), coordinates=np.array(self.coordinates), **self.fields)  # type: ignore[arg-type]

    @staticmethod
    def load(path: str | Path) -> Predictor:
        """A predictor from its file; neither a robot nor the data are needed."""
        try:
            file = np.load(path, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("a single array")
            with file:
                content = {name: file[name] for name in file.files}
        except OSError as error:
            raise DataError(f"cannot read '{path}': {error.strerror or error}") from None
        except (ValueError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error):
            raise DataError(f"'{path}' is not a predictor, or damaged") from None
        form = str(content.pop("format", ""))
        coordinates = tuple(str(name) for name in np.atleast_1d(content.pop("coordinates", np.array([]))))
        if form != _FORMAT:
            raise DataError(f"'{path}' is not a predictor of this version ('{_FORMAT}')")
        wrong = fault(content)
        if wrong is None and len(coordinates) != content["home"].size:
            wrong = "'coordinates' do not fit 'home'"
        if wrong:
            raise DataError(f"'{path}' is damaged: {wrong}")
        return Predictor(content, coordinates)

    def to_c(self, folder: str | Path, name: str = "predictor") -> tuple[Path, Path]:
        """Write name.c and name.h, plain C99, into a folder."""
        from dynid.residual.c_code import write_c

        return write_c(self.fields, self.coordinates, Path(folder), name)
