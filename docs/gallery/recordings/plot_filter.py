"""
Accelerations of noisy positions
================================

A zero-phase low-pass decides how much noise of the encoder reaches the acceleration.
"""

import matplotlib.pyplot as plt
import numpy as np

from dynid.signals.filters import derivative, lowpass

rate = 1000.0
t = np.arange(0.0, 4.0, 1.0 / rate)
true = 0.8 * np.sin(2.0 * t) + 0.2 * np.sin(7.0 * t)
step = 2.0 * np.pi / 2**15
measured = (np.round(true / step) * step)[:, None]


def acceleration(q):
    return derivative(derivative(q, rate), rate)[:, 0]


fig, ax = plt.subplots(figsize=(7.0, 2.6), layout="constrained")
ax.plot(t, acceleration(lowpass(measured, 60.0, rate)), color="#E69F00", lw=0.7, label="low-pass of 60 Hz")
ax.plot(t, acceleration(lowpass(measured, 12.0, rate)), color="#0072B2", label="low-pass of 12 Hz")
ax.plot(t, -3.2 * np.sin(2.0 * t) - 9.8 * np.sin(7.0 * t), "k:", label="exact")
ax.set(xlabel="time (s)", ylabel="acceleration (rad/s²)", xlim=(0.3, 3.7), ylim=(-22, 22))
ax.legend(ncols=3)
