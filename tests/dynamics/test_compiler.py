"""Steps and kernels: a step is code of the kernels that call it, and plain Python elsewhere."""

from __future__ import annotations

import numpy as np

from dynid.dynamics.kernels.compiler import kernel, step


@step
def _square(x, i):  # type: ignore[no-untyped-def]
    return x[i] * x[i]


@step
def _sum(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(x.shape[0]):
        total += _square(x, i)
    return total


@kernel
def _length(x):  # type: ignore[no-untyped-def]
    return np.sqrt(_sum(x))


@kernel
def _mean_square(x):  # type: ignore[no-untyped-def]
    return _sum(x) / x.shape[0]


def test_kernels_share_steps_within_steps() -> None:
    x = np.array([3.0, 4.0])
    assert _length(x) == 5.0 and _mean_square(x) == 12.5


def test_a_step_is_interpreted_in_python_before_and_after_it_was_compiled() -> None:
    """Compiled code of a step has no entry for Python: a call of it would end the process."""
    x = np.arange(4.0)
    for _ in range(2):
        assert _sum(x) == 14.0 and _square(x, 3) == 9.0
        assert _length(x) == np.sqrt(14.0)


def test_a_step_takes_other_types_than_a_kernel_gave_it() -> None:
    assert _length(np.array([3.0, 4.0], dtype=np.float32)) == 5.0
    assert _sum(np.array([1, 2])) == 5
