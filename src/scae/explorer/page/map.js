// The t-SNE map: a dot per picture; click one, or walk there by arrow keys, to open it.
import { get } from "./api.js";
import { tint } from "./colours.js";

const DOT = 3.2;
const PADDING = 14;
const card = document.getElementById("map-card");
const canvas = document.getElementById("map");
const note = document.getElementById("map-note");
const caption = document.getElementById("map-caption");

// The map is computed when it is first opened.
export function startMap(model, open) {
  card.hidden = false;
  card.addEventListener("toggle", () => show(model, open), { once: true });
}

async function show(model, open) {
  note.textContent = "is being computed …";
  try {
    const map = await get("/api/map");
    note.textContent = `${map.points.length} pictures of ${model.dataset}, coloured by ${map.grouped_by}`;
    const view = new MapView(map, open);
    new ResizeObserver(() => view.draw()).observe(canvas);
  } catch (error) {
    note.textContent = error.message;
  }
}

class MapView {
  constructor(map, open) {
    Object.assign(this, { map, open, at: null });
    canvas.addEventListener("pointermove", (event) => this.point(this.nearest(event)));
    canvas.addEventListener("click", (event) => {
      this.point(this.nearest(event));
      if (this.at !== null) open(this.at);
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  place([x, y]) {
    const { clientWidth: width, clientHeight: height } = canvas;
    const fit = (value, size) => PADDING + ((value + 1) / 2) * (size - 2 * PADDING);
    return [fit(x, width), fit(y, height)];
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    this.map.points.forEach((point, i) => {
      context.fillStyle = tint(this.map.groups[i]);
      context.beginPath();
      context.arc(...this.place(point), i === this.at ? 2.2 * DOT : DOT, 0, 2 * Math.PI);
      context.fill();
      if (i !== this.at) return;
      context.strokeStyle = "#ffffff";
      context.lineWidth = 2;
      context.stroke();
    });
  }

  nearest(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [best, distance] = [null, 16];
    this.map.points.forEach((point, i) => {
      const [px, py] = this.place(point);
      const far = Math.hypot(px - x, py - y);
      if (far < distance) [best, distance] = [i, far];
    });
    return best;
  }

  point(index) {
    if (index === this.at) return;
    this.at = index;
    const group = this.map.groups[index];
    const name = this.map.names[group] ?? group;
    caption.textContent = index === null ? "" : `Picture ${index}, ${this.map.grouped_by} ${name}.`;
    this.draw();
  }

  key(event) {
    if (event.key === "Enter" && this.at !== null) this.open(this.at);
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [x, y] = this.at === null ? [0, 0] : this.map.points[this.at];
    let [best, cost] = [this.at, Infinity];
    this.map.points.forEach(([px, py], i) => {
      const along = (px - x) * step[0] + (py - y) * step[1];
      const across = Math.abs((px - x) * step[1]) + Math.abs((py - y) * step[0]);
      if (along > 1e-6 && along + 3 * across < cost) [best, cost] = [i, along + 3 * across];
    });
    this.point(best);
  }
}
