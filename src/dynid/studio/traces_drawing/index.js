// Drawing of one axis of the plots on a canvas: ticks, lines of samples or of extremes per column, marked intervals.

// Colors that people with color blindness can tell apart (Okabe and Ito), for light and for dark pages.
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#333333", "#56b4e9", "#7a3e9d"];
const DARK = ["#56b4e9", "#ff8c42", "#2fd0a0", "#e79ac6", "#f0e442", "#eeeeee", "#3d8fd1", "#c59ae0"];
const SEVERITY = { error: "213,94,0", warning: "230,159,0", info: "86,180,233" };
const DASHES = [[], [8, 3], [2, 3], [8, 3, 2, 3]];
const TOP = 8;
const BOTTOM = 22;
const RIGHT = 10;

export function color(joint, dark) {
  return (dark ? DARK : LIGHT)[joint % LIGHT.length];
}

export function plotArea(width, height) {
  return { left: width < 500 ? 58 : 70, top: TOP, right: width - RIGHT, bottom: height - BOTTOM };
}

export function tickValues(low, high, count) {
  const span = Math.max(high - low, 1e-300);
  let step = 10 ** Math.floor(Math.log10(span / count));
  for (const factor of [1, 2, 5, 10]) {
    if (span / (factor * step) <= count) {
      step *= factor;
      break;
    }
  }
  const out = [];
  for (let k = Math.ceil(low / step - 1e-9); k <= high / step + 1e-9; k++) out.push(k * step);
  // An axis with a single tick has no scale.
  return out.length > 1 || count > 20 ? { step, values: out } : tickValues(low, high, count + 1);
}

// A tick with as many digits as its step needs.
export function tickText(value, step) {
  if (Math.abs(value) < 1e-9 * step) return "0";
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  if (Math.abs(value) >= 1e6 || digits > 6) return value.toExponential(2);
  return value.toFixed(digits);
}

// Bytes of the server: length of the header, header, then times, lows and highs of every block.
export function unpacked(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const values = new Float64Array(buffer, 4 + size);
  let at = 0;
  const take = (n) => values.subarray(at, (at += n));
  const lines = {};
  for (const block of header.blocks) {
    const times = take(block.points);
    for (const [signal, joint] of block.columns) {
      const low = take(block.points);
      const high = take(block.points);
      lines[`${signal}:${joint}`] = { times, low, high, whole: block.whole, gap: block.gap ?? Infinity };
    }
  }
  return lines;
}

// Lowest and highest value within a view, with some room.
function valueRange(lines, view) {
  let low = Infinity;
  let high = -Infinity;
  for (const line of lines) {
    for (let i = 0; i < line.times.length; i++) {
      if (line.times[i] < view.start || line.times[i] > view.stop) continue;
      if (line.low[i] < low) low = line.low[i];
      if (line.high[i] > high) high = line.high[i];
    }
  }
  if (!(low <= high)) return { low: -1, high: 1 };
  const room = high > low ? 0.06 * (high - low) : Math.max(0.05 * Math.abs(high), 1e-6);
  return { low: low - room, high: high + room };
}

function drawLine(pen, line, x, y) {
  let down = false;
  let before = -Infinity;
  let last = 0;
  pen.beginPath();
  for (let i = 0; i < line.times.length; i++) {
    const a = line.low[i];
    const b = line.high[i];
    if (Number.isNaN(a)) {
      down = false;
      continue;
    }
    const u = x(line.times[i]);
    if (line.whole) {
      if (line.times[i] - before > line.gap) down = false;
      if (down) pen.lineTo(u, y(a));
      else pen.moveTo(u, y(a));
      before = line.times[i];
    } else {
      const [first, second] = Math.abs(y(b) - last) < Math.abs(y(a) - last) ? [b, a] : [a, b];
      if (down) pen.lineTo(u, y(first));
      else pen.moveTo(u, y(first));
      // At least a dot, so that a column alone between gaps is seen.
      last = y(second);
      pen.lineTo(u, Math.abs(y(first) - last) < 1 ? last + 0.5 : last);
    }
    down = true;
  }
  pen.stroke();
}

function drawDots(pen, line, x, y) {
  for (let i = 0; i < line.times.length; i++) {
    if (Number.isNaN(line.low[i])) continue;
    pen.beginPath();
    pen.arc(x(line.times[i]), y(line.low[i]), 2, 0, 7);
    pen.fill();
  }
}

// Shaded intervals of findings, with their words at the top, one below the other where they would overlap.
function drawMarks(pen, marks, area, x, ink, paper) {
  const taken = [];
  for (const mark of marks) {
    const shade = SEVERITY[mark.severity] ?? SEVERITY.info;
    let first = null;
    for (const [start, stop] of mark.intervals) {
      const left = Math.max(x(start) - 1.5, area.left);
      const right = Math.min(x(stop) + 1.5, area.right);
      if (right <= area.left || left >= area.right) continue;
      first ??= left;
      pen.fillStyle = `rgba(${shade},0.28)`;
      pen.fillRect(left, area.top, Math.max(right - left, 1), area.bottom - area.top);
    }
    if (first === null) continue;
    const width = pen.measureText(mark.label).width + 8;
    const at = Math.max(area.left, Math.min(first, area.right - width));
    let row = 0;
    while (taken.some((t) => t.row === row && at < t.right && at + width > t.left)) row++;
    if (area.top + 15 * (row + 1) > area.bottom) continue;
    taken.push({ row, left: at, right: at + width, label: mark.label });
    pen.fillStyle = paper;
    pen.fillRect(at, area.top + 15 * row + 1, width, 14);
    pen.fillStyle = `rgba(${shade},0.45)`;
    pen.fillRect(at, area.top + 15 * row + 1, width, 14);
    pen.fillStyle = ink;
    pen.textAlign = "left";
    pen.fillText(mark.label, at + 4, area.top + 15 * row + 12);
  }
  return taken.map((t) => t.label);
}

