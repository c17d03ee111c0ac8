"""Compiled kernels over batches of samples.

All of them work in base-frame coordinates at the base origin: there, joint twists add up without transforms, composite
inertias are sums, and wrenches of children are added to those of their parents. Twists and wrenches are (linear,
angular).

A kernel allocates its work space once and loops over the samples; the work for one sample is a step.
"""

# Endings of the files of the cache: the index of a function, and its compiled code.
CACHE_SUFFIXES = (".dynid-index", ".dynid-code")
