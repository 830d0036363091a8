// Objects as rows: a thumbnail or dot in the object's colour, its number, a bar of its presence.
// Objects that play no role are folded away.
import { Capsules, make, makeSwitch } from "./capsules.js";
import { tint } from "./colours.js";

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
