// Parts as tiles: the template, how present it is, and the colour of the object explaining it.
import { Capsules, make, makeSwitch } from "./capsules.js";
import { colourOf } from "./colours.js";
import { decode, show } from "./pixels.js";

export const PRESENT = 0.1;
const INK = 90; // of 255

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
      node.style.setProperty("--tint", colourOf(part?.object ?? -1));
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
  const who = part.object < 0 ? "no object explains it" : `explained by object ${part.object}`;
  return `Part ${m}: presence ${part.presence.toFixed(2)}, ${who}.`;
}

// The box [left, top, right, bottom] around what a template draws, in its own coordinates.
export function inkBoxes({ template_size: size, channels, parts, templates }) {
  const bytes = decode(templates);
  return Array.from({ length: parts }, (_, m) => {
    const box = [1, 1, -1, -1];
    for (let i = 0; i < size * size; i++) {
      const value = bytes[channels * (m * size * size + i)];
      if (value < INK) continue;
      const at = [i % size, Math.floor(i / size)];
      for (const c of [0, 1]) {
        box[c] = Math.min(box[c], (2 * at[c]) / size - 1);
        box[c + 2] = Math.max(box[c + 2], (2 * (at[c] + 1)) / size - 1);
      }
    }
    return box[2] > box[0] ? box : [-1, -1, 1, 1];
  });
}
