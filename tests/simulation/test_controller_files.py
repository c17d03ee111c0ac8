"""Controllers in TOML files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dynid import controllers
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from tests.support.closed_loops import TX40, refused, still, tx40_reference
from tests.support.saved_fields import assert_same_fields

KP, KV = [40.0, 40, 40, 80, 80, 80], [150.0, 260, 36, 15, 15, 4]
TWO = "[[1.0, -0.9], [1.0, -0.9], [1.0, -0.9], [1.0, -0.9], [1.0, -0.9], [1.0, -0.9]]"
FILES = {
    f'kind = "cascade"\nkp = {KP}\nkv = {KV}': controllers.cascade(1000.0, KP, KV),
    'kind = "pd"\nkp = 300\nkd = 5': controllers.pd(1000.0, [300.0] * 6, [5.0] * 6),
    'kind = "pid"\nkp = 300\nki = 20\nkd = 5': controllers.pid(1000.0, [300.0] * 6, [20.0] * 6, [5.0] * 6),
    'kind = "computed-torque"\nkp = 400\nkd = 40': controllers.computed_torque(1000.0, TX40, 400.0, 40.0),
    'kind = "impedance"\nstiffness = 500\ndamping = 20': controllers.impedance(1000.0, TX40, 500.0, 20.0),
    f'kind = "transfer-function"\nnumerators = {TWO}\ndenominators = {TWO}': controllers.transfer_function(
        1000.0, [[1.0, -0.9]] * 6, [[1.0, -0.9]] * 6
    ),
    'kind = "pd"\nkp = 300\nkd = 5\nfeedforward = "full"': controllers.pd(
        1000.0, [300.0] * 6, [5.0] * 6
    ).with_feedforward("full", TX40),
    'kind = "cascade"\nbandwidth = [10, 10, 10, 20, 20, 20]\ndamping_ratio = 0.8': controllers.cascade(
        1000.0, *controllers.bandwidth_gains(TX40, [10, 10, 10, 20, 20, 20], damping=0.8)
    ),
}


@pytest.mark.parametrize("text", FILES, ids=lambda x: x.split("\n")[0])
def test_a_file_is_the_controller_of_its_numbers(text: str, tmp_path: Path) -> None:
    """Matrices, knowledge and feed-forward are those of the maker; saved and read back, the torques are the same."""
    path, law = tmp_path / "loop.toml", FILES[text]
    path.write_text(f"rate = 1000\n{text}\n")
    read = controllers.load_controller(path, TX40)
    for name in "ABCD":
        np.testing.assert_array_equal(getattr(read, name), getattr(law, name))
    assert (read.rate, read.model_use, read.feedforward) == (law.rate, law.model_use, law.feedforward)
    controllers.save_controller(law, path)
    again = controllers.load_controller(path, TX40)
    assert again.name == law.name
    motion = tx40_reference(1000.0, 0.05)
    np.testing.assert_array_equal(
        simulate(TX40, ClosedLoop(controller=again), motion).torque,
        simulate(TX40, ClosedLoop(controller=law), motion).torque,
    )


OTHER = replace(TX40, gravity=np.array([0.0, 2.0, -9.0]))
MODELS = {
    "no model": controllers.pid(500.0, [300.0] * 6, [20.0] * 6, [5.0] * 6),
    "feed-forward": controllers.pd(500.0, [300.0] * 6, [5.0] * 6).with_feedforward("gravity", OTHER),
    "computed torque": controllers.computed_torque(500.0, OTHER, 400.0, 40.0),
    "gravity": controllers.impedance(500.0, OTHER, 500.0, 20.0),
    "compensation": replace(controllers.pd(500.0, [1.0] * 6, [1.0] * 6), model_use="compensation", model=OTHER),
    "augmented": replace(controllers.pd(500.0, [1.0] * 6, [1.0] * 6), model_use="augmented", model=OTHER),
    "linearisation": replace(controllers.pd(500.0, [1.0] * 6, [1.0] * 6), model_use="linearisation", model=OTHER),
}


@pytest.mark.parametrize("case", MODELS)
def test_every_field_of_a_controller_is_saved(case: str, tmp_path: Path) -> None:
    """The robot model of the controller included, which is not the robot that it is loaded for."""
    path, law = tmp_path / "loop.toml", replace(MODELS[case], name='joint "loop" \u00fc')
    controllers.save_controller(law, path)
    assert_same_fields(controllers.load_controller(path, TX40), law)


BAD = {
    "not a robot": (f'rate = 1000\nkind = "state-space"\nD = {[[1, 0, 0, 0]] * 6}\nmodel = "x"', "'model'"),
    "not TOML": ("kind =", "TOML"),
    "no kind": ("rate = 1000", "kind"),
    "unknown kind": ('rate = 1000\nkind = "lqr"', "lqr"),
    "no rate": ('kind = "pd"\nkp = 1\nkd = 1', "'rate'"),
    "no gain": ('rate = 1000\nkind = "pd"\nkp = 1', "'kd'"),
    "foreign key": ('rate = 1000\nkind = "pd"\nkp = 1\nkd = 1\nki = 1', "'ki'"),
    "word": ('rate = 1000\nkind = "pd"\nkp = "high"\nkd = 1', "'kp'"),
    "wrong count": ('rate = 1000\nkind = "pd"\nkp = [1, 2]\nkd = [1, 2]', "2 joints"),
    "ragged": (
        'rate = 1000\nkind = "transfer-function"\nnumerators = [[1], [1, 2]]\ndenominators = [[1]]',
        "numerators",
    ),
    "negative rate": ('rate = -1\nkind = "pd"\nkp = 1\nkd = 1', "rate"),
    "feed-forward": ('rate = 1000\nkind = "pd"\nkp = 1\nkd = 1\nfeedforward = "some"', "'some'"),
    "both": ('rate = 1000\nkind = "cascade"\nkp = 1\nkv = 1\nbandwidth = 3', "'kp'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused(case: str, tmp_path: Path) -> None:
    """One sentence with the file and the culprit."""
    text, words = BAD[case]
    path = tmp_path / "loop.toml"
    path.write_text(text)
    refused(lambda: controllers.load_controller(path, TX40), "loop.toml", words)


def test_missing_files_and_functions_are_refused(tmp_path: Path) -> None:
    """A path that is not there, one that cannot be written, a law that no file holds."""
    refused(lambda: controllers.load_controller(tmp_path / "none.toml", TX40), "none.toml")
    refused(lambda: controllers.save_controller(controllers.pd(10.0, 1.0, 1.0), tmp_path / "no" / "x.toml"), "x.toml")
    law = controllers.function(1000.0, 6, lambda *_: np.zeros(6))
    refused(lambda: controllers.save_controller(law, tmp_path / "x.toml"), "function")
    assert simulate(TX40, ClosedLoop(controller=law), still(6, 1000.0, 0.01)).completed
