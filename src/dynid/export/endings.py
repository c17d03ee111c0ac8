"""Endings of model files and the formats they name, and simulators with the endings of their files."""

from __future__ import annotations

__all__ = ["ENDINGS", "SIMULATOR_ENDINGS", "TEMPLATES"]

ENDINGS = {
    ".urdf": "urdf",
    ".xml": "mjcf",
    ".mjcf": "mjcf",
    ".sdf": "sdf",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".toml": "toml",
}
# Formats whose files can be patched in place.
TEMPLATES = ("urdf", "mjcf", "sdf")
# Simulators that actuators are written for.
SIMULATOR_ENDINGS = {
    "mujoco": ".xml",
    "isaaclab": ".py",
    "mjlab": ".py",
    "drake": ".py",
    "gazebo": ".urdf",
    "ros2_control": ".urdf",
    "ros2_controllers": ".yaml",
    "genesis": ".py",
}
