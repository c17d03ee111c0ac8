"""What the Tab key reaches on a page, in which order, and whether one sees where it is."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Page

# What has the focus: what it is called, its kind and its box in the page; None once the focus has left the page.
_FOCUSED = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  const r = (e.closest('.q-field') || e).getBoundingClientRect();
  const label = e.labels && e.labels[0] ? e.labels[0].innerText : '';
  const name = e.getAttribute('aria-label') || label || e.innerText || '';
  return [name.trim().slice(0, 60), e.tagName, r.left + scrollX, r.top + scrollY, r.width, r.height];
}"""
# Pixels around a control where its focus may be drawn, and by which controls of one row may differ in height.
_MARGIN, _ROW = 8, 24


@dataclass(frozen=True)
class Stop:
    """A control that has the focus: its name, its tag, its box (px) and whether the focus is seen."""

    name: str
    tag: str
    left: float
    top: float
    width: float
    height: float
    seen: bool

    @property
    def middle(self) -> float:
        return self.top + 0.5 * self.height

    def after(self, other: Stop) -> bool:
        """Whether it is read after another one: further down, or further right in the same row."""
        if abs(self.middle - other.middle) <= _ROW:
            return self.left >= other.left
        return self.middle > other.middle


def tab_stops(page: Page, most: int) -> list[Stop]:
    """Controls in the order of the Tab key from the top of the page, until it leaves the page."""
    out: list[Stop] = []
    for _ in range(most):
        page.keyboard.press("Tab")
        found = page.evaluate(_FOCUSED)
        if found is None:
            break
        name, tag, *box = found
        out.append(Stop(name, tag, *box, seen=_seen(page)))
    return out


def _seen(page: Page) -> bool:
    """Whether the picture around what has the focus changes when it loses the focus."""
    page.wait_for_timeout(150)
    box = page.evaluate(
        """() => { const e = document.activeElement;
             e.scrollIntoView({block: 'center', behavior: 'instant'});
             const r = (e.closest('.q-field') || e).getBoundingClientRect();
             return [r.left, r.top, r.width, r.height] }"""
    )
    left, top, width, height = box
    corner = max(left - _MARGIN, 0.0), max(top - _MARGIN, 0.0)
    clip = {
        "x": corner[0],
        "y": corner[1],
        "width": max(left + width + _MARGIN - corner[0], 1.0),
        "height": max(min(top + height + _MARGIN, 900.0) - corner[1], 1.0),
    }
    pictures = []
    for step in (None, "blur", "focus"):
        if step is not None:
            page.evaluate(f"window.dynidFocused = window.dynidFocused || document.activeElement; dynidFocused.{step}()")
            page.wait_for_timeout(350)
        if step != "focus":
            pictures.append(page.screenshot(clip=clip, animations="disabled", caret="hide"))  # type: ignore[arg-type]
    page.evaluate("delete window.dynidFocused")
    return pictures[0] != pictures[1]
