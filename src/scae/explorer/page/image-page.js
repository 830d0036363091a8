// The page of an image model: what is shown follows from one state and the server's last answer.
import { get, latestOnly, post, say } from "./api.js";
import { ObjectList, PRESENT, PartGrid, Steps, describe, make, strokeFrames } from "./capsules.js";
import { Drawing, digits, drawExample, listenToFiles, listenToPen, readBitmap } from "./drawing.js";
import { Handles, isMoved, shiftOf, startEdit } from "./handles.js";
import { colourOf, decode, encode, glow, show, showBoth } from "./pixels.js";
import { apply, compose, element, middle, path } from "./vector.js";

const $ = (id) => document.getElementById(id);
const STEPS = { picture: "Picture", parts: "Parts", objects: "Objects", votes: "Votes", drawn: "Drawn" };
const some = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

export async function startImages(model) {
  $("about").textContent =
    `Model ${model.name}: ${model.parts} parts, ${model.objects} objects, ` +
    `${model.width}×${model.height} pictures`;
  const page = new ImagePage(model);
  page.drawFirst();
}

class ImagePage {
  constructor(model) {
    this.model = model;
    this.drawing = new Drawing(model.width, model.height, model.channels);
    this.stage = new Stage(model);
    this.handles = new Handles(this.stage, () => this.dragged());
    this.off = { part: new Set(), object: new Set() };
    this.edits = new Map();
    this.hover = null;
    this.chosen = null;
    this.answer = { parts: [], objects: [] };
    this.steps = new Steps($("steps"), STEPS, "objects", () => this.choose(null));
    this.objects = new ObjectList($("objects"), $("unused"), model.objects, this.actions("object"), true);
    this.parts = new PartGrid($("parts"), model, this.actions("part"));
    const failed = (error) => say(error.message, true);
    this.refresh = latestOnly(() => post("/api/explain", this.image()), (answer) => this.take(answer), failed);
    this.redraw = latestOnly(() => this.askMoved(), (answer) => this.takeMoved(answer), failed);
    this.listen();
  }

