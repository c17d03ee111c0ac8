"""Files that ask for more than they give cost one sentence: below 1 GiB of memory and 20 s of processor time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bombs import BOMBS, LARGE, MIB

CODE = """
import json, resource, sys, dynid
start = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
path, words = sys.argv[1], ""
try:
    dynid.load_robot(path) if path.endswith((".urdf", ".xml", ".toml")) else dynid.load_recording(path)
except dynid.DynidError as error:
    words = str(error)
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
peak = used[1].ru_maxrss
if sys.platform == "linux":  # ru_maxrss of this process would count the one that started it
    peak = max(peak, int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]))
print(json.dumps([words, peak, sum(x[0] + x[1] for x in used) - start]))
"""


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in BOMBS])
def test_a_bomb_costs_one_sentence(tmp_path: Path, name: str) -> None:
    """Peak memory and time of a process that does nothing else."""
    pytest.importorskip("resource")
    if name in ("zstd", "hdf5"):
        pytest.importorskip({"zstd": "mcap", "hdf5": "h5py"}[name])
    make, expected = BOMBS[name]
    path = make(tmp_path)
    ended = subprocess.run([sys.executable, "-c", CODE, str(path)], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    words, peak, seconds = json.loads(ended.stdout.splitlines()[-1])
    assert expected in words and "\n" not in words
    assert peak * 1024 < 1024 * MIB
    assert seconds < 20
    print(f"{name}: {words} | {peak / 1024:.0f} MiB, {seconds:.1f} s")
