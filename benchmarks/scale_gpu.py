"""The fold on a graphics card: rows of a 7-joint arm from its motion, decimated or not, and their triangular factors.

python -m benchmarks.scale_gpu --prepare arm.npz     # where dynid is installed: arm, motion, and factors to compare
python benchmarks/scale_gpu.py arm.npz               # on a computer with a card, PyTorch and NumPy, beside src/

The time includes the transfer of positions, velocities, accelerations and torques to the card and of the factors back.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

# Samples that are folded, and those of a chunk: a data set is read in chunks of this size.
SAMPLES, CHUNK = 2**21, 2**16
FACTOR = 10
MODULE = Path(__file__).parents[1] / "src" / "dynid" / "identification" / "torch_rows.py"


def prepare(path: Path, samples: int = 20_480, repeats: int = 20) -> None:
    """Write arm, columns, a motion with torques, and the factors and time of the fold on this computer."""
    from benchmarks.identify import PLAIN, arm, recording
    from dynid.dynamics.batch import thread_count
    from dynid.dynamics.tree import compile_robot
    from dynid.identification.row_stream import Folding, SegmentRows, _block, velocity_limits
    from dynid.parameters.base import base_parameters
    from dynid.signals.filters import _chebyshev
    from dynid.signals.settings import prepare as filtered

    robot = arm()
    base, model = base_parameters(robot), compile_robot(robot)
    maker, kept = SegmentRows(base), np.array(base.kept)
    motion = filtered(recording(robot, samples).runs[0], PLAIN)
    out: dict[str, Any] = {f"tree_{name}": x for name, x in model.tree._asdict().items()}
    out |= {f"drives_{name}": x for name, x in model.drives._asdict().items()}
    out |= {f"columns{k}": kept[c] for k, c in enumerate(maker.touched)}
    out |= {f"filter{k}": x for k, x in enumerate(_block(_chebyshev(FACTOR).tobytes()))}
    for what, factors in (("all", ()), ("decimated", (FACTOR,))):
        settings, seconds = replace(PLAIN, decimate=factors), []
        run = replace(motion, decimate=factors)
        for _ in range(repeats):
            began = time.perf_counter()
            folding = Folding(base, settings)
            folding.add(run)
            seconds.append(time.perf_counter() - began)
        out[f"cpu_{what}"] = 1e6 * min(seconds) / samples
        for k, (f, c) in enumerate(zip(folding.factors()[0], maker.touched, strict=True)):
            narrow = f[:, [*c, base.count]]
            out[f"gram_{what}{k}"] = narrow.T @ narrow
    np.savez(
        path, **out, joints=maker.row, q=motion.q, v=motion.v, a=motion.a, torque=motion.torque,
        threads=thread_count(), limits=velocity_limits(base, motion, PLAIN),
    )  # fmt: skip


def loaded() -> ModuleType:
    """The module of the package that works on the card, from its file alone."""
    spec = importlib.util.spec_from_file_location("torch_rows", MODULE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    options = parser.parse_args()
    if options.prepare:
        prepare(options.file)
        return
    import torch

    data, module = dict(np.load(options.file)), loaded()
    parts = [
        SimpleNamespace(**{k.removeprefix(x): data[k] for k in data if k.startswith(x)}) for x in ("tree_", "drives_")
    ]
    columns = [data[f"columns{k}"] for k in range(len(data["joints"]))]
    made = module.TorchRows(*parts, data["joints"], columns, options.device)
    block = module.FilterBlock(*(data[f"filter{k}"] for k in range(5)))
    pad = 3 * (len(block.steady) + 1)

    def folded(signals: list[np.ndarray], decimated: bool) -> list[np.ndarray]:
        factors = [np.zeros((0, len(c) + 1)) for c in columns]
        for start in range(0, len(signals[0]), CHUNK):
            table = made.table(*(x[start : start + CHUNK] for x in signals))
            if decimated:
                table = made.zero_phase(table, pad, block)[::FACTOR]
            for k, span in enumerate(made.spans):
                rows = table[:, span]
                moving = np.abs(rows[:, -1].cpu().numpy()) >= data["limits"][k]
                factors[k] = made.folded(factors[k], rows[:, :-1] if moving.all() else rows[moving, :-1])
        return factors

    name = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    print(f"{name}, PyTorch {torch.__version__}; the other computer has {data['threads']} threads")
    signals = [data[x] for x in ("q", "v", "a", "torque")]
    many = [np.tile(x, (-(-options.samples // len(x)), 1))[: options.samples] for x in signals]
    for what in ("all", "decimated"):
        apart = 0.0
        for k, R in enumerate(folded(signals, what == "decimated")):
            theirs = data[f"gram_{what}{k}"]
            size = np.sqrt(np.diag(theirs))
            used = np.flatnonzero(size > 1e-9 * size.max())  # the others are rounding
            difference = ((R.T @ R - theirs) / np.outer(size, size))[np.ix_(used, used)]
            apart = max(apart, float(np.abs(difference).max()))
        seconds = []
        for _ in range(3):
            began = time.perf_counter()
            folded(many, what == "decimated")
            seconds.append(time.perf_counter() - began)
        each, cpu = 1e6 * min(seconds) / options.samples, float(data[f"cpu_{what}"])
        print(
            f"{what} samples: {each:.2f} us per sample, other computer {cpu:.2f} us, ratio {cpu / each:.1f}; "
            f"R'R differs by {apart:.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
