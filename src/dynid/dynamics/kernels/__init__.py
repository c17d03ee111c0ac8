"""Compiled kernels over batches of samples.

All of them work in base-frame coordinates at the base origin: there, twists of the joints add up
without transforms, composite inertias are sums, and wrenches of children are added to their
parents as they are. Twists and wrenches are (linear, angular).

A kernel allocates its work space once and walks over the samples; all that is done for one sample is a step.
"""
