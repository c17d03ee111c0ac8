(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("js");
  var each = function (selector, within, work) { Array.prototype.forEach.call((within || document).querySelectorAll(selector), work); };
  var memory = { get: function () { try { return localStorage.getItem("dynid-theme"); } catch (e) { return null; } },
                 set: function (x) { try { localStorage.setItem("dynid-theme", x); } catch (e) { /* files may not remember */ } } };
  var redraws = [];

  // Light and dark.
  var kept = memory.get();
  if (kept) { root.dataset.theme = kept; }
  each(".theme", null, function (button) {
    button.addEventListener("click", function () {
      var dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      memory.set(root.dataset.theme);
      redraws.forEach(function (f) { f(); });
    });
  });

  // Rows by link: all of them are searched; links without a hit are not shown.
  each(".groups", null, function (block) {
    var field = block.querySelector("input"), button = block.querySelector("button"), told = block.querySelector("[role=status]");
    var links = block.querySelectorAll("details");
    var toggle = function (open) { Array.prototype.forEach.call(links, function (x) { x.open = open; }); button.textContent = open ? "Close all" : "Open all"; };
    button.addEventListener("click", function () { toggle(button.textContent === "Open all"); });
    field.addEventListener("input", function () {
      var wanted = field.value.trim().toLowerCase(), hits = 0;
      Array.prototype.forEach.call(links, function (link) {
        var whole = link.querySelector("summary").firstChild.textContent.toLowerCase().indexOf(wanted) >= 0, own = 0;
        each("tbody tr", link, function (row) {
          row.hidden = !whole && row.textContent.toLowerCase().indexOf(wanted) < 0;
          own += row.hidden ? 0 : 1;
        });
        link.hidden = own === 0; link.open = wanted !== "" && own > 0; hits += own;
      });
      told.textContent = wanted === "" ? "" : hits === 1 ? "1 row" : hits + " rows";
    });
  });

  // Paper shows what is folded on the screen.
  var folded = [];
  addEventListener("beforeprint", function () { each("details:not([open])", null, function (x) { folded.push(x); x.open = true; }); });
  addEventListener("afterprint", function () { folded.forEach(function (x) { x.open = false; }); folded = []; });

  // One joint at a time.
  each(".joints", null, function (group) {
    var buttons = group.querySelectorAll(".tabs button"), panels = group.querySelectorAll(".panel");
    var show = function (k) {
      Array.prototype.forEach.call(buttons, function (b, i) { b.setAttribute("aria-selected", String(i === k)); b.tabIndex = i === k ? 0 : -1; });
      Array.prototype.forEach.call(panels, function (p, i) { p.hidden = i !== k; });
    };
    Array.prototype.forEach.call(buttons, function (b, i) {
      b.addEventListener("click", function () { show(i); });
      b.addEventListener("keydown", function (e) {
        var next = e.key === "ArrowRight" ? i + 1 : e.key === "ArrowLeft" ? i - 1 : -1;
        if (next >= 0 && next < buttons.length) { show(next); buttons[next].focus(); }
      });
    });
    show(0);
  });

  // Values under the pointer, and a closer look at an interval of time.
  var svgNS = "http://www.w3.org/2000/svg";
  var make = function (name, className) { var x = document.createElementNS(svgNS, name); x.setAttribute("class", className); x.style.display = "none"; return x; };
  var shown = function (x) { return Math.abs(x) >= 1e4 || (x !== 0 && Math.abs(x) < 1e-3) ? x.toExponential(2) : String(+x.toPrecision(4)); };
  var interactive = function (svg, figure, rows, zoomed) {
    var d = JSON.parse(svg.dataset.chart), box = d.b, range = d.r, now = [range[0], range[1]];
    var own = rows.filter(function (r) { return r[d.c[0]] !== ""; });
    var values = function (k) { return own.map(function (r) { return r[k] === "" ? NaN : +r[k]; }); };
    d.x = values(d.c[0]); d.y = d.c.slice(1).map(values);
    var readout = document.createElement("div"), cursor = make("path", "cursor"), pick = make("rect", "pick");
    readout.className = "readout";
    figure.appendChild(readout); svg.appendChild(pick); svg.appendChild(cursor);
    var lines = svg.querySelectorAll(".line"), bands = svg.querySelectorAll(".band, .dots");
    var original = Array.prototype.map.call(lines, function (l) { return l.getAttribute("d"); });
    var steps = d.x.slice(1).map(function (x, i) { return x - d.x[i]; }).sort(function (a, b) { return a - b; });
    var gap = 8 * (steps[steps.length >> 1] || 1), ticks = svg.querySelectorAll(".tick[text-anchor=middle]"), first = Array.prototype.map.call(ticks, function (t) { return t.textContent; });
    var u = function (x) { return box[0] + (box[2] - box[0]) * (x - now[0]) / (now[1] - now[0]); };
    var v = function (y) { return box[3] - (box[3] - box[1]) * (y - range[2]) / (range[3] - range[2]); };
    var at = function (event) {
      var r = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      var px = (event.clientX - r.left) / r.width * view.width;
      return Math.min(Math.max(px, box[0]), box[2]);
    };
    var back = function (px) { return now[0] + (px - box[0]) / (box[2] - box[0]) * (now[1] - now[0]); };
    var draw = function () {
      var whole = now[0] === range[0] && now[1] === range[1];
      Array.prototype.forEach.call(bands, function (b) { b.style.display = whole ? "" : "none"; });
      Array.prototype.forEach.call(lines, function (line, k) {
        if (whole) { line.setAttribute("d", original[k]); return; }
        if (k >= d.y.length) { return; }
        var path = "", pen = false, last = -Infinity;
        for (var i = 0; i < d.x.length; i++) {
          if (d.x[i] < now[0] || d.x[i] > now[1] || isNaN(d.y[k][i])) { pen = false; continue; }
          path += (pen && d.x[i] - last < gap ? "L" : "M") + u(d.x[i]).toFixed(1) + " " + v(d.y[k][i]).toFixed(1);
          pen = true; last = d.x[i];
        }
        line.setAttribute("d", path);
      });
      Array.prototype.forEach.call(ticks, function (t, i) { t.textContent = whole ? first[i] : shown(back(+t.getAttribute("x"))); });
    };
    var start = null;
    var nearest = function (x) {
      var lo = 0, hi = d.x.length - 1;
      while (hi - lo > 1) { var m = (lo + hi) >> 1; if (d.x[m] < x) { lo = m; } else { hi = m; } }
      return x - d.x[lo] < d.x[hi] - x ? lo : hi;
    };
    svg.addEventListener("pointermove", function (event) {
      var px = at(event), i = nearest(back(px)), r = svg.getBoundingClientRect(), f = figure.getBoundingClientRect();
      cursor.setAttribute("d", "M" + u(d.x[i]).toFixed(1) + " " + box[1] + "V" + box[3]); cursor.style.display = "";
      readout.textContent = "";
      [d.l.split(" in ")[0] + " " + shown(d.x[i])].concat(d.n.map(function (n, k) { return n + " " + shown(d.y[k][i]); })).forEach(function (words) {
        var line = document.createElement("div"); line.textContent = words; readout.appendChild(line);
      });
      readout.style.display = "block";
      var left = event.clientX - f.left + 14;
      readout.style.left = Math.max(0, left + readout.offsetWidth > f.width ? left - readout.offsetWidth - 28 : left) + "px";
      readout.style.top = (r.top - f.top + 8) + "px";
      if (start !== null) {
        pick.setAttribute("x", Math.min(start, px)); pick.setAttribute("width", Math.abs(px - start));
        pick.setAttribute("y", box[1]); pick.setAttribute("height", box[3] - box[1]); pick.style.display = "";
      }
    });
    svg.addEventListener("pointerleave", function () { readout.style.display = "none"; cursor.style.display = "none"; });
    svg.addEventListener("pointerdown", function (event) { if (event.pointerType === "mouse") { start = at(event); svg.setPointerCapture(event.pointerId); } });
    svg.addEventListener("pointerup", function (event) {
      if (start === null) { return; }
      var a = back(Math.min(start, at(event))), b = back(Math.max(start, at(event)));
      var wide = Math.abs(at(event) - start) > 8;
      start = null; pick.style.display = "none";
      if (wide) { zoomed.forEach(function (zoom) { zoom([a, b]); }); }
    });
    svg.addEventListener("dblclick", function () { zoomed.forEach(function (zoom) { zoom(null); }); });
    // Charts of one figure share their axis of time.
    zoomed.push(function (wanted) { now = wanted || [range[0], range[1]]; draw(); });
  };
  each("figure", null, function (figure) {
    var charts = figure.querySelectorAll("svg[data-chart]"), zoomed = [];
    if (!charts.length) { return; }
    // The numbers of the table that the figure links to, without its labels.
    var text = decodeURIComponent(figure.querySelector("a.data").getAttribute("href").split("charset=utf-8,")[1]);
    var rows = text.trim().split("\n").slice(1).map(function (row) { return row.split(","); });
    Array.prototype.forEach.call(charts, function (svg) { interactive(svg, figure, rows, zoomed); });
  });

  // The robot: ellipsoids project to ellipses, so plain canvas is enough.
  each(".scene", null, function (scene) {
    var data = JSON.parse(scene.querySelector("script").textContent), canvas = scene.querySelector("canvas"), c = canvas.getContext("2d");
    var yaw = 0.9, pitch = 0.35, zoom = 1, all = [], bones = [];
    data.bones.forEach(function (b) { bones.push(b[0], b[1]); });
    var arrows = data.arrows || [];
    all = bones.slice();
    arrows.forEach(function (a) { all.push(a.p); });
    data.bodies.forEach(function (b) {
      all.push(b.c);
      if (b.s) { [0, 1, 2].forEach(function (k) { [-1, 1].forEach(function (s) { all.push([0, 1, 2].map(function (i) { return b.c[i] + s * b.s[i][k]; })); }); }); }
    });
    var frame = function (points) {
      var low = [0, 1, 2].map(function (k) { return Math.min.apply(null, points.map(function (p) { return p[k]; })); });
      var high = [0, 1, 2].map(function (k) { return Math.max.apply(null, points.map(function (p) { return p[k]; })); });
      var centre = low.map(function (x, k) { return (x + high[k]) / 2; });
      // The diameter of the sphere around all points, so that none leaves the view when the robot is turned.
      return { middle: centre, reach: Math.max(1e-3, 2 * Math.max.apply(null, points.map(function (p) { return Math.hypot(p[0] - centre[0], p[1] - centre[1], p[2] - centre[2]); }))) };
    };
    // Bodies far larger than the robot, as poor data give, must not make the robot a dot.
    var whole = frame(all), own = bones.length ? frame(bones) : whole, huge = whole.reach > 2 * own.reach && own.reach > 2e-3;
    var middle = huge ? own.middle : whole.middle, reach = huge ? 2 * own.reach : whole.reach;
    var option = function (name) { var x = scene.querySelector("input[name=" + name + "]"); return x ? x.checked : true; };
    var colour = function (name) { return getComputedStyle(root).getPropertyValue("--" + name).trim(); };
    var draw = function () {
      var w = canvas.clientWidth, h = canvas.clientHeight, dots = window.devicePixelRatio || 1;
      if (!w || !h) { return; }
      canvas.width = w * dots; canvas.height = h * dots; c.setTransform(dots, 0, 0, dots, 0, 0); c.clearRect(0, 0, w, h);
      var cy = Math.cos(yaw), sy = Math.sin(yaw), cp = Math.cos(pitch), sp = Math.sin(pitch), scale = 0.95 * Math.min(w, h) / reach * zoom;
      var right = [-sy, cy, 0], up = [-sp * cy, -sp * sy, cp], near = [cp * cy, cp * sy, sp];
      var dot = function (a, b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
      var place = function (p) { var r = [p[0] - middle[0], p[1] - middle[1], p[2] - middle[2]]; return [w / 2 + scale * dot(r, right), h / 2 - scale * dot(r, up), dot(r, near)]; };
      var items = [];
      data.bones.forEach(function (b) {
        var a = place(b[0]), z = place(b[1]);
        items.push([(a[2] + z[2]) / 2, function () { c.strokeStyle = colour("grey"); c.globalAlpha = .9; c.lineWidth = 5; c.lineCap = "round"; c.beginPath(); c.moveTo(a[0], a[1]); c.lineTo(z[0], z[1]); c.stroke(); }]);
      });
      data.joints.forEach(function (j) {
        var p = place(j.p), q = place(j.p.map(function (x, k) { return x + 0.06 * reach * j.a[k]; }));
        items.push([p[2] + 1e-3, function () { c.globalAlpha = 1; c.strokeStyle = c.fillStyle = colour("ink"); c.lineWidth = 2; c.beginPath(); c.moveTo(p[0], p[1]); c.lineTo(q[0], q[1]); c.stroke(); c.beginPath(); c.arc(p[0], p[1], 4, 0, 7); c.fill(); }]);
      });
      data.bodies.forEach(function (b) {
        if (!option(b.k)) { return; }
        var p = place(b.c), tint = colour(b.k === "after" ? "blue" : "violet");
        if (!b.s) { items.push([p[2], function () { c.globalAlpha = 1; c.strokeStyle = colour("red"); c.lineWidth = 3; c.beginPath(); c.moveTo(p[0] - 7, p[1] - 7); c.lineTo(p[0] + 7, p[1] + 7); c.moveTo(p[0] + 7, p[1] - 7); c.lineTo(p[0] - 7, p[1] + 7); c.stroke(); }]); return; }
        // Columns of s are semi-axes; the outline is the ellipse of the projected ones.
        var a = 0, m = 0, z = 0;
        for (var k = 0; k < 3; k++) { var axis = [b.s[0][k], b.s[1][k], b.s[2][k]], x = scale * dot(axis, right), y = -scale * dot(axis, up); a += x * x; m += x * y; z += y * y; }
        var mean = (a + z) / 2, half = Math.hypot((a - z) / 2, m), big = Math.sqrt(mean + half), small = Math.sqrt(Math.max(mean - half, 0)), turn = 0.5 * Math.atan2(2 * m, a - z);
        items.push([p[2], function () {
          c.save(); c.translate(p[0], p[1]); c.rotate(turn); c.beginPath(); c.ellipse(0, 0, Math.max(big, 1.5), Math.max(small, 1.5), 0, 0, 7);
          if (b.k === "after" && !b.o) { c.globalAlpha = .34; c.fillStyle = tint; c.fill(); }
          c.globalAlpha = .9; c.strokeStyle = tint; c.lineWidth = b.o ? 2.5 : 1.5; c.setLineDash(b.k === "after" ? [] : [5, 4]); c.stroke(); c.restore();
        }]);
        if (option("names") && b.k === "after") { items.push([1e6, function () { c.globalAlpha = 1; c.fillStyle = colour("ink"); c.font = "12px system-ui, sans-serif"; c.fillText(b.n + ", " + (+b.m.toPrecision(3)) + " kg", p[0] + 8, p[1] - 6); }]); }
      });
      arrows.forEach(function (a) {
        if (!option(a.k)) { return; }
        var p = place(a.p), q = place(a.p.map(function (x, k) { return x + a.v[k]; })), tint = colour(a.k === "after" ? "blue" : "red");
        items.push([p[2], function () { c.globalAlpha = .85; c.strokeStyle = c.fillStyle = tint; c.lineWidth = a.k === "after" ? 2.5 : 1.3; c.beginPath(); c.moveTo(p[0], p[1]); c.lineTo(q[0], q[1]); c.stroke(); c.beginPath(); c.arc(p[0], p[1], 2, 0, 7); c.fill(); }]);
      });
      items.sort(function (x, y) { return x[0] - y[0]; }).forEach(function (x) { x[1](); });
      c.globalAlpha = 1;
    };
    var held = null;
    canvas.addEventListener("pointerdown", function (e) { held = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", function (e) {
      if (!held) { return; }
      yaw -= 0.008 * (e.clientX - held[0]); pitch = Math.min(1.55, Math.max(-1.55, pitch + 0.008 * (e.clientY - held[1])));
      held = [e.clientX, e.clientY]; draw();
    });
    canvas.addEventListener("pointerup", function () { held = null; });
    canvas.addEventListener("keydown", function (e) {
      var turn = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[e.key];
      if (turn) { yaw += turn[0]; pitch = Math.min(1.55, Math.max(-1.55, pitch + turn[1])); draw(); e.preventDefault(); }
    });
    canvas.addEventListener("wheel", function (e) { zoom = Math.min(8, Math.max(0.3, zoom * Math.exp(-0.001 * e.deltaY))); draw(); e.preventDefault(); }, { passive: false });
    each("input", scene, function (x) { x.addEventListener("change", draw); });
    redraws.push(draw);
    addEventListener("resize", draw);
    addEventListener("beforeprint", draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    draw();
  });
})();
