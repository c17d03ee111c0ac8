"""The same answer to the last bit in every process, whatever the number of threads and the seed of hashes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Seed of hashes, threads of BLAS and threads of compiled code.
SETTINGS = [("0", "1", "1"), ("1", "2", "2"), ("4242", "2", "1"), ("random", "1", "2")]


@pytest.mark.slow
def test_estimates_motions_and_studies_are_the_same_bytes(tmp_path: Path) -> None:
    found = []
    for hashes, blas, compiled in SETTINGS:
        folder = tmp_path / f"{hashes}-{blas}-{compiled}"
        folder.mkdir()
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), blas)
        more = {"PYTHONHASHSEED": hashes, "NUMBA_NUM_THREADS": compiled, "POLARS_MAX_THREADS": compiled}
        places = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        subprocess.run(
            [sys.executable, "-m", "tests.support.same_answers", str(folder)],
            check=True,
            env=os.environ | threads | more | {"PYTHONPATH": places},
        )
        found.append({p.name: p.read_bytes() for p in folder.iterdir()})
    assert len(found[0]) == 8 and all(found[0].values())
    for other in found[1:]:
        assert [name for name in found[0] if found[0][name] != other[name]] == []
