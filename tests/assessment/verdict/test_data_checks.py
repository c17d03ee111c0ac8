"""What the verdict says of the recordings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dynid.assessment.data.torque import TORQUE_GAIN, TORQUE_SIGN
from dynid.assessment.finding import Finding
from dynid.assessment.verdict.data_checks import check_data

SIGN = Finding(TORQUE_SIGN, "error", "run", "wrist", "The sign is wrong.", "-1 times", "Reverse it.")
GAIN = Finding(TORQUE_GAIN, "warning", "run", "elbow", "The gain is wrong.", "3 times", "Give it.")


def test_a_wrong_sign_is_not_told_twice() -> None:
    """The check of signs tells of it; it still fails this check and is counted."""

    def checked(*findings: Finding) -> Any:
        return check_data(SimpleNamespace(findings=findings))  # type: ignore[arg-type]

    assert checked(SIGN, GAIN).words == "'elbow': The gain is wrong (3 times), and 1 more"
    assert checked(SIGN, GAIN).result == checked(SIGN).result == "failed"
    assert checked(SIGN).words == "'wrist': The sign is wrong (-1 times)"
    assert checked(GAIN).result == "warned" and checked().result == "passed"
