// The page of an image model: what is shown follows from one state and the server's last answer.
import { get, latestOnly, post, postFile } from "./api.js";
import { make } from "./capsules.js";
import { UNEXPLAINED, tint } from "./colours.js";
import { Drawing } from "./drawing.js";
import { digits, drawExample } from "./examples.js";
import { listenToFiles } from "./files.js";
import { Handles, isMoved, startEdit } from "./handles.js";
import { startMap } from "./map.js";
import { say } from "./notice.js";
import { ObjectList } from "./object-list.js";
import { PRESENT, PartGrid, describe } from "./part-grid.js";
import { listenToPen } from "./pen.js";
import { decode, encode, show, showBoth } from "./pixels.js";
import { about, compose, quad } from "./pose.js";
import { Stage } from "./stage.js";

const $ = (id) => document.getElementById(id);

export async function startImages(model) {
  $("about").textContent =
    `Model ${model.name}: ${model.parts} parts, ${model.objects} objects, ` +
    `${model.width}×${model.height} pictures`;
  const page = new ImagePage(model);
  page.drawFirst();
  if (model.pictures) startMap(model, (index) => page.pick(index));
}

class ImagePage {
  constructor(model) {
    this.model = model;
    this.drawing = new Drawing(model.width, model.height, model.channels);
    this.stage = new Stage(model);
    this.handles = new Handles(this.stage, () => this.refresh());
    this.off = { part: new Set(), object: new Set() };
    this.edits = new Map();
    this.hover = null;
    this.chosen = null;
    this.view = "picture";
    this.answer = { parts: [], objects: [], alone: {} };
    this.objects = new ObjectList($("objects"), model.objects, this.actions("object"), true);
    this.parts = new PartGrid($("parts"), model, this.actions("part"));
    this.refresh = latestOnly(
      () => post("/api/explain", this.question()),
      (answer) => this.take(answer),
      (error) => say(error.message, true),
    );
    this.listen();
  }

  actions(kind) {
    return {
      look: (index) => this.look(index === null ? null : { kind, index }),
      choose: (index) => this.choose(kind, index),
      toggle: (index, on) => {
        this.off[kind][on ? "delete" : "add"](index);
        this.refresh();
      },
    };
  }

