"""Names by pattern, as people write them: joint*, joint[1-3], a regular expression, or a name itself."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

__all__ = ["matching_expression", "matching_names"]


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


def matching_expression(expression: str, names: Iterable[str]) -> list[str]:
    """Names that a regular expression matches from their first to their last letter.

    The time grows in proportion to the length of the names, whatever the expression: it may come from a file, and
    Python's own engine takes years for some.

    Parameters
    ----------
    expression : str
        The expression, without look-around and backreferences. One that is itself a name means that name alone.
    names : iterable of str
        The names.

    Returns
    -------
    list of str
        In the order of `names`.

    Raises
    ------
    ValueError
        If the text is no such expression; the message is the reason.
    """
    import polars as pl

    known = list(names)
    if expression in known:
        return [expression]
    try:
        pl.Series([""]).str.contains(expression)  # on its own: "a)|(b" must not end the group below
        found = pl.Series(known, dtype=pl.String).str.contains(rf"\A(?:{expression})\z")
    except pl.exceptions.PolarsError as error:
        reasons = [line for line in str(error).splitlines() if "error:" in line]
        raise ValueError(reasons[-1].rpartition("error:")[2].strip(" .") if reasons else "unreadable") from None
    return [name for name, fits in zip(known, found, strict=True) if fits]
