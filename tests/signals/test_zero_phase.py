"""The compiled zero-phase filter equals SciPy's, whatever the number of columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from dynid.signals.filters import decimate, zero_phase


@pytest.mark.parametrize("columns", [1, 3, 16, 50])
@pytest.mark.parametrize("factor", [2, 10])
def test_it_equals_sosfiltfilt(columns: int, factor: int) -> None:
    rng = np.random.default_rng(columns)
    x = np.cumsum(rng.normal(size=(400, columns)), axis=0)
    for sos in (
        scipy.signal.cheby1(8, 0.05, 0.8 / factor, output="sos"),
        scipy.signal.butter(4, 0.3 / factor, output="sos"),
    ):
        before = x.copy()
        expected = scipy.signal.sosfiltfilt(sos, x, axis=0, padlen=60)
        np.testing.assert_allclose(zero_phase(sos, x, 60), expected, atol=1e-11 * np.abs(expected).max())
        np.testing.assert_array_equal(x, before)


def test_without_padding_and_for_other_layouts() -> None:
    sos = scipy.signal.butter(2, 0.2, output="sos")
    x = np.random.default_rng(0).normal(size=(100, 8))
    expected = scipy.signal.sosfiltfilt(sos, x, axis=0, padtype=None)
    np.testing.assert_allclose(zero_phase(sos, x, 0), expected, atol=1e-12)
    np.testing.assert_array_equal(
        zero_phase(sos, np.asfortranarray(x)[:, ::2], 9), zero_phase(sos, x[:, ::2].copy(), 9)
    )


def test_decimation_keeps_the_other_axes() -> None:
    x = np.random.default_rng(0).normal(size=(200, 3, 2))
    out = decimate(x, (4,))
    assert out.shape == (50, 3, 2)
    np.testing.assert_allclose(out[:, 1, 1], decimate(x[:, 1, 1:], (4,))[:, 0], atol=1e-12)
    assert decimate(x[:, 0, 0], (4,)).shape == (50,)


def test_no_columns_stay_no_columns() -> None:
    assert decimate(np.zeros((400, 0)), (4, 2)).shape == (50, 0)
