"""The PC-DIDIM study: its cheap parts as they are, its verdicts on made-up tables, and a small Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from dynid.montecarlo.study import monte_carlo
from studies.reproduce import pc_didim, pc_didim_loops
from studies.reproduce.pc_didim_noise import (
    KEY,
    PAPER,
    READINGS,
    VELOCITIES,
    Cell,
    biased,
    claim_figures,
    grid_study,
    grid_table,
    slower,
)
from studies.reproduce.registry import find_study
from studies.reproduce.study import Figure


def _bad(figures: list[Figure]) -> list[Figure]:
    return [f for f in figures if not f.ok]


def test_registry_has_both_forms() -> None:
    """A short and a longer form, both of which can be continued; no halves."""
    study = find_study("pc-didim")
    assert study.run is pc_didim.figures and not study.needs_data
    assert [option for option in ("full", "half", "folder") if study.takes(option)] == ["full", "folder"]


@pytest.mark.parametrize("full", [False, True])
def test_both_forms_ask_for_their_runs(full: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """4 and 300 runs a scenario; the longer form has T7 to T10 and keeps every part in a place of its own."""
    asked: dict[str, tuple[Any, Any]] = {}

    def noted(name: str) -> Callable[..., Iterator[Figure]]:
        def part(*given: Any, **named: Any) -> Iterator[Figure]:
            asked[name] = given, named.get("folder", given[1] if len(given) > 1 else None)
            return iter(())

        return part

    loops = ["equality_figures", "_constraint_types", "start_figures", "instrument_figures"]
    for name in [*loops, "white_figures", "grid_figures"]:
        monkeypatch.setattr(pc_didim, name, noted(name))
    for name in ("_accurate", "_badly_filtered", "_poor_encoders", "_iterations", "_covariances", "_torque_errors"):
        monkeypatch.setattr(pc_didim, name, lambda _: iter(()))
    made: list[tuple[int, Path]] = []

    def run(study: Any, folder: Path, progress: Any) -> Any:
        made.append((study.runs, folder))
        return SimpleNamespace(summary=lambda _: "")

    monkeypatch.setattr(pc_didim, "monte_carlo", run)
    assert len(list(pc_didim.figures(full, tmp_path))) == 4
    assert made == [(300 if full else 4, tmp_path / "scenarios")]
    assert set(asked) == {"grid_figures", "white_figures", *(loops if full else [])}
    assert asked["grid_figures"][0] == ((10,) if full else (2, (PAPER[0],), (PAPER[1],)))
    if full:
        assert asked["instrument_figures"][0][0] >= 200
    folders = [folder for name, (_, folder) in asked.items() if name != "instrument_figures"]
    assert len(set(folders)) == len(folders) and all(f.parent == tmp_path for f in folders)


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
    figures = list(islice(pc_didim_loops.equality_figures(2), 5))
    assert all(f.name.startswith("equalities alone") for f in figures) and not _bad(figures)


def _table(**bias: float) -> dict[str, dict[str, float]]:
    """Tables of a truth of 100 and a standard deviation of 0.1, biased by so many percent."""
    given = dict.fromkeys(KEY, 0.0) | bias
    return {k: {"bias_percent": b, "mean": 100.0 + b, "truth": 100.0, "predicted": 0.1} for k, b in given.items()}


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


def test_a_bias_within_three_standard_deviations_is_none() -> None:
    table = _table(Izz_link1R=-9.0, mx_link2R=6.0)
    table["mx_link2R"]["predicted"] = 2.5
    assert biased(table) == ["Izz_link1R"]


def _cell(reading: str, velocities: float, scenario: str, ls: dict[str, float], pc: dict[str, float]) -> Cell:
    return Cell(reading, velocities, scenario, _table(**ls), _table(**pc), "2 of 2")


def test_claims_are_those_of_each_scenario() -> None:
    """Values are printed of S2 alone; each claim falls with its own value."""
    assert _cell(*PAPER, "S2", LOW, RIGHT).claims() == "abcde"
    assert _cell(*PAPER, "S3", LOW, RIGHT).claims() == "de"
    assert _cell(*PAPER, "S2", LOW | {"Ia_joint6": -80.0}, RIGHT).claims() == "acde"
    assert _cell(*PAPER, "S2", LOW, RIGHT | {"mx_link2R": 1.5}).claims() == "abcd"
    assert _cell(*PAPER, "S3", {}, {"fv_joint6": float("nan")}).claims() == ""
    assert Cell(*PAPER, "S2", {}, {}, "0 of 2").claims() == ""


def test_the_cell_of_the_papers_words_decides_a_claim() -> None:
    """Holding elsewhere does not help; the table marks that cell."""
    other = ("rounding", 0.5)
    good = [_cell(*PAPER, s, LOW, RIGHT) for s in ("S2", "S3")] + [_cell(*other, s, {}, {}) for s in ("S2", "S3")]
    figures = list(claim_figures(good, 2))
    assert len(figures) == 7 and not _bad(figures)
    assert figures[0].ours == "1 of 2 cells: std of 1 count, x 1"
    assert figures[-1].ours == "2 of 2 cells: std of 1 count, x 1; rounding, x 0.5"
    swapped = [_cell(*other, s, LOW, RIGHT) for s in ("S2", "S3")] + [_cell(*PAPER, s, {}, {}) for s in ("S2", "S3")]
    assert len(_bad(list(claim_figures(swapped, 2)))) == 5  # PC-DIDIM is right in both
    lines = grid_table(good).splitlines()
    assert len(lines) == 6 and ["**" in line for line in lines] == [False, False, True, True, False, False]
    assert "a b c d e" in lines[2] and "-24.0, -99.0, -26.0" in lines[2] and "0 of 6" in lines[4]


def test_slower_motion_is_the_same_path_for_longer() -> None:
    fast, slow = slower(1.0), slower(0.5)
    assert len(slow.q) == 2 * len(fast.q)
    np.testing.assert_allclose(slow.q[::2], fast.q, atol=1e-12)
    np.testing.assert_allclose(slow.v[::2], 0.5 * fast.v, atol=1e-12)
    np.testing.assert_allclose(slow.a[::2], 0.25 * fast.a, atol=1e-12)
    np.testing.assert_allclose((slow.q[2:] - slow.q[:-2]) * 2500.0, slow.v[1:-1], atol=1e-5)


def test_the_grid_has_each_reading_with_the_filters_of_its_scenario() -> None:
    study = grid_study(2, list(READINGS), VELOCITIES)
    assert len(study.units()) == 2 * 2 * 2 * 3 and set(study.robots) == {"1", "0.5"}
    assert dict(study.pairs or ())["std of 1 count, S3"] == "good"
    assert {f for n, f in study.pairs or () if n.endswith("S2")} == {"bad"}
    noise = {name: float(study.noise[f"{name}, S3"].noise) * 1000 / (2 * np.pi) for name in READINGS}  # type: ignore[arg-type]
    np.testing.assert_allclose(list(noise.values()), [12**-0.5, 3**-0.5, 1.0])


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
