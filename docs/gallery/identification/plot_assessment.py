"""
Can it be trusted?
==================

The checks behind a verdict: the figure of each as a share of the limit up to which it passes.
"""

import matplotlib.pyplot as plt

import dynid
from dynid.cli.demo import synthetic_recording

robot = dynid.load_robot("twolink", friction="viscous+coulomb")
fitted, unseen = synthetic_recording(robot, 0, 10.0), synthetic_recording(robot, 1, 10.0)
estimate = dynid.identify(robot.with_parameters(1.2 * robot.parameters), fitted, "feasible")
assessment = dynid.assess(estimate, unseen, recording=fitted)
checks = [c for c in assessment.checks if c.figure and c.limit and c.figure < float("inf")]
checks = [c for c in checks if c.figure <= c.limit or c.result != "passed"]  # without least lengths

fig, ax = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
colors = {"passed": "#009E73", "warned": "#E69F00", "failed": "#D55E00"}
for k, check in enumerate(checks):
    ax.plot([1e-3, check.figure / check.limit], [k, k], color="#E3E3E3", zorder=1)
    ax.plot(check.figure / check.limit, k, "o", color=colors[check.result])
ax.axvline(1.0, color="k", ls="--", lw=0.8)
ax.set_yticks(range(len(checks)), [check.name for check in checks])
ax.set(xscale="log", xlabel="figure over its limit (-)", title=f"verdict: {assessment.verdict}")

# %%
# Every check, with what was found.
assessment
