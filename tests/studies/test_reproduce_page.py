"""The terminal page of a reproduction."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from studies.reproduce.page import print_study
from studies.reproduce.study import Figure, Study


def test_words_are_printed_without_markup(capsys: pytest.CaptureFixture[str]) -> None:
    """Colours are for a terminal; brackets of names stay."""
    figures = [Figure("part", "q[0]", "1", "1", 0.0, 0.1, "equal"), Figure("part", "b", "1", "3", 2.0, 0.1, "equal")]
    print_study(Study("one", "a study", lambda: iter(figures)), figures)
    shown = capsys.readouterr().out
    assert shown.startswith("one: a study\n") and "q[0]" in shown and " ok " in shown and " OUT " in shown
    assert "[green]" not in shown and "[/" not in shown and "one: 2 figures, 1 out of tolerance" in shown


def test_numbers_of_numpy_are_written_as_json() -> None:
    figure = Figure("part", "count", "2", "2", np.int64(0), np.float64(0.5), "equal")  # type: ignore[arg-type]
    assert json.loads(json.dumps(asdict(figure)))["tolerance"] == 0.5