  actions(kind) {
    return {
      look: (index) => {
        this.hover = index === null ? null : { kind, index };
        this.paint();
      },
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
    for (const digit of this.model.strokes ? digits : []) {
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
    if (this.model.pictures) return this.pick(0);
    if (this.model.strokes) drawExample(this.drawing, 4);
    return this.drawn();
  }

  // The picture changed: what was moved in the old one has no meaning in the new one.
  drawn() {
    say("");
    this.pixels = this.drawing.read();
    this.edits.clear();
    if (this.chosen?.kind === "object") this.choose(null);
    if (this.steps.value === "drawn") this.steps.show("objects");
    $("hint").hidden = !this.drawing.empty;
    this.stage.showPixels(this.pixels);
    this.refresh();
  }

  async pick(index) {
    try {
      const { pixels, label } = await get(`/api/example?index=${index}`);
      this.drawing.load(decode(pixels));
      this.drawn();
      say(`Picture ${index} of ${this.model.dataset}${label && `, class ${label}`}.`);
    } catch (error) {
      say(error.message, true);
    }
  }

  async openFile(file) {
    try {
      this.drawing.open(await readBitmap(file), this.model.strokes);
      this.drawn();
      say(`${file.name} opened.`);
    } catch (error) {
      say(error.message, true);
    }
  }

  image() {
    return {
      pixels: encode(this.pixels),
      parts_off: [...this.off.part], objects_off: [...this.off.object],
    };
  }

  moved() {
    return [...this.edits].filter(([, edit]) => isMoved(edit));
  }

  askMoved() {
    const moved = this.moved().map(([object, edit]) => ({ object, pose: compose(shiftOf(edit), edit.pose) }));
    const { from_objects } = this.answer;
    if (!moved.length) return { from_objects, alone: this.answer.alone };
    return post("/api/move", { image: this.image(), moved });
  }

  // Frames follow the hand at once, strokes as soon as the server has drawn them.
  dragged() {
    this.paint();
    this.redraw();
  }

  take(answer) {
    this.answer = answer;
    this.seen = { parts: decode(answer.from_parts), objects: decode(answer.from_objects) };
    this.shares = decode(answer.shares);
    this.objects.rows.forEach(({ face }) => (face.width = this.model.width)); // clears
    for (const [k, edit] of this.edits) if (!isMoved(edit)) this.edits.delete(k);
    if (this.chosen?.kind === "object") this.handles.show(this.editOf(this.chosen.index));
    this.takeMoved(answer);
    if (this.moved().length) this.redraw();
  }

  takeMoved({ from_objects, alone }) {
    const { width, height, channels } = this.model;
    this.seen.objects = decode(from_objects);
    show($("from-parts"), this.seen.parts, width, height, channels);
    show($("from-objects"), this.seen.objects, width, height, channels);
    showBoth($("from-both"), this.seen.parts, this.seen.objects, width, height, channels);
    for (const [k, picture] of Object.entries(alone)) {
      show(this.objects.rows[k].face, decode(picture), width, height, channels);
    }
    this.paint();
  }

  paint() {
    const { answer, off } = this;
    const look = this.hover ?? this.chosen;
    const chosen = this.chosen?.kind === "object" ? this.chosen.index : null;
    const step = this.steps.value;
    const lit = new Set(answer.parts.flatMap((part, m) => (this.isLit(part, m, look) ? [m] : [])));
    if (this.seen) {
      if (chosen !== null) this.stage.showPixels(this.seen.objects);
      else if (step === "drawn") this.stage.showBoth(this.seen);
      else this.stage.showPixels(this.pixels);
    }
    const shifts = new Map(this.moved().map(([k, edit]) => [k, shiftOf(edit)]));
    this.stage.showFrames(answer.parts, off.part, { step, look, chosen, shifts });
    const layers = this.glow(look, lit, chosen, step);
    this.stage.showGlow(layers);
    $("stage").classList.toggle("dim", Boolean(layers.length) || (chosen === null && ["parts", "votes"].includes(step)));
    this.objects.update(answer.objects, off.object, chosen, "parts");
    this.parts.update(answer.parts, off.part, this.chosen?.kind === "part" ? this.chosen.index : null, lit);
    $("caption").textContent = look ? this.captionOf(look, lit) : this.captionOfStep(step);
    $("reset").disabled = !(off.part.size || off.object.size || shifts.size);
  }

  isLit(part, m, look) {
    if (look?.kind === "part") return m === look.index;
    return look !== null && part.object === look.index && part.presence >= PRESENT;
  }

  // Pixels in the colours of the objects that explain them: of all, or of what is looked at.
  glow(look, lit, chosen, step) {
    if (!this.shares || chosen !== null || (!look && step !== "objects")) return [];
    const size = this.model.width * this.model.height;
    const layers = new Map();
    this.answer.parts.forEach(({ object }, m) => {
      if (look && !lit.has(m)) return;
      if (!layers.has(object)) layers.set(object, { shares: new Float64Array(size), colour: colourOf(object) });
      const { shares } = layers.get(object);
      for (let i = 0; i < size; i++) shares[i] += this.shares[m * size + i];
    });
    return [...layers.values()];
  }

  captionOf({ kind, index }, lit) {
    if (kind === "part") return describe(index, this.answer.parts[index]);
    const { presence = 0 } = this.answer.objects[index] ?? {};
    const parts = lit.size ? `it explains part${lit.size > 1 ? "s" : ""} ${[...lit].join(", ")}` : "it explains no part";
    return `Object ${index}: presence ${presence.toFixed(2)}, ${parts}.`;
  }

  captionOfStep(step) {
    const { model, answer, off } = this;
    const present = answer.parts.flatMap((part, m) =>
      (part.presence >= PRESENT && !off.part.has(m) ? [{ ...part, m }] : []));
    if (step === "picture") return `The picture: ${model.width}×${model.height} pixels.`;
    if (step === "parts") return `${present.length} of ${model.parts} parts found. Each is a small template with a pose, framed here.`;
    if (step === "drawn") return "Drawn from the parts (red) and from the objects' votes (green); yellow where both agree.";
    const explained = present.filter(({ object }) => object >= 0);
    if (step === "objects") return this.captionOfObjects(present, explained);
    const far = explained.map(({ m, pose, vote }) => {
      const [a, b] = [pose, vote].map((at) => this.stage.centre(m, at));
      return Math.hypot(a[0] - b[0], a[1] - b[1]);
    });
    const mean = far.reduce((sum, d) => sum + d, 0) / Math.max(1, far.length);
    return `Every object votes for the poses of its parts (dashed). The votes are ${mean.toFixed(1)} pixels off on average.`;
  }

  captionOfObjects(present, explained) {
    const counts = new Map();
    for (const { object } of explained) counts.set(object, (counts.get(object) ?? 0) + 1);
    const told = [...counts].sort((a, b) => b[1] - a[1]).map(([k, n]) => `object ${k} explains ${n}`);
    if (!told.length) return "No object explains any part.";
    return `${some(counts.size, "object")} for ${some(present.length, "part")}: ${told.join(", ")}.`;
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
      const corners = this.answer.parts.flatMap((part, m) =>
        (part.object === k && part.presence >= PRESENT ? this.stage.corners[m].map((corner) => apply(part.vote, corner)) : []));
      const { pose } = this.answer.objects[k] ?? { pose: [1, 0, 0, 0, 1, 0] };
      this.edits.set(k, { pose, ...startEdit(corners, middle(pose)) });
    }
    return this.edits.get(k);
  }

  reset() {
    this.off.part.clear();
    this.off.object.clear();
    this.edits.clear();
    for (const box of document.querySelectorAll("#images .part input, #images .object input")) box.checked = true;
    this.choose(null);
    this.refresh();
  }
}

// The large picture: pixels, the glow of what parts explain, frames of poses.

const NEUTRAL = "#dfe6f2";

class Stage {
  constructor(model) {
    Object.assign(this, { model, left: 0, top: 0, width: model.width, height: model.height });
    this.corners = strokeFrames(model);
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
      const opacity = Math.max(0.3, part.presence) * (step === "votes" && !look ? 0.6 : 1);
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
    const points = this.corners[m].map((corner) => this.toPixels(apply(pose, corner)));
    return element("path", { d: path(points), class: kind, stroke: colour, "stroke-opacity": opacity });
  }

  way(pose, vote, m, colour, rank) {
    const ends = [pose, vote].map((p) => this.centre(m, p));
    return element("path", { d: path(ends), class: `outline way ${rank}`, stroke: colour });
  }

  // The middle of what a part draws, in pixels.
  centre(m, pose) {
    const [from, , to] = this.corners[m];
    return this.toPixels(apply(pose, [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2]));
  }
}
