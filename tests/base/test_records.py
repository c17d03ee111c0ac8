"""Records of other packages are found by their entry points; what is none is refused."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint

import pytest

from dynid.base.records import collect, joined, listed
from dynid.errors import Duplicate
from dynid.export.simulators.target import SimulatorTarget, Written
from tests.support.entry_points import add_entry_point
from tests.support.errors import expect_error

PACKAGE, GROUP = "dynid.export.simulators.targets", "dynid.simulators"
OTHER = SimulatorTarget(
    name="other", words="Other", about="A file.", ending=".txt", places={}, write=lambda a: Written("other", ())
)
SECOND = SimulatorTarget(
    name="mujoco", words="Other", about="A file.", ending=".txt", places={}, write=lambda a: Written("other", ())
)
Install = Callable[[str, str], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package with one entry point."""

    def installed(name: str, value: str) -> None:
        add_entry_point(monkeypatch, EntryPoint(name, f"{__name__}:{value}", GROUP))

    return installed


def test_records_of_other_packages_come_last(install: Install) -> None:
    install("other", "OTHER")
    assert listed(PACKAGE, GROUP)[-1] == "other" and listed(PACKAGE, "dynid.none")[-1] != "other"
    assert list(collect(PACKAGE, SimulatorTarget, GROUP, "simulator").values())[-1] is OTHER
    assert tuple(collect(PACKAGE, SimulatorTarget, GROUP, "simulator")) == listed(PACKAGE, GROUP)


def test_a_name_of_dynid_stays_its_own(install: Install) -> None:
    """Other faults of packages are in tests/test_plugins.py."""
    install("mujoco", "SECOND")
    assert collect(PACKAGE, SimulatorTarget, GROUP, "simulator")["mujoco"] is not SECOND


def test_two_records_of_one_name_are_a_mistake() -> None:
    with expect_error(Duplicate):
        joined([OTHER, OTHER], SimulatorTarget, GROUP, "simulator")
