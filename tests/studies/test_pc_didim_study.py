"""The PC-DIDIM study: its cheap parts as they are, its verdicts on made-up tables, and a small Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from dynid.montecarlo.study import monte_carlo
from studies.reproduce import pc_didim
from studies.reproduce.registry import find_study
from studies.reproduce.study import Figure


def _bad(figures: list[Figure]) -> list[Figure]:
    return [f for f in figures if not f.ok]


def test_registry_has_both_forms() -> None:
    """Forty runs by default, three hundred on request."""
    study = find_study("pc-didim")
    assert study.run is pc_didim.figures and study.full is pc_didim.full_figures and not study.needs_data


def test_both_forms_ask_for_their_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 and 300 runs a scenario; the longer form tests at least 200 times."""
    asked: list[dict[str, int]] = []
    monkeypatch.setattr(pc_didim, "_figures", lambda **counts: asked.append(counts) or iter(()))
    assert not list(pc_didim.figures()) and not list(pc_didim.full_figures())
    assert [counts["runs"] for counts in asked] == [40, 300]
    assert asked[1]["tests"] >= 200


def test_counts_of_base_parameters_are_the_known_ones() -> None:
    """52, 54, 60 and 61, by which friction and inertia of motor 6 are there."""
    figures = list(pc_didim._ranks())
    assert len(figures) == 4 and not _bad(figures)
    assert [f.ours for f in figures] == ["52", "54", "60", "61"]


def test_covariance_identities_hold() -> None:
    """(53), (55) and (56) on a recording of the study's own loop."""
    figures = list(pc_didim._identities("T6"))
    assert len(figures) == 3 and not _bad(figures)


@pytest.mark.slow
def test_equalities_alone_leave_base_values_where_they_are() -> None:
    """Two recordings: dependent parameters fixed with 5 % error move the kept ones by -K d, and no base value."""
    figures = list(islice(pc_didim._equalities(2), 5))
    assert all(f.name.startswith("equalities alone") for f in figures) and not _bad(figures)


def _table(**bias: float) -> dict[str, dict[str, float]]:
    """Tables of a truth of 100 and a standard deviation of 0.1, biased by so many percent."""
    given = dict.fromkeys(pc_didim._KEY, 0.0) | bias
    return {k: {"bias_percent": b, "mean": 100.0 + b, "truth": 100.0, "std": 0.1} for k, b in given.items()}


def _found(patch: pytest.MonkeyPatch, figures: Callable[..., Iterator[Figure]], ls: Any, pc: Any) -> list[Figure]:
    made = {"PC-IDIM-LS": _table(**ls), "PC-DIDIM": _table(**pc)}
    patch.setattr(pc_didim, "_of", lambda _main, _noise, _filters, method: made[method])
    return list(figures(None))


LOW = {"Izz_link1R": -24.0, "Ia_joint6": -99.0, "fv_joint6": -26.0}
RIGHT = {"Izz_link1R": 0.1, "mx_link2R": -0.7, "fv_joint6": 0.9}


