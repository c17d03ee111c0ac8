"""The cache of compiled kernels: a damaged, stale or unwritable one is told once and costs time, never a result."""

from __future__ import annotations

import errno
import importlib.util
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynid.dynamics.kernels import CACHE_SUFFIXES, cache

SOURCE = "from dynid.dynamics.kernels.compiler import kernel\n\n\n@kernel\ndef twice(x):\n    return {factor} * x\n"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "one byte": lambda content: b"x",
    "cut in half": lambda content: content[: len(content) // 2],
    "last byte missing": lambda content: content[:-1],
    "zeros": lambda content: bytes(len(content)),
    "a bit flipped in the middle": lambda content: (
        content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 1]) + content[len(content) // 2 + 1 :]
    ),
    "text": lambda content: b"this is not a kernel" * 50,
    "doubled": lambda content: content + content,
}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was told yet, and nothing is known of sources that a test changes."""
    monkeypatch.setattr(cache, "_told", set())
    cache._digest.cache_clear()


@pytest.fixture(autouse=True)
def _no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python itself would take a file that changes within a second for the same."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def loaded(folder: Path, factor: int = 2) -> Any:
    """The kernel of a module file, as a new process would import it."""
    path = folder / "some_kernels.py"
    path.write_text(SOURCE.format(factor=factor))
    spec = importlib.util.spec_from_file_location("some_kernels", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.twice


def hits(function: Any) -> int:
    """How many signatures came from the cache."""
    return sum(function.stats.cache_hits.values())


def files(folder: Path, suffix: str) -> list[Path]:
    return list((folder / "__pycache__").glob(f"*{suffix}"))


def test_a_kernel_is_compiled_once(tmp_path: Path) -> None:
    first = loaded(tmp_path)
    assert first(3.0) == 6.0 and hits(first) == 0
    again = loaded(tmp_path)
    assert again(3.0) == 6.0 and hits(again) == 1


def test_a_changed_source_is_compiled_again(tmp_path: Path) -> None:
    assert loaded(tmp_path)(3.0) == 6.0
    cache._digest.cache_clear()
    changed = loaded(tmp_path, factor=5)
    assert changed(3.0) == 15.0 and hits(changed) == 0


def test_a_change_of_any_kernel_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel inlines steps of other files."""
    assert loaded(tmp_path)(3.0) == 6.0
    monkeypatch.setattr(cache, "_sources", lambda: "other sources")
    changed = loaded(tmp_path)
    assert changed(3.0) == 6.0 and hits(changed) == 0


@pytest.mark.parametrize("suffix", CACHE_SUFFIXES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_compiled_again(
    damage: str, suffix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert loaded(tmp_path)(3.0) == 6.0
    (file,) = files(tmp_path, suffix)
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    with caplog.at_level(logging.WARNING, "dynid"):
        assert loaded(tmp_path)(3.0) == 6.0
    (told,) = caplog.messages
    assert "are damaged and are compiled again" in told
    caplog.clear()
    mended = loaded(tmp_path)
    assert mended(3.0) == 6.0 and hits(mended) == 1 and not caplog.messages


def test_a_full_disk_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache._Files, "_write", full)
    with caplog.at_level(logging.WARNING, "dynid"):
        function = loaded(tmp_path)
        assert function(3.0) == 6.0 and function(3) == 6
    (told,) = caplog.messages
    assert "cannot be kept" in told and "No space left" in told


def test_without_any_folder_kernels_are_compiled_in_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nowhere(*_: Any) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(cache.FunctionCache, "__init__", nowhere)
    with caplog.at_level(logging.WARNING, "dynid"):
        assert loaded(tmp_path)(3.0) == 6.0
    assert "NUMBA_CACHE_DIR" in caplog.messages[0] and not (tmp_path / "__pycache__").exists()
