// The large picture: pixels, the glow of what parts explain, frames of poses.
import { colourOf } from "./colours.js";
import { PRESENT, inkBoxes } from "./part-grid.js";
import { glow, show, showBoth } from "./pixels.js";
import { apply, compose, quad } from "./pose.js";
import { element, path } from "./svg.js";

const NEUTRAL = "#dfe6f2";

export class Stage {
  constructor(model) {
    Object.assign(this, { model, left: 0, top: 0, width: model.width, height: model.height });
    this.boxes = inkBoxes(model);
    this.base = document.getElementById("base");
    this.glow = document.getElementById("glow");
    this.svg = document.getElementById("outlines");
    this.svg.setAttribute("viewBox", `0 0 ${model.width} ${model.height}`);
    this.outlines = element("g");
    this.svg.append(this.outlines);
  }

  // From [-1, 1] at the centres of the outer pixels to pixels.
  toPixels([x, y]) {
    return [((x + 1) / 2) * (this.width - 1) + 0.5, ((y + 1) / 2) * (this.height - 1) + 0.5];
  }

  fromEvent(event) {
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.width;
    const y = ((event.clientY - box.top) / box.height) * this.height;
    return [(2 * (x - 0.5)) / (this.width - 1) - 1, (2 * (y - 0.5)) / (this.height - 1) - 1];
  }

  showPixels(bytes) {
    show(this.base, bytes, this.width, this.height, this.model.channels);
  }

  showBoth({ parts, objects }) {
    showBoth(this.base, parts, objects, this.width, this.height, this.model.channels);
  }

  showGlow(layers) {
    if (layers.length) glow(this.glow, layers, this.width, this.height);
    else this.glow.width = this.width; // clears
  }

  // What a step shows of each part: its own frame, its object's vote, the way between them.
  // `shifts` has the transform of each object that was dragged.
  showFrames(parts, off, { step, look, chosen, shifts }) {
    const lines = [];
    parts.forEach((part, m) => {
      if (part.presence < PRESENT || off.has(m)) return;
      const colour = step === "parts" && !look ? NEUTRAL : colourOf(part.object);
      const mine = look?.kind === "object" ? part.object === look.index : look?.index === m;
      const rank = !look ? "" : mine ? "strong" : "faint";
      const opacity = Math.max(0.3, part.presence);
      const dragged = chosen !== null && part.object === chosen;
      const votes = part.object >= 0 && (step === "votes" || (mine && look.kind === "object"));
      if (!dragged && (mine || (step !== "picture" && step !== "drawn"))) {
        lines.push(this.frame(m, part.pose, colour, `outline ${rank}`, opacity));
      }
      if (!votes && !dragged) return;
      const shift = shifts.get(part.object);
      const vote = shift ? compose(shift, part.vote) : part.vote;
      lines.push(this.frame(m, vote, "#ffffff", `outline vote ${rank}`, 1));
      if (step === "votes" && !dragged) lines.push(this.way(part.pose, vote, m, colour, rank));
    });
    this.outlines.replaceChildren(...lines);
  }

  frame(m, pose, colour, kind, opacity) {
    const points = quad(pose, this.boxes[m]).map((corner) => this.toPixels(corner));
    return element("path", { d: path(points), class: kind, stroke: colour, "stroke-opacity": opacity });
  }

  way(pose, vote, m, colour, rank) {
    const ends = [pose, vote].map((p) => this.centre(m, p));
    return element("path", { d: path(ends), class: `outline way ${rank}`, stroke: colour });
  }

  // The middle of what a part draws, in pixels.
  centre(m, pose) {
    const [left, top, right, bottom] = this.boxes[m];
    return this.toPixels(apply(pose, [(left + right) / 2, (top + bottom) / 2]));
  }
}
