"""One reader in a process of its own: makes file after file, reads it and prints one line per file."""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

from dynid import child
from dynid.errors import DynidError
from fuzz.forks import Forks
from fuzz.mutations import STRUCTURED, mutated_bytes
from fuzz.targets import TARGETS

_GIB = 1 << 30


def mutated(name: str, seeds: list[Path], seed: int, k: int) -> tuple[str, bytes]:
    """Ending and content of the k-th file of a reader; half of the files keep the grammar where there is one."""
    rng = random.Random(f"{name} {seed} {k}")
    source = rng.choice(seeds)
    raw, structured = source.read_bytes(), TARGETS[name].structured
    if structured and rng.random() < 0.5:
        # Some seeds of the reader may be binary; a tree too deeply nested for Python to write stays as it was.
        with suppress(UnicodeDecodeError):
            text = raw.decode()
            with suppress(RecursionError):
                raw = STRUCTURED[structured](text, rng).encode("utf-8", "replace")
            return source.name, raw
    return source.name, mutated_bytes(raw, rng)


def main() -> None:
    """Arguments: reader, folder, seed, first file, number of files, memory limit in GiB."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    seed, first, count, memory = (int(x) for x in sys.argv[3:7])
    target = TARGETS[name]
    seeds = sorted(p for p in (folder / "seeds").rglob("*") if p.is_file() and p.name != "metadata.yaml")
    if not seeds:
        (folder / "seeds").mkdir(parents=True, exist_ok=True)
        target.seeds(folder / "seeds")
        print(json.dumps({"made": True}), flush=True)
        return
    forks = Forks() if os.environ.get("FUZZ_FORK", "1") == "1" else None
    if forks is not None:
        child._start = forks.start
    work = folder / "work"
    work.mkdir(exist_ok=True)
    target.beside(work)
    for path in seeds:  # an honest file is read
        (work / path.name).write_bytes(path.read_bytes())
        target.read(work / path.name)
    resource.setrlimit(resource.RLIMIT_AS, (memory * _GIB, memory * _GIB))
    for k in range(first, first + count):
        file, raw = mutated(name, seeds, seed, k)
        path = work / file
        path.write_bytes(raw)
        print(json.dumps({"k": k}), flush=True)
        start, end, words = time.monotonic(), "read", ""
        try:
            target.read(path)
        except DynidError as error:
            end, words = "refused", str(error)
            if "\n" in words or len(words) > 2000:
                end = "traceback"
        except BaseException:
            end, words = "traceback", traceback.format_exc()
        peak = 1024 * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        seconds = time.monotonic() - start
        peak = max(peak, forks.peak if forks else 0)
        print(json.dumps({"k": k, "end": end, "words": words, "seconds": seconds, "peak": peak}), flush=True)


if __name__ == "__main__":
    main()