@pytest.mark.parametrize(
    ("ls", "pc", "failing"),
    [
        ({}, {}, []),
        ({"Izz_link1R": -9.0}, {}, ["Izz_link1R: bias of PC-IDIM-LS %"]),
        ({"Izz_link1R": 24.0}, {}, ["Izz_link1R: bias of PC-IDIM-LS %"]),  # biased, but the other way
        ({"Ia_joint6": -80.0}, {}, ["Ia_joint6: bias of PC-IDIM-LS %"]),
        ({}, {"mx_link2R": -1.2}, ["mx_link2R: bias of PC-DIDIM %"]),
        (
            {},
            {"Izz_link1R": 1.2, "fv_joint6": 3.0},
            ["Izz_link1R: bias of PC-DIDIM %", "fv_joint6: bias of PC-DIDIM %"],
        ),
        ({}, {"fv_joint6": float("nan")}, ["fv_joint6: bias of PC-DIDIM %"]),
    ],
)
def test_table_ii_fails_where_the_methods_do_not_part(
    ls: dict[str, float], pc: dict[str, float], failing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Least squares must be low by enough, PC-DIDIM right within 1 %."""
    figures = _found(monkeypatch, pc_didim._badly_filtered, LOW | ls, RIGHT | pc)
    assert [f.name for f in _bad(figures)] == failing
    assert [f.published for f in figures] == ["-23.8", "-100", "-26.1", *["0.1 to 0.7"] * 3]


@pytest.mark.parametrize(("ls", "ok"), [({"mx_link2R": 7.0}, True), ({"mx_link2R": 4.0}, False), ({}, False)])
def test_poor_encoders_are_not_compared_with_table_ii(
    ls: dict[str, float], ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The paper prints no value of S3: no figure may show one."""
    figures = _found(monkeypatch, pc_didim._poor_encoders, ls, RIGHT)
    assert figures[0].ok is ok and all(f.ok for f in figures[1:])
    assert not any(c.isdigit() for f in figures for c in f.published)


def test_a_bias_within_the_scatter_of_the_runs_is_none() -> None:
    table = _table(Izz_link1R=-9.0, mx_link2R=6.0)
    table["mx_link2R"]["std"] = 2.5
    assert pc_didim.biased(table) == ["Izz_link1R"]


def test_torque_errors_of_a_simulation_stand_beside_no_published_one() -> None:
    """And noise in the regressor that would make the torques better is out."""
    rows = [
        {"noise": "accurate", "filter": f, "method": m, **{f"error{j}": e for j in range(1, 7)}}
        for f, m, e in (
            ("good", "PC-IDIM-LS", 1.0), ("good", "PC-DIDIM", 1.0), ("bad", "PC-IDIM-LS", 4.0), ("bad", "PC-DIDIM", 5.0)
        )
    ]  # fmt: skip
    figures = list(pc_didim._torque_errors(SimpleNamespace(fits=pl.DataFrame(rows))))  # type: ignore[arg-type]
    assert {f.published for f in figures} == {"-"} and [f.ok for f in figures] == [True] * 4 + [False]


def test_scenarios_are_those_of_the_paper() -> None:
    """S1, S2 and S3, two methods each, at 5 kHz; the truth has no coupling inertia and smooth Coulomb friction."""
    study = pc_didim.scenarios(1)
    assert set(study.noise) == {"accurate", "poor"} and set(study.filters) == {"good", "bad"}
    assert tuple(study.pairs) == (("accurate", "good"), ("accurate", "bad"), ("poor", "good"))
    assert [e.name for e in study.estimators] == ["PC-IDIM-LS", "PC-DIDIM"] and study.runs == 1
    (scenario,) = study.robots.values()
    assert scenario.loop.controller is not None and scenario.loop.controller.rate == 5000.0
    truth = pc_didim.tx40_truth()
    assert "Ia_motor6" not in truth.parameter_names and {t.slope for t in truth.drives if t.is_coulomb} == {100.0}


def test_noise_has_one_density_for_all_rates() -> None:
    """A fifth of the rate, a fifth of the variance; rounding of a count has a twelfth of its square."""
    fast, slow = pc_didim.tx40_sensors(32000), pc_didim.tx40_sensors(32000, 1000.0)
    assert fast.noise == pytest.approx(2 * np.pi / 32000 / np.sqrt(12))
    assert slow.noise == pytest.approx(fast.noise / np.sqrt(5))
    np.testing.assert_allclose(slow.torque_noise, fast.torque_noise / np.sqrt(5))


@pytest.mark.slow
def test_bad_filters_bias_least_squares_but_not_pc_didim() -> None:
    """Four runs of S1 to S3: the figures that the bias is far larger than its scatter in."""
    found = monte_carlo(pc_didim.scenarios(4))
    ls, pc = (pc_didim._of(found, "accurate", "bad", m)["Izz_link1R"] for m in ("PC-IDIM-LS", "PC-DIDIM"))
    assert ls["bias_percent"] < -10.0
    assert abs(pc["bias_percent"]) < 1.0
    fits = found.fits.filter(pl.col("method") == "PC-DIDIM")
    assert fits.height == 12 and (fits["outcome"] == "converged").all()
    assert fits["smallest"].min() > -1e-9 and fits["iterations"].max() < 10
