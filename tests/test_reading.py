"""Regular files only, decompression within limits, XML without entities, TOML and JSON of any depth: one error each."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import socket
import tomllib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid.errors import DamagedFile, DataError, DynidError, ModelError
from dynid.limits import FileLimits, file_limits
from dynid.reading import check_regular, parse_json, parse_toml, parse_xml, read_json, read_npz, read_toml, unpacked
from tests.support.errors import expect_error
from tests.support.log_files import refused

RECORDINGS = (".csv", ".npz", ".mat", ".h5", ".parquet", ".json", ".bag", ".mcap", ".db3", ".csv.gz")
PACKERS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("ending", PACKERS)
@settings(max_examples=25, deadline=None)
@given(parts=st.lists(st.binary(max_size=5000), min_size=1, max_size=3), zeros=st.integers(0, 9))
def test_unpacked_files_are_what_was_packed(ending: str, parts: list[bytes], zeros: int) -> None:
    """One stream or several, with zeros after the last, as the libraries read them."""
    raw = b"".join(map(PACKERS[ending], parts)) + bytes(zeros)
    assert unpacked(raw, ending, "x") == b"".join(parts)


@pytest.mark.parametrize("ending", PACKERS)
def test_cut_and_changed_files_are_refused(ending: str) -> None:
    raw = PACKERS[ending](np.random.default_rng(0).bytes(300_000))
    for cut in (1, 10, len(raw) // 2, len(raw) - 1):
        with expect_error(DamagedFile):
            unpacked(raw[:cut], ending, "x")
    changed = bytearray(raw)
    changed[len(raw) // 2] ^= 0xFF
    with expect_error(DamagedFile):
        unpacked(bytes(changed), ending, "x")


def test_the_ratio_counts_what_was_read_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed zeros are refused early, and the limit can be raised."""
    monkeypatch.setattr("dynid.reading._FLOOR", 1 << 20)
    raw = gzip.compress(bytes(1 << 25)) + gzip.compress(np.random.default_rng(0).bytes(1 << 20))
    with expect_error(DataError):
        unpacked(raw, ".gz", "x")
    monkeypatch.setenv("DYNID_MAX_UNPACKED_RATIO", "2000")
    assert len(unpacked(raw, ".gz", "x")) == (1 << 25) + (1 << 20)
    monkeypatch.setenv("DYNID_MAX_UNPACKED_BYTES", "1000000")
    with expect_error(DataError):
        unpacked(raw, ".gz", "x")


def test_limits_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert file_limits() == FileLimits()
    monkeypatch.setenv("DYNID_MAX_LINKS", "7")
    assert file_limits() == FileLimits(links=7)
    monkeypatch.setenv("DYNID_MAX_LINKS", "many")
    with expect_error(DynidError, code="invalid_value"):
        file_limits()
    monkeypatch.delenv("DYNID_MAX_LINKS")
    monkeypatch.setenv("DYNID_MAX_LNIKS", "7")
    with expect_error(DynidError, code="unknown_name"):
        file_limits()


@pytest.fixture
def odd_files(tmp_path: Path) -> dict[str, Path]:
    """A pipe, a socket and a folder; devices exist already."""
    found = {"pipe": tmp_path / "pipe", "folder": tmp_path / "folder", "socket": tmp_path / "s"}
    os.mkfifo(found["pipe"])
    found["folder"].mkdir()
    with socket.socket(socket.AF_UNIX) as here:
        here.bind(str(found["socket"]))
    return found | {"device": Path("/dev/zero")}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("ending", RECORDINGS)
def test_recordings_are_regular_files(tmp_path: Path, odd_files: dict[str, Path], ending: str) -> None:
    """Nothing that could hang or never end is opened."""
    for kind, path in odd_files.items():
        link = tmp_path / f"{kind}{ending}"
        link.symlink_to(path)
        if kind != "folder":  # a folder may be a bag
            with refused(f"it is a {kind}, not a file"):
                dynid.load_recording(link)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("ending", [".urdf", ".xml", ".sdf", ".toml", ".c3d", ".trc", ".mot"])