// An axis: {label, unit, signals}; `shown` the joints, `lines` the unpacked answer, `marks` the findings of this axis.
// The canvas tells its range of values and the labels on it.
export function drawAxis(canvas, axis, shown, lines, view, marks, dark) {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const paper = dark ? "#1d1d1d" : "#ffffff";
  const ink = dark ? "#f0f0f0" : "#1d2b3a";
  pen.fillStyle = paper;
  pen.fillRect(0, 0, width, height);
  pen.font = "11px system-ui, sans-serif";
  const area = plotArea(width, height);
  const visible = [];
  for (const signal of axis.signals)
    for (const joint of axis.joints)
      if (shown.has(joint) && lines[`${signal}:${joint}`]) visible.push({ signal, joint, ...lines[`${signal}:${joint}`] });
  const range = valueRange(visible, view);
  const x = (t) => area.left + ((area.right - area.left) * (t - view.start)) / (view.stop - view.start);
  const y = (v) => area.bottom - ((area.bottom - area.top) * (v - range.low)) / (range.high - range.low);
  drawTicks(pen, axis, area, view, range, x, y, width, height, ink, dark);
  pen.save();
  pen.beginPath();
  pen.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
  pen.clip();
  for (const line of visible) {
    const model = line.signal === "predicted";
    pen.strokeStyle = pen.fillStyle = color(line.joint, dark);
    pen.globalAlpha = axis.signals.includes("predicted") && !model ? 0.5 : 1;
    pen.lineWidth = model ? 1.8 : 1.1;
    pen.setLineDash(model ? [5, 3] : line.whole ? DASHES[Math.floor(line.joint / LIGHT.length) % DASHES.length] : []);
    drawLine(pen, line, x, y);
    pen.setLineDash([]);
    if (line.whole && line.times.length < (area.right - area.left) / 8) drawDots(pen, line, x, y);
  }
  pen.globalAlpha = 1;
  if (axis.signals.includes("predicted")) drawLegend(pen, area, ink, paper);
  const labels = drawMarks(pen, marks, area, x, ink, paper);
  pen.restore();
  Object.assign(canvas.dataset, { low: range.low, high: range.high, marks: labels.join("; ") });
}

// Which line is measured and which is predicted, in the lower right corner.
function drawLegend(pen, area, ink, paper) {
  pen.fillStyle = paper;
  pen.fillRect(area.right - 172, area.bottom - 17, 170, 15);
  pen.fillStyle = pen.strokeStyle = ink;
  pen.textAlign = "left";
  [["measured", 168, 1.1, 0.5, []], ["predicted", 84, 1.8, 1, [5, 3]]].forEach(([words, left, width, alpha, dash]) => {
    pen.globalAlpha = alpha;
    pen.lineWidth = width;
    pen.setLineDash(dash);
    pen.beginPath();
    pen.moveTo(area.right - left, area.bottom - 9);
    pen.lineTo(area.right - left + 22, area.bottom - 9);
    pen.stroke();
    pen.globalAlpha = 1;
    pen.fillText(words, area.right - left + 26, area.bottom - 5);
  });
  pen.setLineDash([]);
}

function drawTicks(pen, axis, area, view, range, x, y, width, height, ink, dark) {
  pen.strokeStyle = dark ? "#3a3a3a" : "#e3e7ec";
  pen.fillStyle = ink;
  pen.lineWidth = 1;
  const vertical = tickValues(range.low, range.high, Math.max(2, Math.floor(height / 40)));
  pen.textAlign = "right";
  for (const value of vertical.values) {
    pen.beginPath();
    pen.moveTo(area.left, y(value));
    pen.lineTo(area.right, y(value));
    pen.stroke();
    pen.fillText(tickText(value, vertical.step), area.left - 5, y(value) + 4);
  }
  const words = "time in s";
  const edge = area.right - pen.measureText(words).width - 12;
  pen.textAlign = "right";
  pen.fillText(words, area.right, height - 7);
  pen.textAlign = "center";
  const horizontal = tickValues(view.start, view.stop, Math.max(2, Math.floor(width / 110)));
  for (const value of horizontal.values) {
    pen.beginPath();
    pen.moveTo(x(value), area.top);
    pen.lineTo(x(value), area.bottom);
    pen.stroke();
    const text = tickText(value, horizontal.step);
    if (x(value) + pen.measureText(text).width / 2 < edge) pen.fillText(text, x(value), height - 7);
  }
  pen.strokeStyle = dark ? "#8a8a8a" : "#7b8794";
  pen.strokeRect(area.left, area.top, area.right - area.left, area.bottom - area.top);
  pen.save();
  pen.translate(12, (area.top + area.bottom) / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText(`${axis.label} in ${axis.unit}`, 0, 0);
  pen.restore();
}
