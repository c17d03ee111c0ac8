"""Records of other packages are found by their entry points; what is none is refused."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint

import pytest

from dynid.base.records import collect, listed
from dynid.errors import DynidError
from dynid.export.simulators.target import SimulatorTarget, Written
from tests.support.entry_points import add_entry_point

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
    assert list(collect(PACKAGE, SimulatorTarget, GROUP).values())[-1] is OTHER
    assert tuple(collect(PACKAGE, SimulatorTarget, GROUP)) == listed(PACKAGE, GROUP)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("other", "MISSING", "the entry point 'other' .* cannot be loaded"),
        ("other", "PACKAGE", "is no SimulatorTarget of this name"),
        ("another", "OTHER", "is no SimulatorTarget of this name"),
        ("mujoco", "SECOND", "two records SimulatorTarget of the name 'mujoco'"),
    ],
)
def test_what_is_no_record_is_refused(install: Install, name: str, value: str, message: str) -> None:
    install(name, value)
    with pytest.raises(DynidError, match=message):
        collect(PACKAGE, SimulatorTarget, GROUP)
