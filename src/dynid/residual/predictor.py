"""Predictor: a residual compiled for control rate; a prediction allocates no arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import first_use, for_kernel, run
from dynid.errors import DamagedFile, InvalidShape, InvalidValue, MissingFile
from dynid.files import make_folder, write_text, writing
from dynid.reading import read_npz
from dynid.residual.layout import FIELDS, Flag, c_constants
from dynid.residual.prediction import Prediction, fill_missing
from dynid.residual.tables import Fields, fault, join
from dynid.saved import envelope, opened

__all__ = ["Predictor", "write_c"]


Array = NDArray[np.float64]

_HEAD = envelope("predictor")


class Predictor:
    """Rigid and learned torques at control rate: `Residual.predict`, compiled and working in preallocated arrays.

    Made with `residual.predictor()` or `Predictor.load(path)`. Without variances the learned torque does not fade
    with its uncertainty, and standard deviations are NaN. Use a predictor from one thread only: it stores its last
    position and its intermediate results.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the joint coordinates.
    n : int
        Number of joint coordinates.
    variance : bool
        Whether variances are computed.
    valid : bool
        Whether the last single sample was finite. If not, its torque was that of the rigid model alone.
    fields : dict of str to array
        The flat arrays of `dynid.residual.layout`.
    notes : tuple of str
        Lines for the heads of its files, such as the label of the estimate.
    """

    def __init__(self, fields: Fields, coordinates: tuple[str, ...], notes: Sequence[str] = ()) -> None:
        from dynid.residual import compiled

        self.fields = fields
        self.coordinates = coordinates
        self.notes = tuple(notes)
        self.n = len(coordinates)
        self.variance = bool(fields["flags"][Flag.VARIANCE])
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

    def reset(self) -> None:
        """Reset the last position to the home position and clear the last result."""
        self.valid = True
        self._results[:4] = np.nan
        self._results[4] = self.fields["home"]

    def __call__(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Array | None = None) -> Array:
        """Torque (n,) of one sample.

        Parameters
        ----------
        q, v, a : array, shape (n,)
            Position, velocity and acceleration, SI units.
        out : array, shape (n,), optional
            Array that receives the torque.

        Returns
        -------
        array, shape (n,)
            Torque in N m (N for prismatic joints); `out` if it was given.
        """
        shape = self._shape
        if np.shape(q) != shape or np.shape(v) != shape or np.shape(a) != shape:
            raise InvalidShape(
                f"q, v and a must each be ({self.n},), got {np.shape(q)}, {np.shape(v)} and {np.shape(a)}"
            )
        self._q[:] = q
        self._v[:] = v
        self._a[:] = a
        self.valid = self._kernel(*self._arguments)
        if out is None:
            return self._torque.copy()
        if out.shape != shape:
            raise InvalidShape(f"out must be ({self.n},), got {out.shape}", "out")
        out[:] = self._torque
        return out

    @property
    def std(self) -> Array:
        """The standard deviation (n,) of a measured torque about the torque of the last single sample."""
        return np.array(self._results[3, 0])

    def torques(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Torques (N, n) along a motion q, v, a (N, n), for feed-forward control."""
        return self.predict(q, v, a).torque

    def predict(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Prediction:
        """Torques and standard deviations along a motion q, v, a (N, n); does not change the last position."""
        from dynid.residual import compiled

        motion, valid = fill_missing(self.n, self.fields["home"], q, v, a)
        rigid, learned, share, std = np.zeros((4, len(valid), self.n))
        before = (self._index, self._numbers, *map(for_kernel, motion))
        run(compiled.batch, len(valid), before, (rigid, learned, share, std))
        learned[~valid], share[~valid] = 0.0, 0.0
        return Prediction(rigid + learned, rigid, learned, std, share, valid)

    def save(self, path: str | Path) -> None:
        """Save the predictor to one .npz file."""
        words = {"coordinates": np.array(self.coordinates), "notes": np.array(self.notes, dtype=str)}
        with writing(path) as part, part.open("wb") as file:
            head = {key: np.array(value) for key, value in _HEAD.items()}
            np.savez(file, **head, **words, **self.fields)  # type: ignore[arg-type]

    @staticmethod
    def load(path: str | Path) -> Predictor:
        """Load a predictor from its file; neither the robot nor the training data are needed."""
        try:
            content = read_npz(path)
        except OSError as error:
            raise MissingFile(f"cannot read '{path}': {error.strerror or error}") from None
        except ValueError:
            raise DamagedFile(f"'{path}' is not a saved predictor, or damaged") from None
        head = {
            key: content[key].item()
            for key in _HEAD
            if isinstance(content.get(key), np.ndarray) and content[key].ndim == 0
        }
        content = opened(content | head, "predictor", f"'{path}'")
        coordinates, notes = (
            tuple(str(word) for word in np.atleast_1d(content.pop(name, np.array([]))))
            for name in ("coordinates", "notes")
        )
        wrong = fault(content)
        if wrong is None and len(coordinates) != content["home"].size:
            wrong = "'coordinates' do not fit 'home'"
        if wrong:
            raise DamagedFile(f"'{path}' is damaged: {wrong}")
        return Predictor(content, coordinates, notes)

    def to_c(self, folder: str | Path, name: str = "predictor") -> tuple[Path, Path]:
        """Write the predictor as C99 code without dependencies.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist.
        name : str
            Name of the files and prefix of the C functions.

        Returns
        -------
        tuple of Path
            Paths of name.c and name.h.
        """
        return write_c(self.fields, self.coordinates, Path(folder), name, self.notes)


# Predictors as C99 code for controllers: constants and tables of `dynid.residual.layout`, and the functions.

_WIDTH = 118


def write_c(
    fields: Fields, coordinates: Sequence[str], folder: Path, name: str, notes: Sequence[str]
) -> tuple[Path, Path]:
    """Write name.c and name.h into a folder, which is created if missing; the notes stand in both heads."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InvalidValue(f"'{name}' cannot be a name in C: use letters, digits and underscores", "name")
    words = _words(fields, coordinates, name, notes)
    written = []
    make_folder(folder)
    for ending in ("c", "h"):
        text = resources.files("dynid.residual").joinpath("c", f"predictor.{ending}").read_text()
        path = folder / f"{name}.{ending}"
        write_text(path, re.sub("@([A-Z_]+)@", lambda found: words[found[1]], text))
        written.append(path)
    return written[0], written[1]


def _words(fields: Fields, coordinates: Sequence[str], name: str, notes: Sequence[str]) -> dict[str, str]:
    """Text of every placeholder of the templates."""
    sizes = {"N": "home", "D": "center", "JOINTS": "parent", "TERMS": "kind", "SETS": "set_size", "BLOCKS": "rows"}
    about = "".join(f" * {_plain(line)}\n" for line in notes)
    return {
        "NAME": name,
        "GUARD": f"{name.upper()}_H",
        "COORDINATES": ", ".join(map(_plain, coordinates)),
        "NOTES": f"{about} *\n" if notes else "",
        "CONSTANTS": c_constants(),
        "WEIGHTS": str(fields["weights"].size),
        "HOME": ", ".join(map(_number, fields["home"])),
        "TABLES": "".join(_table(field, fields[field]) for field in FIELDS),
        **{word: str(fields[field].size) for word, field in sizes.items()},
    }


def _plain(text: str) -> str:
    """Text for a comment in C."""
    return re.sub(r"[^\x20-\x7e]|/\*|\*/|\\", "?", text)


def _table(name: str, values: NDArray[Any]) -> str:
    """One constant array; C has no empty arrays, so an empty field holds a zero."""
    kind = "int" if values.dtype == np.int64 else "double"
    entries = [str(x) if kind == "int" else _number(x) for x in values.tolist()] or ["0"]
    lines, line = [], "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > _WIDTH:
            lines.append(line)
            line = "   "
        line += f" {entry},"
    return "\n".join([f"static const {kind} {name}[] = {{", *lines, line, "};\n"])


def _number(x: float) -> str:
    """The shortest text that is read back as the same number."""
    if np.isinf(x):
        return "INFINITY" if x > 0 else "-INFINITY"
    return repr(float(x))
