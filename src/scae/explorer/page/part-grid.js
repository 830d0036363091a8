// Parts as tiles: the template, how present it is, and the colour of the object explaining it.
import { Capsules, make, makeSwitch } from "./capsules.js";
import { UNEXPLAINED, tint } from "./colours.js";
import { decode, show } from "./pixels.js";

export const PRESENT = 0.1;

export class PartGrid {
  constructor(host, model, on) {
    this.model = model;
    this.templates = decode(model.templates);
    this.tiles = [];
    this.capsules = new Capsules(host, model.parts, (m) => this.make(m), on);
  }

  make(m) {
    const { template_size: size, channels } = this.model;
    const canvas = make("canvas", { className: "pixels" });
    const length = size * size * channels;
    show(canvas, this.templates.subarray(m * length, (m + 1) * length), size, size, channels);
    const button = make(
      "button", { type: "button" }, canvas,
      make("span", { className: "name", textContent: m }),
      make("span", { className: "rim" }, make("i")),
    );
    const box = makeSwitch(`Part ${m}`);
    const node = make("div", { className: "part" }, button, box);
    this.tiles.push({ node, button });
    return { node, button, box };
  }

  // `lit` are the parts to point out.
  update(parts, off, chosen, lit) {
    this.tiles.forEach(({ node, button }, m) => {
      const part = parts[m];
      const presence = part?.presence ?? 0;
      node.style.setProperty("--presence", presence);
      node.style.setProperty("--tint", !part || part.unexplained ? UNEXPLAINED : tint(part.object));
      node.classList.toggle("off", off.has(m));
      node.classList.toggle("lit", lit.has(m));
      button.setAttribute("aria-pressed", String(chosen === m));
      button.setAttribute("aria-label", describe(m, part));
    });
  }
}

export function describe(m, part) {
  if (!part) return `Part ${m}`;
  if (part.presence < PRESENT) return `Part ${m} is absent (presence ${part.presence.toFixed(2)}).`;
  const who = part.unexplained ? "no object explains it" : `explained by object ${part.object}`;
  return `Part ${m}: presence ${part.presence.toFixed(2)}, ${who}.`;
}
