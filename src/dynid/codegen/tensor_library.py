"""What the files for PyTorch and JAX have in common: how a library of tensors is spelled, and constants as text."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["TensorLibrary", "constants_text", "numbers"]


@dataclass(frozen=True)
class TensorLibrary:
    """A library of tensors: its name in the code, its imports, and the helpers that the shared text calls.

    The helpers are `_array(x, like)`, `_constant(name, like)` for an entry of _CONSTANTS, `_columns(x)` and
    `_samples_first(x)`, which move the samples to the last and to the first axis, `_take(x, index)` along the first
    axis, `_per_link` and `_link_by_link`, which evaluate a function of all links, and `_solve(M, x)`, which gives NaN
    where M is not positive definite.
    """

    module: str
    imports: str
    helpers: str

    def spelled(self, text: str) -> str:
        """Text that calls NumPy, for this library."""
        return re.sub(r"\bnp\.", f"{self.module}.", text)


def numbers(values: Iterable[float]) -> str:
    """A tuple of numbers as text."""
    texts = [repr(float(x) + 0.0) if math.isfinite(x) else f'float("{float(x)!r}")' for x in values]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def constants_text(name: str, values: Mapping[str, ArrayLike]) -> str:
    """A dictionary of arrays as nested tuples."""
    rows = [f'    "{x}": {_nested(np.asarray(y, dtype=float))},' for x, y in values.items()]
    wrapped = ["\n".join(textwrap.wrap(x, 118, subsequent_indent="        ", break_long_words=False)) for x in rows]
    return "\n".join([f"{name} = {{", *(f"    {x.lstrip()}" for x in wrapped), "}\n"])


def _nested(values: np.ndarray) -> str:
    if values.ndim == 1:
        return numbers(values)
    return f"({''.join(f'{_nested(x)}, ' for x in values).rstrip()})"
