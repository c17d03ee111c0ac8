"""The records of the checks of recordings: names, codes, what they need, and those of other packages."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import pkgutil
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

import dynid
from dynid.assessment import Finding, FindingCode, RecordingCheck, finding_codes, recording_checks
from dynid.assessment.data import __path__ as folder
from dynid.assessment.data.context import Context
from dynid.cli.demo import synthetic_recording
from dynid.mocap import findings, plate_checks
from dynid.mocap.findings import CAPTURE_CODES
from dynid.recording.recording import Run
from dynid.robot.model import Robot
from tests.support.entry_points import add_entry_point

MODULES = [importlib.import_module(f"dynid.assessment.data.{x.name}") for x in pkgutil.iter_modules(folder)]
MODULES += [findings, plate_checks]
ROWS_MANY = FindingCode("rows_many", "there are many rows", "info")


def check_many(robot: Robot, run: Run, context: Context) -> Iterator[Finding]:
    yield context.found(ROWS_MANY, run, None, "There are many rows.", f"{len(run)} rows", "Nothing.")


MANY = RecordingCheck(name="many", finds="many rows", advice="nothing", codes=(ROWS_MANY,), of_run=check_many)


def test_every_code_belongs_to_a_check_that_gives_it() -> None:
    """A code that no check gives is a promise that nothing keeps; one without a check is not documented."""
    known = {*finding_codes().values(), *CAPTURE_CODES}
    trees = [ast.parse(inspect.getsource(module)) for module in MODULES]
    used = Counter(x.id for tree in trees for x in ast.walk(tree) if isinstance(x, ast.Name) and x.id.isupper())
    for module in MODULES:
        for name, code in vars(module).items():
            if isinstance(code, FindingCode):
                assert code in known and code == name.lower() and code.meaning
                assert used[name] > 2, f"{name} is written and listed, but no check gives it"


def test_every_check_runs_and_has_codes_of_its_own() -> None:
    checks = list(recording_checks().values())
    assert all((x.of_run is None) != (x.of_recording is None) for x in checks)
    codes = [code for x in checks for code in x.codes]
    assert len(codes) == len(set(codes)) == len(finding_codes()) - 1  # that of data sets is not of a check


def test_checks_apply_where_they_have_what_they_need() -> None:
    robot = dynid.load_robot("twolink")
    unordered = [name for name, x in recording_checks().items() if x.applies(robot, ordered=False)]
    jointless = [name for name, x in recording_checks().items() if not x.joints]
    assert unordered == ["values"] and jointless == ["clock", "wrench"]


def test_a_check_of_another_package_runs_last(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("many", f"{__name__}:MANY", "dynid.checks")
    add_entry_point(monkeypatch, point)
    recording_checks.cache_clear()
    try:
        assert list(recording_checks())[-1] == "many" and "rows_many" in finding_codes()
        robot = dynid.load_robot("twolink")
        found = dynid.check(robot, synthetic_recording(robot, 0, duration=5.0))
        assert [(f.code, f.severity) for f in found if f.code == "rows_many"] == [("rows_many", "info")]
    finally:
        recording_checks.cache_clear()


def test_codes_are_compared_as_text_wherever_they_went() -> None:
    sent = pickle.loads(pickle.dumps(ROWS_MANY))
    assert sent == ROWS_MANY == "rows_many" and sent.severities == ("info",) and {sent: 1}["rows_many"] == 1
