// The large picture: pixels, the glow of what a part explains, outlines of poses.
import { UNEXPLAINED, tint } from "./colours.js";
import { PRESENT } from "./part-grid.js";
import { glow, show, showBoth } from "./pixels.js";
import { quad } from "./pose.js";
import { element, path } from "./svg.js";

export class Stage {
  constructor(model) {
    this.model = model;
    this.base = document.getElementById("base");
    this.glow = document.getElementById("glow");
    this.svg = document.getElementById("outlines");
    this.svg.setAttribute("viewBox", `0 0 ${model.width} ${model.height}`);
    this.outlines = element("g");
    this.svg.append(this.outlines);
  }

  // From [-1, 1] at the centres of the outer pixels to pixels.
  toPixels([x, y]) {
    const { width, height } = this.model;
    return [((x + 1) / 2) * (width - 1) + 0.5, ((y + 1) / 2) * (height - 1) + 0.5];
  }

  fromEvent(event) {
    const { width, height } = this.model;
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * width;
    const y = ((event.clientY - box.top) / box.height) * height;
    return [(2 * (x - 0.5)) / (width - 1) - 1, (2 * (y - 0.5)) / (height - 1) - 1];
  }

  showPixels(view, pixels, seen) {
    const { width, height, channels } = this.model;
    if (view === "both") showBoth(this.base, seen.parts, seen.objects, width, height, channels);
    else show(this.base, view === "picture" ? pixels : seen[view], width, height, channels);
  }

  showGlow(shares, colour) {
    const { width, height } = this.model;
    if (shares) glow(this.glow, shares, width, height, colour);
    else this.glow.width = width; // clears
  }

  // Outlines of the parts found; of an object looked at, also where it expects its parts.
  showOutlines(parts, off, look) {
    const lines = [];
    parts.forEach((part, m) => {
      if (part.presence < PRESENT || off.has(m)) return;
      const colour = part.unexplained ? UNEXPLAINED : tint(part.object);
      const mine = look?.kind === "object" && part.object === look.index && !part.unexplained;
      const strong = mine || (look?.kind === "part" && look.index === m);
      const rank = !look ? "" : strong ? "strong" : "faint";
      lines.push(this.line(part.pose, colour, `outline ${rank}`, Math.max(0.25, part.presence)));
      if (mine) lines.push(this.line(part.vote, "#ffffff", "outline vote", 1));
    });
    this.outlines.replaceChildren(...lines);
  }

  line(pose, colour, kind, opacity) {
    const points = quad(pose).map((corner) => this.toPixels(corner));
    return element("path", { d: path(points), class: kind, stroke: colour, "stroke-opacity": opacity });
  }
}
