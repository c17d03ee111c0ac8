// What the toolkit leaves out of the page: names of its parts for screen readers, scrolled tables that the keyboard
// reaches, and a view whose ground is dark where the page is.
(() => {
  const GROUNDS = { light: { ground: "#eef1f5", lines: 0.2 }, dark: { ground: "#1c232d", lines: 0.4 } };

  function nameParts() {
    for (const bar of document.querySelectorAll(".q-loading-bar:not([aria-label])"))
      bar.setAttribute("aria-label", "loading");
    for (const box of document.querySelectorAll(".q-table__middle")) {
      if (!box.dynidWatched) sizes.observe(box);
      box.dynidWatched = true;
      reachBox(box);
    }
  }

  // A table that is wider than its place is scrolled by the arrow keys once it has the focus.
  function reachBox(box) {
    if (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", "table, scrolled by the arrow keys");
    } else {
      for (const given of ["tabindex", "role", "aria-label"]) box.removeAttribute(given);
    }
  }

  function paintViews() {
    const { ground, lines } = GROUNDS[document.body.classList.contains("body--dark") ? "dark" : "light"];
    for (const element of document.querySelectorAll(".dynid-view")) {
      const scene = getElement(element)?.scene;
      const floor = scene?.children.find((x) => x.object_id === "ground");
      if (!floor || element.dataset.ground === ground) continue;
      floor.material.color.set(ground);
      scene.background = floor.material.color;
      scene.children.find((x) => x.type === "GridHelper").material.opacity = lines;
      element.dataset.ground = ground;
    }
  }

  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => reachBox(entry.target)));
  let waiting = false;
  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      nameParts();
      paintViews();
    });
  }
  document.addEventListener("DOMContentLoaded", () => {
    new MutationObserver(later).observe(document.body, { childList: true, subtree: true });
    new MutationObserver(later).observe(document.body, { attributes: true, attributeFilter: ["class"] });
    later();
  });
})();
