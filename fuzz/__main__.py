"""Run the readers over damaged files: `python -m fuzz --files 2000`, or `--seconds 600` for all of them together."""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Count", "fuzz_reader", "main"]

_HANG = 20.0  # s
_ONE = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"]
_HEAD = ("reader", "files", "read", "refused", "tracebacks", "crashes", "hangs", "longest s", "peak MiB")


@dataclass(eq=False)
class Count:
    """What became of the files of a reader; `kept` has the content of those that ended badly, by kind and number."""

    reader: str
    ends: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0
    peak: int = 0
    bad: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(self.ends[end] for end in ("traceback", "crash", "hang"))

    def row(self) -> tuple[str, ...]:
        """The row of the table."""
        counts = [self.ends[end] for end in ("read", "refused", "traceback", "crash", "hang")]
        numbers = [sum(counts), *counts]
        return (self.reader, *map(str, numbers), f"{self.longest:.1f}", f"{self.peak / 2**20:.0f}")


def fuzz_reader(reader: str, files: int, seconds: float, seed: int, memory: int, keep: Path | None) -> Count:
    """Read damaged files in a process of its own, which is started again after a crash or a hang."""
    count, until = Count(reader), time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name)
        subprocess.run(_command(reader, folder, seed, 0, 0, memory), env=_environment(), check=True, stdout=-3)
        k = 0
        while k < files and time.monotonic() < until:
            k = _run(reader, folder, seed, k, files - k, memory, until, count, keep)
    return count


def _command(reader: str, folder: Path, *numbers: int) -> list[str]:
    return [sys.executable, "-m", "fuzz.worker", reader, str(folder), *map(str, numbers)]


def _environment() -> dict[str, str]:
    return os.environ | dict.fromkeys(_ONE, "1")


def _run(
    reader: str, folder: Path, seed: int, k: int, files: int, memory: int, until: float, count: Count, keep: Path | None
) -> int:
    """Read files from number k on; returns the number of the file after the last."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            _command(reader, folder, seed, k, files, memory),
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(),
            text=True,
            bufsize=1,
        )
        assert process.stdout is not None
        at: int | None = None
        line: dict[str, Any] = {}
        while time.monotonic() < until:
            # Importing and reading the honest files come before the first file.
            ready, _, _ = select.select([process.stdout], [], [], _HANG if at is not None else 300.0)
            text = process.stdout.readline() if ready else ""
            line = json.loads(text) if text.endswith("\n") else {}
            if "end" in line:
                count.ends[line["end"]] += 1
                count.longest, count.peak = max(count.longest, line["seconds"]), max(count.peak, line["peak"])
                if line["end"] == "traceback":
                    _note(count, line, folder, keep)
                k, at = line["k"] + 1, None
            elif line:
                at = line["k"]
            else:
                break
        hung = process.poll() is None and not line and time.monotonic() < until and not _ended(process)
        process.kill()
        process.wait()
        process.stdout.close()
        if at is not None and not line:
            end = "hang" if hung else "crash"
            count.ends[end] += 1
            errors.seek(0)
            words = f"exit code {process.returncode}\n{errors.read()[-3000:]}"
            _note(count, {"k": at, "end": end, "words": words}, folder, keep)
            return at + 1
        if process.returncode > 0 and not line:
            errors.seek(0)
            words = errors.read()[-3000:]
            raise SystemExit(f"{reader}: file {k} cannot be made, or honest files are not read:\n{words}")
    return k


def _ended(process: subprocess.Popen[str]) -> bool:
    try:
        process.wait(2.0)
    except subprocess.TimeoutExpired:
        return False
    return True


def _note(count: Count, line: dict[str, Any], folder: Path, keep: Path | None) -> None:
    """Remember a bad end, and keep its file."""
    count.bad.append({"reader": count.reader, **line})
    if keep is not None:
        newest = max((folder / "work").iterdir(), key=lambda p: p.stat().st_mtime_ns)
        name = f"{count.reader.replace(' ', '-')}-{line['k']}-{line['end']}"
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{name}{''.join(newest.suffixes)}").write_bytes(newest.read_bytes())
        (keep / f"{name}.log").write_text(line["words"])


def _table(counts: list[Count]) -> str:
    rows = [_HEAD, *(count.row() for count in counts)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    return "\n".join("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows)


def main() -> int:
    """Print the table; exit code 1 where a file ended in a traceback, a crash or a hang."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--files", type=int, default=2000, help="files per reader")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time for all readers together")
    parser.add_argument("--readers", default="", help="names, separated by commas; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", type=int, default=4, help="address space of a reader in GiB")
    parser.add_argument("--keep", type=Path, help="folder for the files that end badly")
    given = parser.parse_args()
    from fuzz.targets import TARGETS

    names = [x.strip() for x in given.readers.split(",") if x.strip()] or list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        parser.error(f"no reader '{unknown[0]}': use {', '.join(TARGETS)}")
    counts, until = [], time.monotonic() + given.seconds
    for k, name in enumerate(names):
        share = (until - time.monotonic()) / (len(names) - k)
        counts.append(fuzz_reader(name, given.files, share, given.seed, given.memory, given.keep))
        print(_table(counts[-1:]).split("\n")[-1], flush=True)
    print("\n" + _table(counts))
    for count in counts:
        for bad in count.bad[:3]:
            print(f"\n{bad['reader']}, file {bad['k']}, {bad['end']}: {bad['words'].strip()[-600:]}")
    return int(any(count.failed for count in counts))


if __name__ == "__main__":
    sys.exit(main())
