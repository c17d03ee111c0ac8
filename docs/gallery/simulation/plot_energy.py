"""
The energy of a free fall
=========================

A model is checked by letting it fall: without drives, friction can only take energy away.
"""

import matplotlib.pyplot as plt

import dynid

robot = dynid.load_robot("twolink", friction="viscous+coulomb").with_gravity([0.0, -9.81, 0.0])
audit = dynid.assessment.audit(robot)

fig, ax = plt.subplots(figsize=(5.5, 2.6), layout="constrained")
ax.plot(audit.fall.time, audit.fall.energy)
ax.set(xlabel="time (s)", ylabel="energy (J)", title=audit.fall.verdict)

# %%
# What the audit says of the model.
audit
