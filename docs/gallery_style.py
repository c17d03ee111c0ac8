"""The style of the figures of the gallery, which is that of the `plot()` methods."""

from __future__ import annotations

from typing import Any

from dynid.plotting.style import SETTINGS

__all__ = ["gallery_style"]


def gallery_style(gallery_conf: dict[str, Any], script: str) -> None:
    """Set the style before a script runs; sphinx-gallery calls this."""
    import matplotlib as mpl

    mpl.rcdefaults()
    mpl.use("agg")
    mpl.rcParams.update(SETTINGS)
