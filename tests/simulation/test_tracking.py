"""Root mean square tracking errors of a simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.sensors import Sensors
from tests.support.closed_loops import TX40, still, tx40_reference, wheel


def test_error_at_rest_is_push_over_stiffness() -> None:
    """Held where the springs of the PD law balance a constant push, joint by joint."""
    robot = dynid.load_robot("twolink").with_drives("none", rotor_inertia=False).with_gravity([0, 0, 0])
    push, kp = np.array([4.0, -1.5]), np.array([80.0, 50.0])
    path = still(2, 1000.0, 0.2, 0.3)
    run = simulate(
        robot,
        ClosedLoop(controller=controllers.pd(1000.0, kp, 0.2), sensors=Sensors(velocity="exact")),
        path,
        disturbance=np.tile(push, (len(path.q), 1)),
        initial=(path.q[0] + push / kp, np.zeros(2)),
    )
    np.testing.assert_allclose(run.tracking_rmse, np.abs(push / kp), rtol=1e-9)


def test_error_along_a_sine_is_that_of_the_transfer_function() -> None:
    """|1 - T| A / sqrt 2 of a linear joint over whole periods after the transient, from its transfer function T."""
    rate, kp, kd, fv, w = 10_000.0, 60.0, 4.0, 1.0, 2 * np.pi * 2.0
    t = np.arange(30_000) / rate
    path = 0.2 * np.sin(w * t)[:, None]
    law = controllers.pd(rate, kp, kd)
    whole = simulate(wheel(0.5, fv=fv), ClosedLoop(controller=law, sensors=Sensors(velocity="exact")), path)
    last = slice(20_000, 30_000)  # two periods
    run = replace(whole, t=whole.t[last], q=whole.q[last], reference=whole.reference[last])
    s = 1j * w
    missed = 1 - (kd * s + kp) / (0.5 * s**2 + (kd + fv) * s + kp)
    # The torque is held for 0.1 ms.
    assert run.tracking_rmse[0] == pytest.approx(abs(missed) * 0.2 / np.sqrt(2), rel=2e-3)


def test_page_and_summary_hold_the_error() -> None:
    law = controllers.pd(1000.0, [2000, 2000, 600, 300, 300, 100], [60, 60, 20, 8, 8, 3])
    run = simulate(TX40, ClosedLoop(controller=law), tx40_reference(1000.0, 0.2))
    page = run.to_dict()["joints"]
    assert [page[name]["tracking_rmse"] for name in TX40.coordinates] == list(run.tracking_rmse)
    assert all(0 < x["tracking_rmse"] < x["tracking"] for x in page.values())
    assert "RMS error" in run.summary() and f"{run.tracking_rmse[1]:.4g}" in run.summary()
    assert f"{run.tracking_rmse[1]:.4g} rad" in run._repr_html_()
