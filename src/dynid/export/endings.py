"""Endings of model files and the formats they name."""

from __future__ import annotations

__all__ = ["ENDINGS", "TEMPLATES"]

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
