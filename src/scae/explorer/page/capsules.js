// Lists of capsules with switches, and the steps of an explanation.
import { colourOf, decode, show, tint } from "./pixels.js";

// A set of capsules: one focus stop for all, arrow keys between them, a switch for each.

class Capsules {
  // `make(index)` gives { node, button, box }; `on` has look(index | null), choose, toggle.
  constructor(host, count, make, on) {
    this.items = Array.from({ length: count }, (_, index) => make(index));
    host.append(...this.items.map((item) => item.node));
    this.items.forEach((item, index) => this.listen(item, index, on));
    this.stop(0);
  }

  listen({ node, button, box }, index, on) {
    node.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && on.look(index));
    node.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && on.look(null));
    button.addEventListener("focus", () => {
      this.stop(index);
      if (button.matches(":focus-visible")) on.look(index);
    });
    button.addEventListener("blur", () => on.look(null));
    button.addEventListener("click", () => on.choose(index));
    box.addEventListener("change", () => on.toggle(index, box.checked));
    node.addEventListener("keydown", (event) => this.key(event, index, on));
  }

  key(event, index, on) {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const shown = this.shown();
    const count = shown.length;
    if (event.key in steps) this.focus(shown[(shown.indexOf(index) + steps[event.key] + count) % count]);
    else if (event.key === "Home") this.focus(shown[0]);
    else if (event.key === "End") this.focus(shown[count - 1]);
    else if (event.key === "Delete" || event.key === "x") {
      const { box } = this.items[index];
      box.checked = !box.checked;
      on.toggle(index, box.checked);
    } else return;
    event.preventDefault();
  }

  focus(index) {
    this.stop(index);
    this.items[index].button.focus({ focusVisible: true });
  }

  // Indices of the capsules that are not folded away, in their order on the page.
  shown() {
    const order = (a, b) => (this.items[a].node.compareDocumentPosition(this.items[b].node) & 4 ? -1 : 1);
    return this.items.flatMap(({ node }, i) => (node.checkVisibility() ? [i] : [])).sort(order);
  }

  // Keep the tab stop on a capsule that can be seen.
  settle() {
    const shown = this.shown();
    const now = this.items.findIndex(({ button }) => button.tabIndex === 0);
    if (shown.length && !shown.includes(now)) this.stop(shown[0]);
  }

  // Only the current capsule can be reached by the tabulator key.
  stop(index) {
    this.items.forEach(({ button, box }, i) => {
      button.tabIndex = box.tabIndex = i === index ? 0 : -1;
    });
  }
}

export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function makeSwitch(name) {
  const box = make("input", { type: "checkbox", checked: true, title: `Switch ${name} off or on` });
  box.setAttribute("aria-label", `${name} is on`);
  return box;
}

// Objects as rows: a thumbnail or dot in the object's colour, its number, a bar of its presence.
// Objects that play no role are folded away.

export class ObjectList {
  constructor(host, folded, count, on, thumbnails) {
    Object.assign(this, { host, folded, rows: [] });
    this.hidden = folded.querySelector("div");
    this.capsules = new Capsules(host, count, (k) => this.make(k, thumbnails), on);
    folded.addEventListener("toggle", () => this.capsules.settle());
  }

  make(k, thumbnails) {
    const face = thumbnails ? make("canvas", { className: "pixels" }) : make("span", { className: "dot" });
    const fill = make("i");
    const value = make("span", { className: "value", textContent: "–" });
    const button = make(
      "button", { type: "button" }, face,
      make("span", { className: "number", textContent: k }),
      make("span", { className: "bar" }, fill), value,
    );
    const box = makeSwitch(`Object ${k}`);
    const node = make("div", { className: "object" }, box, button);
    node.style.setProperty("--tint", tint(k));
    this.rows.push({ node, button, face, fill, value });
    return { node, button, box };
  }

  update(objects, off, chosen, noun) {
    this.rows.forEach(({ node, button, fill, value }, k) => {
      const { presence = 0, explains = 0 } = objects[k] ?? {};
      fill.style.transform = `scaleX(${presence})`;
      value.textContent = objects[k] ? presence.toFixed(2) : "–";
      node.classList.toggle("off", off.has(k));
      button.setAttribute("aria-pressed", String(chosen === k));
      button.setAttribute(
        "aria-label",
        `Object ${k}: presence ${presence.toFixed(2)}, explains ${explains.toFixed(1)} ${noun}`,
      );
    });
    this.fold((k) => objects[k]?.used || off.has(k) || chosen === k);
  }

