"""Tables behind charts: shared axes once, others beside them, nothing lost."""

from __future__ import annotations

from urllib.parse import unquote

import numpy as np

from dynid.report.chart_data import ChartTable
from dynid.report.charts import Chart
from dynid.report.content import Figure


def test_series_over_one_axis_share_its_column() -> None:
    t, y = np.arange(3.0), np.array([1.0, np.nan, 3.0])
    upper = Chart("time in s", "torque in N m").line(t, y, "measured", "measured").line(t, 2 * t, "limit")
    lower = Chart("time in s", "residual in N m").line(t, t - 1, "error", "residual")
    table = ChartTable([upper.series, lower.series])
    assert table.csv() == (
        "time in s,measured: torque in N m,limit: torque in N m,residual: residual in N m\n0,1,0,-1\n1,,2,0\n2,3,4,1\n"
    )
    # Only lines with a name are read out.
    assert table.places == [[0, 1], [0, 3]]


def test_other_axes_follow_with_columns_of_their_own() -> None:
    chart = Chart("velocity in rad/s", "torque in N m").dots([1, 2, 3], [4, 5, 6], "measured")
    chart.line([0, 9], [7, 8], "predicted")
    lines = ChartTable([chart.series]).csv().splitlines()
    assert lines[1:] == ["1,4,0,7", "2,5,9,8", "3,6,,"]


def test_labels_with_commas_and_signs_survive_the_address() -> None:
    chart = Chart("a, b in %", "y #1 in \u00b0", "torque of a/b").line([0, 1], [2, 3], "measured", "x")
    figure = Figure([chart])
    assert figure.file == "torque-of-a-b.csv"
    head = unquote(figure.address.split("charset=utf-8,")[1]).splitlines()[0]
    assert head == '"a, b in %",x: y #1 in \u00b0'
    assert " " not in figure.address and "#" not in figure.address


def test_a_logarithmic_chart_is_not_read_out() -> None:
    chart = Chart("x in s", "y in m", log_y=True).line([1, 2], [1, 10], "measured", "measured")
    assert ChartTable([chart.series]).places == [[]] and "data-chart" not in Figure([chart]).picture
