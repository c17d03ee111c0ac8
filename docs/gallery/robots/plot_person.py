"""
The segments of a person
========================

Masses of a person of 1.8 m and 80 kg by anthropometric tables, female and male.
"""

import matplotlib.pyplot as plt
import numpy as np

import dynid

people = {sex: dynid.human.human_model(sex, height=1.8, weight=80.0) for sex in ("female", "male")}
names = [link.name for link in people["male"].links if link.inertia[0] > 0]
at = np.arange(len(names))

fig, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
for k, (sex, person) in enumerate(people.items()):
    mass = {link.name: link.inertia[0] for link in person.links}
    ax.barh(at + 0.4 * k - 0.2, [mass[name] for name in names], 0.38, label=sex)
ax.set_yticks(at, [name.replace("_", " ") for name in names])
ax.invert_yaxis()
ax.set_xlabel("mass (kg)")
ax.legend()
