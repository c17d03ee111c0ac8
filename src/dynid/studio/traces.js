// Linked plots of a recording: one canvas per axis, one view of time for all, windows of the data from the server.
import { color, drawAxis, plotArea, unpacked } from "dynid-traces";

// Share of the view that a key or a wheel step moves, and the factor that it zooms by.
const PAN = 0.15;
const ZOOM = 1.4;
// Pixels around the cursor that take hold of it, and those that a press may move and still be a click.
const GRIP = 8;
const STILL = 4;
const HELP =
  "Wheel or pinch zooms, dragging moves, a click or tap sets the cursor, a double click shows all. " +
  "Keys: left and right move, plus and minus zoom, Home shows all, Shift with left and right moves the cursor.";

export default {
  template: `
    <div class="dynid-traces">
      <div class="dynid-traces-bar">
        <button type="button" @click="zoom(1 / 2)" aria-label="zoom in" title="zoom in">+</button>
        <button type="button" @click="zoom(2)" aria-label="zoom out" title="zoom out">−</button>
        <button type="button" @click="all()" title="show the whole run">all</button>
        <button v-for="(joint, j) in joints" :key="joint" type="button" class="dynid-traces-joint"
          :aria-pressed="shown.has(j) ? 'true' : 'false'" @click="choose(j, $event)"
          :title="'click: only ' + joint + ', or all again; with Shift: add or remove it'">
          <span class="dynid-traces-swatch" :style="{ background: swatch(j) }"></span>{{ joint }}</button>
      </div>
      <p v-if="message" role="status" class="dynid-traces-message">{{ message }}</p>
      <div ref="stack" class="dynid-traces-stack" tabindex="0" role="group" :aria-label="label"
        @keydown="key" @wheel="wheel" @pointerdown="press" @pointermove="drag" @pointerup="release"
        @pointercancel="release" @dblclick="all()">
        <canvas v-for="(axis, k) in axes" :key="k + axis.label + axis.unit" ref="canvases" role="img"
          :aria-label="axis.label + ' in ' + axis.unit + ' over time in s'"></canvas>
        <div v-show="cursorLeft !== null" class="dynid-traces-cursor" :style="{ left: cursorLeft + 'px' }"></div>
      </div>
      <label v-if="duration" class="dynid-traces-scrub">time of the pose
        <input type="range" min="0" :max="duration" :step="duration / 10000" :value="cursor ?? 0"
          @input="setCursor(+$event.target.value)" aria-label="time of the pose in s">
        <output>{{ cursor === null ? "none" : cursor.toFixed(3) + " s" }}</output></label>
      <table v-if="values.length" class="dynid-traces-values">
        <thead><tr><th v-for="cell in values[0]" :key="cell">{{ cell }}</th></tr></thead>
        <tbody><tr v-for="row in values.slice(1)" :key="row[0]"><td v-for="(cell, k) in row" :key="k">{{ cell }}</td>
        </tr></tbody>
      </table>
    </div>`,
  props: { name: String, run: Number, predicted: Boolean, findings: Array, version: Number },
  data: () => ({
    joints: [], axes: [], shown: new Set(), duration: 0, samples: 0, message: "", cursor: null, cursorLeft: null,
    values: [], dark: false,
  }),
  computed: {
    label() {
      return `Plots of ${this.name}, ${this.samples} samples. ${HELP}`;
    },
    wanted() {
      return [this.name, this.run, this.predicted, this.version].join("|");
    },
  },
  watch: {
    wanted() {
      this.load();
    },
    findings() {
      this.draw();
    },
  },
  mounted() {
    this.view = { start: 0, stop: 1 };
    this.lines = {};
    this.fingers = new Map();
    this.resized = new ResizeObserver(() => this.ask());
    this.resized.observe(this.$refs.stack);
    this.theme = new MutationObserver(() => this.draw());
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.load();
  },
  unmounted() {
    this.resized.disconnect();
    this.theme.disconnect();
  },
  methods: {
    swatch(j) {
      return color(j, this.dark);
    },
    address(what, query) {
      const more = { run: this.run, predicted: this.predicted, ...query };
      return `/traces/${encodeURIComponent(this.name)}/${what}?${new URLSearchParams(more)}`;
    },
    async load() {
      if (!this.name) return;
      const wanted = this.wanted;
      this.message = "reading ...";
      const answer = await fetch(this.address("about", {})).catch(() => null);
      if (wanted !== this.wanted) return;
      if (!answer || !answer.ok) {
        this.message = answer ? await answer.text() : "the studio does not answer";
        return;
      }
      const about = await answer.json();
      const same = this.loaded === `${this.name}|${this.run}` && this.duration === about.duration;
      this.loaded = `${this.name}|${this.run}`;
      Object.assign(this, { axes: about.axes, duration: about.duration, samples: about.samples, message: "" });
      if (!same || this.joints.join() !== about.joints.join()) {
        this.joints = about.joints;
        this.shown = new Set(about.joints.keys());
        this.view = { start: 0, stop: Math.max(about.duration, 1e-9) };
        Object.assign(this, { cursor: null, cursorLeft: null, values: [] });
      }
      this.lines = {};
      await this.$nextTick();
      this.ask();
    },
    choose(j, event) {
      const next = new Set(this.shown);
      if (event.shiftKey) next.has(j) ? next.delete(j) : next.add(j);
      else if (next.size === 1 && next.has(j)) this.joints.forEach((_, k) => next.add(k));
      else {
        next.clear();
        next.add(j);
      }
      this.shown = next;
      this.ask();
    },

    // -- the view ----------------------------------------------------------------------------------
    area() {
      return plotArea(this.$refs.stack.clientWidth, 100);
    },
    timeAt(clientX) {
      const area = this.area();
      const u = clientX - this.$refs.stack.getBoundingClientRect().left - area.left;
      return this.view.start + ((this.view.stop - this.view.start) * u) / (area.right - area.left);
    },
    setView(start, stop) {
      const shortest = Math.max((5 * this.duration) / Math.max(this.samples, 1), 1e-6);
      const span = Math.min(Math.max(stop - start, shortest), this.duration);
      const middle = (start + stop) / 2;
      const first = Math.min(Math.max(middle - span / 2, 0), this.duration - span);
      if (first === this.view.start && first + span === this.view.stop) return false;
      this.view = { start: first, stop: first + span };
      this.ask();
      return true;
    },
    zoom(factor, at) {
      const { start, stop } = this.view;
      const inside = this.cursor !== null && this.cursor > start && this.cursor < stop;
      const fixed = at ?? (inside ? this.cursor : (start + stop) / 2);
      return this.setView(fixed + (start - fixed) * factor, fixed + (stop - fixed) * factor);
    },
    pan(share) {
      const step = share * (this.view.stop - this.view.start);
      return this.setView(this.view.start + step, this.view.stop + step);
    },
    all() {
      return this.setView(0, this.duration);
    },

    // -- the data ----------------------------------------------------------------------------------
    // One request at a time: while one is under way, only the last view is remembered.
    async ask() {
      this.changed = performance.now();
      this.draw();
      if (this.busy || !this.duration) {
        this.again = true;
        return;
      }
      this.busy = true;
      do {
        this.again = false;
        await this.fetched(this.changed, this.wanted);
      } while (this.again);
      this.busy = false;
    },
    async fetched(since, wanted) {
      const area = this.area();
      const columns = Math.round((area.right - area.left) * Math.min(window.devicePixelRatio || 1, 2));
      if (!(columns > 0)) return; // the tab is not shown
      const query = { ...this.view, columns, joints: [...this.shown].join() };
      try {
        const answer = await fetch(this.address("window", query));
        if (wanted !== this.wanted) return;
        if (!answer.ok) {
          this.message = await answer.text();
          return;
        }
        this.lines = unpacked(await answer.arrayBuffer());
        this.paint();
        performance.measure("dynid-zoom", { start: since, end: performance.now() });
      } catch {
        this.message = "the studio does not answer";
      }
    },
    draw() {
      if (this.drawing) return;
      this.drawing = requestAnimationFrame(() => this.paint());
    },
    paint() {
      cancelAnimationFrame(this.drawing);
      this.drawing = 0;
      this.dark = document.body.classList.contains("body--dark");
      const stack = this.$refs.stack;
      if (!stack || !stack.clientWidth) return;
      (this.$refs.canvases ?? []).forEach((canvas, k) => {
        const axis = this.axes[k];
        if (!axis) return;
        const marks = (this.findings ?? []).filter(
          (f) => (!f.signal || axis.signals.includes(f.signal)) && (f.joint < 0 || this.shown.has(f.joint)),
        );
        drawAxis(canvas, axis, this.shown, this.lines, this.view, marks, this.dark);
      });
      this.placeCursor();
      Object.assign(stack.dataset, { start: this.view.start, stop: this.view.stop });
    },

    // -- the cursor --------------------------------------------------------------------------------
    placeCursor() {
      const { start, stop } = this.view;
      const inside = this.cursor !== null && this.cursor >= start && this.cursor <= stop;
      const area = this.area();
      this.cursorLeft = inside ? area.left + ((area.right - area.left) * (this.cursor - start)) / (stop - start) : null;
    },
    setCursor(time) {
      this.move_cursor(Math.min(Math.max(time, 0), this.duration));
      this.$emit("cursor", { time: this.cursor });
    },
    // Called by the server while a motion is played, too.
    move_cursor(time) {
      this.cursor = time;
      this.placeCursor();
    },
    show_values(rows) {
      this.values = rows;
    },

    // -- mouse, wheel, touch and keys ----------------------------------------------------------------
    wheel(event) {
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      const amount = sideways ? event.deltaX || event.deltaY : event.deltaY;
      const moved = sideways ? this.pan(PAN * Math.sign(amount)) : this.zoom(ZOOM ** Math.sign(amount), this.timeAt(event.clientX));
      if (moved) event.preventDefault(); // at its ends the wheel scrolls the page
    },
    press(event) {
      if (event.button) return;
      this.$refs.stack.setPointerCapture(event.pointerId);
      this.fingers.set(event.pointerId, event.clientX);
      const left = event.clientX - this.$refs.stack.getBoundingClientRect().left;
      const held = this.cursorLeft !== null && Math.abs(left - this.cursorLeft) < GRIP;
      this.gesture = { from: event.clientX, moved: false, cursor: held && this.fingers.size === 1, view: { ...this.view } };
      this.pinch = this.fingers.size === 2 ? this.spread() : null;
    },
    spread() {
      const [a, b] = [...this.fingers.values()];
      return { times: [this.timeAt(a), this.timeAt(b)] };
    },
    drag(event) {
      if (!this.fingers.has(event.pointerId) || !this.gesture) return;
      this.fingers.set(event.pointerId, event.clientX);
      if (this.pinch) return this.pinched();
      const by = event.clientX - this.gesture.from;
      if (Math.abs(by) > STILL) this.gesture.moved = true;
      if (!this.gesture.moved) return;
      if (this.gesture.cursor) return this.setCursor(this.timeAt(event.clientX));
      const area = this.area();
      const { start, stop } = this.gesture.view;
      const shift = (-by * (stop - start)) / (area.right - area.left);
      this.setView(start + shift, stop + shift);
    },
    // The times under both fingers stay under them.
    pinched() {
      const area = this.area();
      const edge = this.$refs.stack.getBoundingClientRect().left + area.left;
      const [a, b] = [...this.fingers.values()].map((x) => (x - edge) / (area.right - area.left));
      if (Math.abs(b - a) < 0.02) return;
      const [s, t] = this.pinch.times;
      const span = Math.abs((t - s) / (b - a));
      this.setView(s - a * span, s + (1 - a) * span);
      this.gesture.moved = true;
    },
    release(event) {
      if (!this.fingers.delete(event.pointerId) || !this.gesture) return;
      if (event.type === "pointerup" && !this.gesture.moved && !this.pinch) this.setCursor(this.timeAt(event.clientX));
      if (this.fingers.size) {
        // The finger that stays goes on from where it is.
        this.pinch = null;
        this.gesture = { from: [...this.fingers.values()][0], moved: true, cursor: false, view: { ...this.view } };
      } else this.gesture = this.pinch = null;
    },
    key(event) {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const sign = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const span = this.view.stop - this.view.start;
      if (sign && event.shiftKey) this.setCursor((this.cursor ?? this.view.start) + (sign * span) / 200);
      else if (sign) this.pan(PAN * sign);
      else if (event.key === "+" || event.key === "=") this.zoom(1 / ZOOM);
      else if (event.key === "-") this.zoom(ZOOM);
      else if (event.key === "Home" || event.key === "0") this.all();
      else return;
      event.preventDefault();
    },
  },
};
