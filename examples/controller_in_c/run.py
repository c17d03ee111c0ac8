"""Torques of an identified arm in C, without any library: generated, compiled, compared. `python run.py [FOLDER]`"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "out"


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    arm = dynid.load_robot("rv2sq")
    estimate = dynid.identify(arm, synthetic_recording(arm, seed=0, duration=5.0), "feasible")
    estimate.save(OUT / "estimate.json")
    code = dynid.generate_code(estimate, ("inverse_dynamics",), name="arm")
    print("written:", ", ".join(path.name for path in code.write(OUT)))

    t = np.arange(2000) / 1000.0
    q = 0.5 * np.sin(np.outer(t, np.arange(1, arm.n + 1)))
    v = np.gradient(q, t, axis=0)
    a = np.gradient(v, t, axis=0)
    np.savetxt(OUT / "motion.txt", np.hstack([q, v, a]), fmt="%.17g")

    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit("No C compiler was found: install gcc or clang, then run this again.")
    main_file = Path(__file__).with_name("feedforward.c")
    program = OUT / "feedforward"
    subprocess.run(
        [compiler, "-std=c99", "-O2", f"-I{OUT}", str(main_file), str(OUT / "arm.c"), "-lm", "-o", str(program)],
        check=True,
    )
    with (OUT / "motion.txt").open() as motion, (OUT / "torques.txt").open("w") as torques:
        done = subprocess.run([program], stdin=motion, stdout=torques, stderr=subprocess.PIPE, text=True, check=True)
    print(done.stderr.strip())

    by_c = np.loadtxt(OUT / "torques.txt")
    by_python = dynid.inverse_dynamics(estimate.identified_robot, q, v, a)
    difference = np.abs(by_c - by_python).max()
    print(f"largest difference from Python: {difference:.1e} N m of {np.abs(by_python).max():.0f} N m")
    assert difference < 1e-9


if __name__ == "__main__":
    main()
