"""Hashes of inputs: the same content has the same hash, other content another."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

import dynid
from dynid.errors import MissingFile
from dynid.report.provenance import file_hash, samples_hash
from tests.support.errors import expect_error


def test_hashes_of_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.csv").write_bytes(b"1,2\n")
    whole = hashlib.sha256(b"1,2\n").hexdigest()
    assert file_hash(tmp_path / "a" / "x.csv") == whole
    assert file_hash(tmp_path / "a") == hashlib.sha256(f"x.csv {whole}\n".encode()).hexdigest()
    with expect_error(MissingFile):
        file_hash(tmp_path / "none.csv")


def test_hash_of_samples_follows_every_signal() -> None:
    t = np.arange(4.0)
    run = dynid.Run(t, np.zeros((4, 1)), torque=np.ones((4, 1)), name="a")
    first = samples_hash(dynid.Recording(("j",), (run,)))
    assert samples_hash(dynid.Recording(("j",), (replace(run, name="b"),))) == first
    other = replace(run, torque=None, v=np.ones((4, 1)))
    assert samples_hash(dynid.Recording(("j",), (other,))) != first
