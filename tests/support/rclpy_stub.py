"""The few names of ROS 2 that the example node uses: plain messages, and a node that keeps what it publishes."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest


def _message(**defaults: Any) -> type:
    """A message class with fields of their own; unknown fields are refused, as those of ROS are."""

    class Message:
        def __init__(self, **given: Any) -> None:
            unknown = set(given) - set(defaults)
            assert not unknown, unknown
            for name, value in defaults.items():
                setattr(self, name, given.get(name, value() if callable(value) else value))

    return Message


def _header() -> SimpleNamespace:
    return SimpleNamespace(stamp=SimpleNamespace(sec=0, nanosec=0), frame_id="")


class Publisher:
    """Keeps what is published."""

    def __init__(self, kind: type) -> None:
        self.kind, self.messages = kind, []

    def publish(self, message: Any) -> None:
        """Keep a message of the declared kind."""
        assert isinstance(message, self.kind)
        self.messages.append(message)


class Node:
    """A node whose parameters come from `given`."""

    given: ClassVar[dict[str, Any]] = {}

    def __init__(self, name: str) -> None:
        self.name, self.publishers, self.subscriptions, self.timers = name, {}, {}, []
        self.log: list[str] = []

    def declare_parameter(self, name: str, value: Any) -> SimpleNamespace:
        """A parameter: as given, of the type of its default."""
        found = self.given.get(name, value)
        assert isinstance(found, type(value))
        return SimpleNamespace(value=found)

    def create_publisher(self, kind: type, topic: str, depth: int) -> Publisher:
        """A publisher that keeps its messages."""
        self.publishers[topic] = Publisher(kind)
        return self.publishers[topic]

    def create_subscription(self, kind: type, topic: str, callback: Any, qos: Any) -> None:
        """Remember who takes the messages of a topic."""
        self.subscriptions[topic] = (kind, callback)

    def create_timer(self, period: float, callback: Any) -> None:
        """Remember a timer."""
        assert period > 0
        self.timers.append(callback)

    def get_logger(self) -> SimpleNamespace:
        """A log that is a list."""
        return SimpleNamespace(info=self.log.append, warning=self.log.append)

    def get_clock(self) -> SimpleNamespace:
        """A clock that stands still."""
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=lambda: SimpleNamespace(sec=1, nanosec=0)))

    def destroy_node(self) -> None:
        """Nothing to release."""


def install(patch: pytest.MonkeyPatch, parameters: dict[str, Any]) -> None:
    """Put the stub in place of ROS for one test."""
    Node.given = parameters
    inertia = lambda: SimpleNamespace(m=0.0, com=SimpleNamespace(x=0.0, y=0.0, z=0.0))  # noqa: E731
    status = _message(level=b"\x00", name="", message="", hardware_id="", values=list)
    status.OK, status.WARN = b"\x00", b"\x01"  # type: ignore[attr-defined]
    names: dict[str, dict[str, Any]] = {
        "rclpy": {"init": lambda: None, "spin": lambda node: None, "try_shutdown": lambda: None},
        "rclpy.node": {"Node": Node},
        "rclpy.qos": {"qos_profile_sensor_data": object()},
        "sensor_msgs": {},
        "sensor_msgs.msg": {
            "JointState": _message(header=_header, name=list, position=list, velocity=list, effort=list)
        },
        "geometry_msgs": {},
        "geometry_msgs.msg": {"InertiaStamped": _message(header=_header, inertia=inertia)},
        "std_msgs": {},
        "std_msgs.msg": {"String": _message(data="")},
        "diagnostic_msgs": {},
        "diagnostic_msgs.msg": {
            "DiagnosticArray": _message(header=_header, status=list),
            "DiagnosticStatus": status,
            "KeyValue": _message(key="", value=""),
        },
    }
    for name, members in names.items():
        module = ModuleType(name)
        module.__dict__.update(members)
        patch.setitem(sys.modules, name, module)
