"""Results as polars tables and as HTML: every public result has them."""

from __future__ import annotations

import inspect

import numpy as np
import polars as pl
import pytest

import dynid
from dynid.actuators import JointSigns, PositionErrors, SignResult
from dynid.assessment import Check, CheckCode, Finding, Findings
from dynid.assessment.data.channels import TORQUE_ZERO
from dynid.calibration import DriveGains, Payload
from dynid.friction import FrictionMap
from dynid.hypothesis import HypothesisTest, TestCode
from dynid.markup import HtmlSummary, frame_html
from tests.support.public import public_names

# Results that are words and not tables, and settings.
WORDS = {
    "Audit",
    "DataSet",
    "FeasibilityTest",
    "LogFormat",
    "SimulatorFile",
    "TrunkPayload",
    "ReadMeasurements",
    "WholeEstimate",
}


def results() -> list[type]:
    """Public classes with a summary."""
    found = {what for _, _, what in public_names() if inspect.isclass(what) and hasattr(what, "summary")}
    return sorted(found, key=lambda x: x.__qualname__)


@pytest.mark.parametrize("kind", results(), ids=lambda x: x.__name__)
def test_every_result_shows_itself_in_a_notebook(kind: type) -> None:
    assert callable(getattr(kind, "_repr_html_", None))
    if kind.__name__ not in WORDS:
        assert inspect.getdoc(kind.to_frame)  # type: ignore[attr-defined]
        assert kind.to_frame.__qualname__.split(".")[0] in (kind.__name__, "Result")  # type: ignore[attr-defined]


def test_a_long_table_is_cut_and_says_so() -> None:
    page = frame_html("<b>", pl.DataFrame({"x": np.linspace(0.0, 1.0, 120), "s": ["<i>"] * 120}), "a note")
    assert page.count("<tr>") == 101 and "20 more rows" in page and "a note" in page and "<i>" not in page
    assert ">-<" in frame_html("", pl.DataFrame({"x": [float("nan")]}))


def test_a_summary_is_escaped() -> None:
    class Words(HtmlSummary):
        def summary(self) -> str:
            return "a < b"

    assert "<pre>a &lt; b</pre>" in Words()._repr_html_()


def test_findings_are_a_tuple_and_a_table() -> None:
    one = Finding(TORQUE_ZERO, "warning", "r", "j", "What.", "3", "Do.")
    found = Findings((one,))
    assert found == (one,) and found.to_frame().row(0) == ("torque_zero", "warning", "r", "j", "What.", "3", "Do.")
    assert "1 warning" in found._repr_html_() and "none" in Findings()._repr_html_()
    assert Findings().to_frame().shape == (0, 7)


def test_small_results_as_tables() -> None:
    """One row per joint, parameter, horizon or test, with the values of the result."""
    two = np.array([1.0, 2.0])
    gains = DriveGains(("a", "b"), two, np.diag(two**2), (True, False), "wls", 0.1 * two)
    assert gains.to_frame()["std"].to_list() == [1.0, 2.0] and "drive gains" in gains._repr_html_()
    body = np.arange(10.0)
    load = Payload(
        robot="arm",
        link="tool",
        form="full",
        feasible=True,
        inertial=body,
        covariance=np.eye(10),
        shown=(True,) * 10,
        parts=np.zeros((0, 10)),
        channels=(),
        rows=(),
        worth=(),
        noise=two[:0],
        unexplained=two[:0],
        mass_sources={},
        gain_std=0.0,
        gains_known=False,
        channel_mass=two[:0],
        channel_mass_std=two[:0],
        scatter=0.0,
        arm_scale=np.nan,
        parts_ratio=1.0,
        bare=two[:0],
    )
    assert load.to_frame()["unit"].to_list() == ["kg", *["kg m"] * 3, *["kg m2"] * 6]
    measured = FrictionMap("a", two, two, two, two, (3, 4)).to_frame()
    assert measured.columns == ["joint", "velocity", "friction", "std", "load", "pairs"] and measured.height == 2
    errors = PositionErrors(("a", "b"), two, two, np.array([0.1]), two[None]).to_frame()
    assert errors.rows()[:2] == [("a", None, 1.0, 1.0), ("a", 0.1, 1.0, 1.0)]
    signs = JointSigns(("a",), (SignResult.SAME,), np.array([1]), two[:1], two[:1], two[:1], 1.0, 0.1, 5)
    assert signs.to_frame()["result"].to_list() == ["as the model"]
    test = HypothesisTest(TestCode.HOMOSCEDASTICITY, "n", "null", 1.0, "chi2", 0.01, 0.05, "v", "a")
    assert test.to_frame().row(0) == ("n", 1.0, "chi2", 0.01, 0.01, True)
    check = Check(CheckCode.DATA, "passed", "fine")
    table = dynid.Assessment("r", "wls", (check,)).to_frame()
    assert table.row(0)[:4] == ("data", "passed", "fine", None)


def test_base_parameters_and_estimates_as_tables() -> None:
    robot = dynid.load_robot("twolink")
    base = dynid.base_parameters(robot)
    table = base.to_frame()
    assert table["parameter"].to_list() == list(base.names) and table["prior"].to_list() == base.values().tolist()
    t = np.arange(0.0, 3.0, 0.01)
    q = np.column_stack([np.sin(2.0 * t), np.cos(3.0 * t)])
    v = np.gradient(q, t, axis=0)
    torque = dynid.inverse_dynamics(robot, q, v, np.gradient(v, t, axis=0))
    recording = dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque),))
    estimate = dynid.identify(robot, recording, "wls", noise_model="white")
    table = estimate.to_frame()
    assert table["estimate"].to_list() == estimate.beta.tolist()
    assert bool((table["low"] <= table["estimate"]).all()) and bool((table["high"] >= table["estimate"]).all())
    validation = estimate.validate(recording)
    assert validation.to_frame()["rmse"].to_list() == validation.rmse.tolist()
    samples = validation.samples()
    assert samples.height == sum(validation.rows)
    assert samples["residual"].to_numpy() == pytest.approx((samples["measured"] - samples["predicted"]).to_numpy())
    assert recording.to_frame().columns == ["run", "t", "q_joint1", "q_joint2", "torque_joint1", "torque_joint2"]
    assert "rmse" in validation._repr_html_()
