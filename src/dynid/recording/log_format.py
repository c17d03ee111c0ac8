"""LogFormat: how a log is read, in one object that files and commands share."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["LogFormat"]

PerJoint = float | tuple[float, ...]


class LogFormat(BaseModel):
    """How a log is read: clock, columns, units and conversions to joint-side SI signals."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: str | int | None = "auto"
    rate: float | None = None
    columns: dict[str, Any] | None = None
    units: dict[str, str | tuple[str, ...]] = Field(default_factory=dict)
    scale: dict[str, PerJoint] = Field(default_factory=dict)
    sign: dict[str, PerJoint] = Field(default_factory=dict)
    gain: PerJoint | None = None
    motor_side: bool | tuple[str, ...] = False
    offset: dict[str, PerJoint] = Field(default_factory=dict)
    joints: tuple[str | int, ...] | None = None
    rows: tuple[int | None, int | None] | None = None
    bad_rows: Literal["error", "split"] = "error"
    topic: str | None = None
