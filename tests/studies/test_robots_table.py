"""Every real robot identified with defaults, against what is known of its recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.reproduce.registry import find_study
from studies.reproduce.robot_cases import CASES
from studies.reproduce.study import Figure, published

pytestmark = pytest.mark.real


@pytest.mark.slow
def test_no_robot_is_worse_than_what_is_known_of_it(data: Path) -> None:
    """Judged by the mean over the joints; single joints that are worse by more than a tenth are owned up to."""
    figures = list(find_study("robots").run())
    known = published("robots")
    assert set(known) == set(CASES) and len({f.section for f in figures}) == len(CASES)
    assert all(f.ok for f in figures)
    assert sum(f.name.startswith("mean of joints") for f in figures) == 18
    worse = {f.name for f in figures if _much_worse(f)}
    assert worse == {name for robot in known.values() for name in robot.get("worse", ())}


def _much_worse(figure: Figure) -> bool:
    """Whether a joint's error exceeds the known one by more than a tenth of it and half of its last digit."""
    known = figure.published.split()[0]
    if known in ("none", "<="):
        return False
    digit = 0.005 if figure.ours.endswith("N m") else 0.05 if not known.endswith(".0") else 0.5
    return figure.difference > 0.1 * float(known) + digit
