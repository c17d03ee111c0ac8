"""Every plot as an image: its size, labels with units, and what is drawn."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

DPI = 80
# What is plotted from which fixtures; width and height of the image in inches; lines, points and areas at least.
CASES: dict[str, tuple[Callable[[Callable[[str], Any]], Any], tuple[float, float], int]] = {
    "recording": (lambda made: made("recording").plot(robot=made("robot")), (7.0, 10.0), 6),
    "finding": (lambda made: made("finding").plot(made("recording"), robot=made("robot")), (7.0, 2.8), 3),
    "excitation": (lambda made: made("excitation").plot(), (7.0, 13.2), 10),
    "validation": (lambda made: made("validation").plot(), (7.0, 3.0), 6),
    "estimate": (lambda made: made("estimate").plot(), (7.0, 4.15), 8),
    "friction of a joint": (lambda made: made("selection").fits[0].plot(), (5.0, 3.6), 2),
    "friction": (lambda made: made("selection").plot(models=2), (7.0, 3.2), 4),
    "residual": (lambda made: made("learned").residual.plot(made("learned").data), (7.0, 2.8), 4),
    "simulation": (lambda made: made("simulation").plot(), (7.0, 10.0), 8),
    "simulation error": (lambda made: made("horizons").plot(), (7.0, 2.4), 6),
}
_UNIT = re.compile(r"\([^)]+\)")


@pytest.fixture(autouse=True)
def no_figures_left() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.mark.parametrize("name", CASES)
def test_a_plot_is_saved_with_its_size_labels_and_content(name: str, request: pytest.FixtureRequest) -> None:
    draw, (width, height), parts = CASES[name]
    axes = [ax for ax in np.ravel(draw(request.getfixturevalue)) if ax.axison]
    file = io.BytesIO()
    axes[0].figure.savefig(file, format="png", dpi=DPI)
    file.seek(0)
    image = plt.imread(file, format="png")
    assert image.shape[:2] == pytest.approx((DPI * height, DPI * width), abs=1.5)
    ink = np.any(image[..., :3] < 0.8, axis=2)
    assert 0.005 < ink.mean() < 0.5
    drawn = sum(len(ax.lines) + len(ax.collections) + len(ax.patches) for ax in axes)
    assert drawn >= parts
    for ax in axes:
        labels = [x for x in (ax.get_xlabel(), ax.get_ylabel()) if x]
        assert labels and all(_UNIT.search(x) for x in labels), labels
    assert any(ax.get_xlabel() for ax in axes)