def test_robots_and_captures_are_regular_files(tmp_path: Path, odd_files: dict[str, Path], ending: str) -> None:
    read = dynid.load_robot if ending in (".urdf", ".xml", ".sdf", ".toml") else dynid.mocap.load_capture
    for kind, path in odd_files.items():
        link = tmp_path / f"{kind}{ending}"
        link.symlink_to(path)
        with refused(f"it is a {kind}, not a file"):
            read(link)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_saved_results_and_settings_are_regular_files(tmp_path: Path, odd_files: dict[str, Path]) -> None:
    from dynid.cli.project import load_project
    from dynid.residual.predictor import Predictor

    for kind, path in odd_files.items():
        for read in (
            *(dynid.Estimate.load, dynid.Assessment.load, dynid.residual.Residual.load, Predictor.load),
            *(dynid.LogFormat.from_toml, load_project, check_regular, read_npz, read_json, read_toml),
        ):
            with pytest.raises((DynidError, OSError)) as caught:
                read(path)
            assert f"it is a {kind}, not a file" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["x=" + "[" * 5000, "[" + ".".join("a" * 5000) + "]", "x=" + "9" * 5000, "x=" + "{a=" * 300 + "1" + "}" * 300],
)
def test_toml_that_python_cannot_take_is_a_toml_error(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        parse_toml(text)


@pytest.mark.parametrize("text", ["[" * 10**6, '{"a":' * 10**5, "9" * 5000, "nul", ""])
def test_json_that_python_cannot_take_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


def test_xml_is_read_as_by_the_standard_library() -> None:
    """Tags, namespaces, attributes, texts and encodings."""
    import xml.etree.ElementTree as ET

    text = '<?xml version="1.0" encoding="{}"?><!-- c --><a x="1&amp;2" xmlns:s="u:v">é<s:b s:y="&#10;"/>tail<c/></a>'
    for encoding in ("utf-8", "utf-16", "latin-1"):
        raw = text.format(encoding).encode(encoding)
        assert ET.tostring(parse_xml(raw, "x")) == ET.tostring(ET.fromstring(raw))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', "declares the entity 'e'"),
        ('<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]><a>&e;</a>', "declares the entity 'e'"),
        ('<!DOCTYPE a [<!ENTITY % p SYSTEM "http://localhost/x">%p;]><a/>', "declares the entity 'p'"),
        ("<a>" * 401 + "</a>" * 401, "nested more than 400 deep"),
        ("<a><b></a>", "not well-formed"),
        ("<a>\0</a>", "not well-formed"),
        ("", "not well-formed"),
    ],
)
def test_xml_with_entities_or_without_end_is_refused(text: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        parse_xml(text.encode(), "x")


def test_messages_are_one_printable_line() -> None:
    """What files contain neither floods nor steers a terminal."""
    message = str(DataError(f"name '{'9' * 5000}' and \x1b[2J\u202e and \udcff\nnext"))
    assert message.isprintable() and len(message) < 400 and "5002 characters" in message and "\\x1b[2J" in message
    assert len(str(DataError("word " * 5000))) <= 2000


def test_the_page_lists_every_limit_with_its_default() -> None:
    page = (Path(__file__).parents[1] / "docs" / "limits.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `DYNID_MAX_(\w+)` \|.*\| (\d+)[^|]*\|$", page, re.MULTILINE))
    assert rows == {f.name.upper(): str(f.default) for f in fields(FileLimits)}


def test_columns_with_endless_names_are_refused(tmp_path: Path) -> None:
    """A name of 5000 digits was taken for the number of a joint, which Python does not convert."""
    (tmp_path / "run.csv").write_text(f"t,q1,q{'9' * 5000}\n0,1,2\n1,2,3\n2,3,4\n")
    with expect_error(DataError):
        dynid.load_recording(tmp_path / "run.csv")