  // Rows change places only when they have to, so that a focused one keeps its focus.
  fold(used) {
    const places = [this.host, this.hidden];
    const wanted = this.rows.map((_, k) => (used(k) ? this.host : this.hidden));
    for (const place of places) {
      const rows = this.rows.flatMap(({ node }, k) => (wanted[k] === place ? [node] : []));
      if (rows.some((node, i) => place.children[i] !== node)) place.append(...rows);
    }
    const count = this.hidden.children.length;
    this.folded.hidden = !count;
    this.folded.querySelector("summary").textContent = `${count} object${count > 1 ? "s" : ""} not used here`;
    this.capsules.settle();
  }
}

// Parts as tiles: the template, how present it is, and the colour of the object explaining it.

export const PRESENT = 0.1;
const FAINT = 90; // of 255; what is darker is not ink

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

// Corners of a frame along each template's stroke, in the template's own coordinates: its ink is
// taken for an ellipse, whose half axes are two standard deviations.
export function strokeFrames({ template_size: size, channels, parts, templates }) {
  const bytes = decode(templates);
  return Array.from({ length: parts }, (_, m) => {
    const ink = Array.from({ length: size * size }, (_, i) => [
      (2 * (i % size)) / (size - 1) - 1,
      (2 * Math.floor(i / size)) / (size - 1) - 1,
      Math.max(0, bytes[channels * (m * size * size + i)] - FAINT),
    ]);
    const total = ink.reduce((sum, [, , w]) => sum + w, 1e-9);
    const mean = (value) => ink.reduce((sum, [x, y, w]) => sum + w * value(x, y), 0) / total;
    const [cx, cy] = [mean((x) => x), mean((_, y) => y)];
    const xx = mean((x) => (x - cx) ** 2);
    const yy = mean((_, y) => (y - cy) ** 2);
    const xy = mean((x, y) => (x - cx) * (y - cy));
    const angle = Math.atan2(2 * xy, xx - yy) / 2;
    const [middle, spread] = [(xx + yy) / 2, Math.hypot((xx - yy) / 2, xy)];
    const long = 2 * Math.sqrt(middle + spread);
    const wide = 2 * Math.sqrt(Math.max(0, middle - spread));
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    return [[-long, -wide], [long, -wide], [long, wide], [-long, wide]].map(([u, v]) =>
      [cx + cos * u - sin * v, cy + sin * u + cos * v]);
  });
}

// The steps of an explanation: radio buttons, back and next, and the number keys.

export class Steps {
  // `steps` maps a name to the words on its button.
  constructor(host, steps, first, changed) {
    this.names = Object.keys(steps);
    this.changed = changed;
    const list = make("div", { className: "segments" });
    this.radios = this.names.map((name, i) => {
      const radio = make("input", { type: "radio", name: host.id, value: name });
      radio.addEventListener("change", () => this.set(name));
      list.append(make("label", { title: `Key ${i + 1}` }, radio, make("span", { textContent: steps[name] })));
      return radio;
    });
    this.back = make("button", { type: "button", textContent: "‹", title: "Step back" });
    this.next = make("button", { type: "button", textContent: "›", title: "Next step" });
    this.back.setAttribute("aria-label", "Step back");
    this.next.setAttribute("aria-label", "Next step");
    this.back.addEventListener("click", () => this.go(-1));
    this.next.addEventListener("click", () => this.go(1));
    host.append(make("div", { className: "walk" }, this.back, list, this.next));
    window.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const name = this.names[Number(event.key) - 1];
      if (name) this.set(name);
    });
    this.show(first);
  }

  go(by) {
    const index = this.names.indexOf(this.value) + by;
    if (index >= 0 && index < this.names.length) this.set(this.names[index]);
  }

  set(name) {
    this.show(name);
    this.changed();
  }

  show(name) {
    this.value = name;
    const index = this.names.indexOf(name);
    this.radios[index].checked = true;
    // Not `disabled`: a button that loses its focus throws the keyboard back to the top.
    this.back.setAttribute("aria-disabled", String(index === 0));
    this.next.setAttribute("aria-disabled", String(index === this.names.length - 1));
  }
}
