"""Names by pattern, as people write them: joint*, joint[1-3], or a name itself."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

__all__ = ["matching_names"]


def matching_names(pattern: str, names: Iterable[str]) -> list[str]:
    """Names that a pattern with the wildcards *, ? and [...] matches.

    Parameters
    ----------
    pattern : str
        The pattern. One that is itself a name means that name alone: files may name a joint "joint[1]".
    names : iterable of str
        The names.

    Returns
    -------
    list of str
        In the order of `names`.
    """
    known = list(names)
    return [pattern] if pattern in known else [name for name in known if fnmatchcase(name, pattern)]