  listen() {
    listenToPen($("stage"), this.drawing, () => this.drawn());
    listenToFiles($("stage"), $("choose"), $("file"), (file) => this.openFile(file));
    $("clear").addEventListener("click", () => (this.drawing.clear(), this.drawn()));
    $("centre").addEventListener("click", () => (this.drawing.centre(), this.drawn()));
    $("reset").addEventListener("click", () => this.reset());
    $("random").hidden = !this.model.pictures;
    $("random").addEventListener("click", () => this.pick(Math.floor(Math.random() * this.model.pictures)));
    for (const radio of document.querySelectorAll("[name=view]")) {
      radio.addEventListener("change", () => this.setView(radio.value));
    }
    for (const digit of digits) {
      const button = make("button", { type: "button", textContent: digit });
      button.setAttribute("aria-label", `Draw a ${digit}`);
      button.addEventListener("click", () => (drawExample(this.drawing, digit), this.drawn()));
      $("examples").append(button);
    }
    window.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.choose(null);
    });
  }

  drawFirst() {
    if (this.model.digits) drawExample(this.drawing, 4);
    if (this.model.pictures && !this.model.digits) this.pick(0);
    else this.drawn();
  }

  // The picture changed: what was moved in the old one has no meaning in the new one.
  drawn() {
    this.pixels = this.drawing.read();
    this.edits.clear();
    if (this.chosen?.kind === "object") this.chosen = null;
    this.setView("picture");
    $("hint").hidden = !this.drawing.empty;
    this.refresh();
  }

  async pick(index) {
    try {
      const { pixels, label } = await get(`/api/picture?index=${index}`);
      this.load(pixels);
      say(`Picture ${index} of ${this.model.pictures}${label && `, class ${label}`}.`);
    } catch (error) {
      say(error.message, true);
    }
  }

  async openFile(file) {
    try {
      if (file.size > 1e6) throw new Error("This file is larger than 1 MB; use a smaller picture.");
      const { pixels, note } = await postFile("/api/open", file);
      this.load(pixels);
      say(note);
    } catch (error) {
      say(error.message, true);
    }
  }

  load(text) {
    this.drawing.load(decode(text));
    this.drawn();
  }

  question() {
    const poses = [...this.edits].filter(([, edit]) => isMoved(edit)).map(([object, edit]) => {
      const [left, top, right, bottom] = edit.box;
      const shift = about([(left + right) / 2, (top + bottom) / 2], edit.change);
      return { object, pose: compose(shift, edit.pose) };
    });
    return {
      pixels: encode(this.pixels), poses,
      parts_off: [...this.off.part], objects_off: [...this.off.object],
    };
  }

  take(answer) {
    const alone = Object.fromEntries(Object.entries(answer.alone).map(([k, text]) => [k, decode(text)]));
    this.answer = { ...answer, alone };
    this.seen = { parts: decode(answer.from_parts), objects: decode(answer.from_objects) };
    this.shares = decode(answer.shares);
    const { width, height, channels } = this.model;
    show($("from-parts"), this.seen.parts, width, height, channels);
    show($("from-objects"), this.seen.objects, width, height, channels);
    showBoth($("from-both"), this.seen.parts, this.seen.objects, width, height, channels);
    this.objects.rows.forEach(({ face }, k) => {
      if (alone[k]) show(face, alone[k], width, height, channels);
      else face.width = width; // clears
    });
    $("reset").disabled = !(this.off.part.size || this.off.object.size || [...this.edits.values()].some(isMoved));
    this.fitFrame();
    this.paint();
  }

  // The frame of an object that was not moved follows what the model infers.
  fitFrame() {
    for (const [k, edit] of this.edits) if (!isMoved(edit)) this.edits.delete(k);
    if (this.chosen?.kind === "object") this.handles.show(this.editOf(this.chosen.index));
  }

  paint() {
    const { answer, off } = this;
    const look = this.hover ?? this.chosen;
    const lit = new Set();
    answer.parts.forEach((part, m) => {
      const mine = part.object === look?.index && !part.unexplained && part.presence >= PRESENT;
      if (look?.kind === "part" ? m === look.index : look && mine) lit.add(m);
    });
    if (this.seen) this.stage.showPixels(this.view, this.pixels, this.seen);
    this.stage.showOutlines(answer.parts, off.part, look);
    this.showGlow(look, lit);
    const pressed = (kind) => (this.chosen?.kind === kind ? this.chosen.index : null);
    this.objects.update(answer.objects, off.object, pressed("object"), "parts");
    this.parts.update(answer.parts, off.part, pressed("part"), lit);
    $("caption").textContent = this.caption(look, lit);
  }

  showGlow(look, lit) {
    $("stage").classList.toggle("dim", look !== null);
    if (!look || !this.shares || !lit.size) return this.stage.showGlow(null);
    const size = this.model.width * this.model.height;
    const sum = new Float64Array(size);
    for (const m of lit) for (let i = 0; i < size; i++) sum[i] += this.shares[m * size + i];
    const part = this.answer.parts[[...lit][0]];
    const colour = part.unexplained ? UNEXPLAINED : tint(part.object);
    return this.stage.showGlow(sum, colour);
  }

  caption(look, lit) {
    if (look?.kind === "part") return describe(look.index, this.answer.parts[look.index]);
    const count = this.answer.parts.filter((part, m) => part.presence >= PRESENT && !this.off.part.has(m));
    if (!look) return count.length ? `${count.length} parts found.` : "";
    const { presence = 0 } = this.answer.objects[look.index] ?? {};
    const which = [...lit].join(", ");
    const parts = lit.size ? `it explains part${lit.size > 1 ? "s" : ""} ${which}` : "it explains no part";
    return `Object ${look.index}: presence ${presence.toFixed(2)}, ${parts}.`;
  }

  look(hover) {
    this.hover = hover;
    this.paint();
  }

  choose(kind, index) {
    const again = this.chosen?.kind === kind && this.chosen?.index === index;
    this.chosen = kind === null || again ? null : { kind, index };
    const object = this.chosen?.kind === "object" ? index : null;
    this.handles.show(object === null ? null : this.editOf(object));
    if (object !== null) $("stage").scrollIntoView({ block: "nearest", behavior: "smooth" });
    this.paint();
  }

  editOf(k) {
    if (!this.edits.has(k)) {
      const mine = this.answer.parts.filter(
        (part) => part.object === k && !part.unexplained && part.presence >= PRESENT,
      );
      const { pose } = this.answer.objects[k] ?? { pose: [1, 0, 0, 0, 1, 0] };
      this.edits.set(k, startEdit(pose, mine.map((part) => quad(part.vote))));
    }
    return this.edits.get(k);
  }

  setView(view) {
    this.view = view;
    document.querySelector(`[name=view][value=${view}]`).checked = true;
    if (this.chosen?.kind !== "object") this.handles.show(null);
    this.paint();
  }

  reset() {
    this.off.part.clear();
    this.off.object.clear();
    this.edits.clear();
    for (const box of document.querySelectorAll("#images .part input, #images .object input")) box.checked = true;
    this.chosen = null;
    this.handles.show(null);
    this.refresh();
  }
}
