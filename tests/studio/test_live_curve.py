"""A curve of reported values."""

from __future__ import annotations

from dynid.progress import Progress
from dynid.studio.live_curve import LiveCurve


def test_a_curve_takes_reports_with_its_values() -> None:
    curve = LiveCurve("criterion (less is better)")
    assert curve.words() == "" and not curve.add(Progress("reading"))
    assert not curve.add(Progress("half", values={"criterion": 1.0}))
    for k, value in enumerate((5.0, 6.0, 3.0)):
        assert curve.add(Progress("searching", values={"criterion": value, "best": min(5.0, value)}), now=10.0 + k)
    svg = curve.svg()
    assert len(curve) == 3 and curve.words() == "from 5 to 3 in 2.0 s"
    assert svg.count('class="dots tried"') == 1 and 'class="line best"' in svg
    assert "time of the search in s" in svg and "criterion (less is better)" in svg
