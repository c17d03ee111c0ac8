"""The fold on a graphics card: rows of a 7-joint arm from its motion, and their triangular factors, with PyTorch.

python -m benchmarks.scale_gpu --prepare arm.npz     # where dynid is installed: arm, motion, and factors to compare
python benchmarks/scale_gpu.py arm.npz               # on a computer with a card, PyTorch and NumPy

The time includes the transfer of positions, velocities, accelerations and torques to the card and of the factors back.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SAMPLES, CHUNK, BLOCK = 2**21, 2**17, 128


def prepare(path: Path, samples: int = 20_480) -> None:
    """Write geometry, columns, a motion with torques, and the factors and time of the fold on this computer."""
    from benchmarks.identify import PLAIN, arm, recording
    from dynid.dynamics.batch import thread_count
    from dynid.identification.folding import Folding
    from dynid.identification.row_stream import touched_columns
    from dynid.parameters.base import base_parameters
    from dynid.signals.settings import prepare as filtered

    robot = arm()
    base = base_parameters(robot)
    motion = filtered(recording(robot, samples).runs[0], PLAIN)
    seconds, touched = [], touched_columns(base)
    for _ in range(10):
        began = time.perf_counter()
        folding = Folding(base, PLAIN)
        folding.add(motion)
        seconds.append(time.perf_counter() - began)
    inside = slice(motion.lead, len(motion.t) - motion.lead)
    numbered = list(enumerate(zip(folding.factors()[0], touched, strict=True)))
    np.savez(
        path, placement=np.array([j.placement for j in robot.joints]), gravity=robot.gravity,
        axis=np.array([j.axis for j in robot.joints]), kept=np.array(base.kept), names=np.array(robot.parameter_names),
        coordinates=np.array(robot.coordinates), q=motion.q[inside], v=motion.v[inside], a=motion.a[inside],
        torque=motion.torque[inside], cpu=1e6 * min(seconds) / samples, threads=thread_count(),
        **{f"gram{k}": (f.T @ f)[np.ix_([*c, base.count], [*c, base.count])] for k, (f, c) in numbered},
        **{f"touched{k}": c for k, (_, c) in numbered},
    )  # fmt: skip


class Arm:
    """Rows [W y] of a serial arm with revolute joints, batched over samples."""

    def __init__(self, data: Any, torch: Any) -> None:
        self.torch = torch
        put = lambda x: torch.as_tensor(np.asarray(x), device="cuda", dtype=torch.float64)  # noqa: E731
        self.n = len(data["axis"])
        self.place, self.gravity = put(data["placement"]), put(data["gravity"])
        assert np.allclose(np.abs(data["axis"]), [0, 0, 1])
        self.sign = [float(axis[2]) for axis in data["axis"]]
        names, coordinates = list(map(str, data["names"])), list(map(str, data["coordinates"]))
        self.channels = []
        for k in range(self.n):
            # Each kept column that the channel touches: one of a body, or one of the joint's own drive.
            columns = []
            for c in np.asarray(data["kept"])[data[f"touched{k}"]]:
                symbol, _, owner = names[c].partition("_")
                if owner in coordinates:
                    columns.append((symbol, coordinates.index(owner)))
                else:
                    links = list(dict.fromkeys(x.partition("_")[2] for x in names if x.startswith("m_")))
                    columns.append((symbol, links.index(owner)))
            self.channels.append(columns)
        self.skew = torch.zeros(3, 3, 3, device="cuda", dtype=torch.float64)
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            self.skew[i, j, k], self.skew[i, k, j] = 1.0, -1.0

    def rows(self, q: Any, v: Any, a: Any, torque: Any) -> list[Any]:
        """One stack (samples, columns + 1) per channel."""
        t = self.torch
        count, zero = len(q), t.zeros(len(q), device=q.device, dtype=q.dtype)
        w, dw = t.zeros(count, 3, device=q.device, dtype=q.dtype), t.zeros(count, 3, device=q.device, dtype=q.dtype)
        acc = (-self.gravity).expand(count, 3)
        axes = t.zeros(count, 0, 3, device=q.device, dtype=q.dtype)  # of the joints so far, in the frame of the link
        lever = t.zeros(count, 0, 3, device=q.device, dtype=q.dtype)  # velocity of the link's origin per joint velocity
        body = []
        for k in range(self.n):
            s = self.sign[k]
            sine, cosine = t.sin(s * q[:, k]), t.cos(s * q[:, k])
            spin = t.stack([cosine, -sine, zero, sine, cosine, zero, zero, zero, zero + 1], -1).reshape(count, 3, 3)
            turn = self.place[k, :3, :3] @ spin  # from the link's frame to its parent's
            r = self.place[k, :3, 3].expand(count, 3)
            acc = acc + t.linalg.cross(dw, r) + t.linalg.cross(w, t.linalg.cross(w, r))
            lever = lever + t.linalg.cross(axes, r[:, None].expand_as(axes))
            w, dw, acc = (x[:, None] @ turn for x in (w, dw, acc))
            w, dw, acc = w[:, 0], dw[:, 0], acc[:, 0]
            axes, lever = axes @ turn, lever @ turn
            z = t.zeros(count, 3, device=q.device, dtype=q.dtype)
            z[:, 2] = s
            dw = dw + z * a[:, k, None] + t.linalg.cross(w, z * v[:, k, None])
            w = w + z * v[:, k, None]
            axes, lever = t.cat([axes, z[:, None]], 1), t.cat([lever, t.zeros_like(z)[:, None]], 1)
            body.append(self._projected(w, dw, acc, axes, lever))
        out = []
        for k, columns in enumerate(self.channels):
            drive = {"fv": v[:, k], "fc": t.sign(v[:, k]), "off": zero + 1, "Ia": a[:, k]}
            parts = [drive[symbol] if symbol in drive else body[i][symbol][:, k] for symbol, i in columns]
            out.append(t.stack([*parts, torque[:, k]], -1))
        return out

    def _projected(self, w: Any, dw: Any, acc: Any, axes: Any, lever: Any) -> dict[str, Any]:
        """Torques (samples, joints) per unit of each parameter of a link."""
        t = self.torch
        hat = lambda x: t.einsum("ijk,nk->nij", -self.skew, x)  # noqa: E731 hat(x) y = x cross y
        W, dW, A = hat(w), hat(dw), hat(acc)
        force = dW + W @ W  # times the first moment
        out = {"m": (lever @ acc[:, :, None])[..., 0]}
        first = lever @ force - axes @ A  # moment of the first moment: c cross acc = -acc cross c
        for i, symbol in enumerate(("mx", "my", "mz")):
            out[symbol] = first[..., i]
        for symbol, i, j in (("Ixx", 0, 0), ("Ixy", 0, 1), ("Ixz", 0, 2), ("Iyy", 1, 1), ("Iyz", 1, 2), ("Izz", 2, 2)):
            unit = t.zeros(3, 3, device=w.device, dtype=w.dtype)
            unit[i, j] = unit[j, i] = 1.0
            moment = dw @ unit + t.linalg.cross(w, w @ unit)
            out[symbol] = (axes @ moment[:, :, None])[..., 0]
        return out


def householder(torch: Any, rows: Any) -> Any:
    """Triangular factor by QR decompositions of blocks, joined in a tree."""
    columns = rows.shape[1]
    while len(rows) > columns:
        size = BLOCK if len(rows) >= BLOCK else len(rows)
        short = -len(rows) % size
        if short:
            rows = torch.cat([rows, rows.new_zeros(short, columns)])
        rows = torch.linalg.qr(rows.reshape(-1, size, columns), mode="r").R.reshape(-1, columns)
    return rows


def gram(torch: Any, rows: Any) -> Any:
    """R'R: the least that a card can do; half of the digits are lost."""
    return rows.T @ rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--prepare", action="store_true")
    options = parser.parse_args()
    if options.prepare:
        prepare(options.file)
        return
    import torch

    data = np.load(options.file)
    arm = Arm(data, torch)
    card = torch.cuda.get_device_name()
    print(f"{card}; fold on {data['threads']} threads of the computer that prepared: {data['cpu']:.2f} us per sample")
    signals = [np.tile(data[x], (SAMPLES // len(data[x]) + 1, 1))[:SAMPLES] for x in ("q", "v", "a", "torque")]
    small = [torch.as_tensor(data[x], device="cuda") for x in ("q", "v", "a", "torque")]

    def folded(factor: Callable[[Any, Any], Any], hosts: list[Any]) -> list[np.ndarray]:
        done: list[list[Any]] = [[] for _ in range(arm.n)]
        for start in range(0, len(hosts[0]), CHUNK):
            part = [h[start : start + CHUNK].to("cuda", non_blocking=True) for h in hosts]
            for k, rows in enumerate(arm.rows(*part)):
                done[k].append(factor(torch, rows))
        if factor is gram:
            return [torch.stack(parts).sum(0).cpu().numpy() for parts in done]
        return [factor(torch, torch.cat(parts)).cpu().numpy() for parts in done]

    for factor in (householder, gram):
        apart = 0.0
        for k, rows in enumerate(arm.rows(*small)):
            R = factor(torch, rows).cpu().numpy()
            ours, theirs = (R if factor is gram else R.T @ R), data[f"gram{k}"]
            size = np.sqrt(np.diag(theirs))
            used = np.flatnonzero(size > 1e-9 * size.max())  # the others are rounding
            difference = ((ours - theirs) / np.outer(size, size))[np.ix_(used, used)]
            apart = max(apart, float(np.abs(difference).max()))
        for memory in ("pageable", "pinned"):
            hosts = [torch.as_tensor(s) for s in signals]
            hosts = [h.pin_memory() for h in hosts] if memory == "pinned" else hosts
            folded(factor, [h[:CHUNK] for h in hosts])
            seconds = []
            for _ in range(3):
                torch.cuda.synchronize()
                began = time.perf_counter()
                folded(factor, hosts)
                torch.cuda.synchronize()
                seconds.append(time.perf_counter() - began)
            each = 1e6 * min(seconds) / SAMPLES
            print(
                f"{factor.__name__}, {memory} memory: {each:.2f} us per sample, ratio {data['cpu'] / each:.1f}; "
                f"R'R differs by {apart:.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
