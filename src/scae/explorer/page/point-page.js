// The page of a constellation model.
import { get, latestOnly, post, say } from "./api.js";
import { ObjectList, Steps } from "./capsules.js";
import { Handles, isMoved, shiftOf, startEdit } from "./handles.js";
import { colourOf, tint } from "./pixels.js";
import { apply, element, path } from "./vector.js";

const $ = (id) => document.getElementById(id);
const STEPS = { points: "Points", objects: "Objects", votes: "Votes" };
const SQUARE = [[-1, -1], [1, -1], [1, 1], [-1, 1]];
const TRIANGLE = [[-1, 0], [1, -1], [1, 1]];
const MIN_VOTE = 0.05;

export async function startPoints(model) {
  $("about").textContent =
    `Model ${model.name}: ${model.objects} objects with ${model.votes} votes each`;
  const off = new Set();
  const edits = new Map();
  let hover = null;
  let chosen = null;
  let answer = { points: [], objects: [] };

  const paint = () => {
    const shifts = new Map([...edits].filter(([, edit]) => isMoved(edit)).map(([k, edit]) => [k, shiftOf(edit)]));
    plane.draw(answer, { step: steps.value, look: hover ?? chosen, shifts });
    list.update(answer.objects, off, chosen, "points");
    $("plane-caption").textContent = caption(answer, plane.points.length, steps.value);
  };
  const refresh = latestOnly(
    () => post("/api/explain", { points: plane.points, objects_off: [...off] }),
    (given) => {
      answer = given;
      paint();
    },
    (error) => say(error.message, true),
  );
  // New points have other votes, so an object that was dragged is let go.
  const plane = new Plane($("plane"), () => {
    edits.clear();
    choose(null);
    refresh();
  });
  const handles = new Handles(plane, () => paint());
  const choose = (index) => {
    chosen = index === null || chosen === index ? null : index;
    if (chosen !== null && !edits.has(chosen)) {
      const votes = answer.objects[chosen]?.votes ?? [];
      edits.set(chosen, startEdit(votes.filter(({ presence }) => presence > MIN_VOTE).map(({ at }) => at)));
    }
    handles.show(chosen === null ? null : edits.get(chosen));
    paint();
  };
  const steps = new Steps($("plane-steps"), STEPS, "votes", () => choose(null));
  const list = new ObjectList($("capsules"), $("capsules-unused"), model.objects, {
    look: (index) => {
      hover = index;
      paint();
    },
    choose,
    toggle: (index, on) => {
      off[on ? "delete" : "add"](index);
      refresh();
    },
  }, false);

  let scene = Math.floor(Math.random() * model.examples);
  const another = async () => {
    try {
      scene = (scene + 1) % model.examples;
      const { points } = await get(`/api/example?index=${scene}`);
      plane.set(points);
      if (!points.length) say("This scene is empty: every pattern was left out by chance.");
    } catch (error) {
      say(error.message, true);
    }
  };
  const add = (shape) => plane.set([...plane.points, ...somewhere(shape)]);
  $("plane-clear").addEventListener("click", () => plane.set([]));
  $("plane-square").addEventListener("click", () => add(SQUARE));
  $("plane-triangle").addEventListener("click", () => add(TRIANGLE));
  $("plane-scene").addEventListener("click", another);
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") choose(null);
  });
  add(SQUARE);
  add(TRIANGLE);
}

// The shape turned, scaled and put somewhere on the plane.
function somewhere(shape) {
  const angle = Math.random() * 2 * Math.PI;
  const scale = 0.15 + 0.25 * Math.random();
  const [x, y] = [0, 1].map(() => (Math.random() - 0.5) * 2 * (0.95 - 1.5 * scale));
  const [cos, sin] = [scale * Math.cos(angle), scale * Math.sin(angle)];
  return shape.map(([u, v]) => [cos * u - sin * v + x, sin * u + cos * v + y]);
}

function caption({ points, objects }, count, step) {
  if (!count) return "Click here to add points.";
  const all = `${count} point${count > 1 ? "s" : ""}`;
  if (points.length !== count) return `${all} …`;
  if (step === "points") return `${all}. Next: which of them belong together?`;
  const groups = objects.map((_, k) => points.filter((object) => object === k).length);
  const told = groups.flatMap((size, k) => (size ? [`object ${k} explains ${size}`] : []));
  const votes = step === "votes" ? " Crosses: where the objects expect them." : "";
  return `${all}: ${told.join(", ") || "no object explains any"}.${votes}`;
}

// The plane of a constellation model: points to add, move and take away, and votes on it.

const STEP = 0.05;
const MAX_POINTS = 64;
const EDGE = 1.08;
const clamp = (value) => Math.min(1, Math.max(-1, value));

class Plane {
  constructor(svg, changed) {
    Object.assign(this, { svg, changed, points: [], cursor: [0, 0] });
    Object.assign(this, { left: -EDGE, top: -EDGE, width: 2 * EDGE, height: 2 * EDGE });
    svg.setAttribute("viewBox", `${-EDGE} ${-EDGE} ${2 * EDGE} ${2 * EDGE}`);
    this.ballots = element("g");
    this.dots = element("g");
    this.cross = element("path", { class: "cross", d: "M-.06 0H.06M0 -.06V.06" });
    const lines = [-1, -0.5, 0, 0.5, 1].map((at) => `M${at} -1V1M-1 ${at}H1`).join("");
    svg.append(element("path", { class: "grid", d: lines }), this.ballots, this.dots, this.cross);
    svg.addEventListener("pointerdown", (event) => this.press(event));
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  // The handles of an object ask for these two; the plane has no pixels of its own.
  toPixels(point) {
    return point;
  }

  fromEvent(event) {
    const box = this.svg.getBoundingClientRect();
    const scale = this.width / box.width;
    return [(event.clientX - box.left) * scale - EDGE, (event.clientY - box.top) * scale - EDGE];
  }

  at(event) {
    return this.fromEvent(event).map(clamp);
  }

  set(points) {
    this.points = points.slice(0, MAX_POINTS);
    this.changed();
  }

  press(event) {
    if (event.button !== 0 || event.target.closest(".handle")) return;
    const dot = event.target.closest(".point");
    if (dot) return this.dragPoint(event, Number(dot.dataset.index));
    if (this.points.length < MAX_POINTS) this.set([...this.points, this.at(event)]);
  }

  // A press without movement takes the point away.
  dragPoint(event, index) {
    const start = this.at(event);
    let moved = false;
    this.svg.setPointerCapture(event.pointerId);
    const move = (next) => {
      const now = this.at(next);
      if (!moved && Math.hypot(now[0] - start[0], now[1] - start[1]) < 0.02) return;
      moved = true;
      this.points[index] = now;
      this.changed();
    };
    const end = () => {
      this.svg.removeEventListener("pointermove", move);
      if (!moved) this.remove(index);
    };
    this.svg.addEventListener("pointermove", move);
    this.svg.addEventListener("pointerup", end, { once: true });
  }

  remove(index) {
    this.set(this.points.filter((_, i) => i !== index));
  }

  key(event) {
    if (event.target.closest(".handle")) return;
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    const dot = event.target.closest(".point");
    const index = dot && Number(dot.dataset.index);
    const shift = ([x, y]) => [clamp(x + STEP * step[0]), clamp(y + STEP * step[1])];
    if (dot && (event.key === "Delete" || event.key === "Backspace")) {
      this.remove(index);
      (this.dots.children[Math.min(index, this.points.length - 1)] ?? this.svg).focus();
    } else if (dot && step) {
      this.points[index] = shift(this.points[index]);
      this.changed();
    } else if (step) {
      this.cursor = shift(this.cursor);
      this.cross.setAttribute("transform", `translate(${this.cursor.join(" ")})`);
    } else if (!dot && (event.key === "Enter" || event.key === " ")) {
      if (this.points.length < MAX_POINTS) this.set([...this.points, [...this.cursor]]);
    } else return;
    event.preventDefault();
  }

  // Nodes are kept, so that a focused or dragged point stays the same element.
  // `shifts` has the transform of each object that was dragged.
  draw(answer, { step, look, shifts }) {
    while (this.dots.children.length > this.points.length) this.dots.lastChild.remove();
    while (this.dots.children.length < this.points.length) this.dots.append(makePoint(this.dots.children.length));
    this.points.forEach(([x, y], i) => {
      const node = this.dots.children[i];
      const object = answer.points[i] ?? -1;
      const told = step !== "points" || look !== null;
      node.setAttribute("transform", `translate(${x} ${y})`);
      node.firstChild.setAttribute("fill", colourOf(told ? object : -1));
      node.lastChild.textContent = !told ? "" : object < 0 ? "?" : object;
      node.setAttribute("opacity", look === null || look === object ? 1 : 0.3);
      const who = object < 0 ? "no object" : `object ${object}`;
      node.setAttribute("aria-label", `Point ${i + 1}, ${who}. Arrows move it, Delete takes it away.`);
    });
    const shown = ({ used }, k) => (look === null ? step === "votes" && used : k === look);
    const ballots = answer.objects.flatMap((object, k) => {
      if (!shown(object, k)) return [];
      const shift = shifts.get(k);
      const votes = object.votes.map((vote) => (shift ? { ...vote, at: apply(shift, vote.at) } : vote));
      return [ballot(look === k ? votes : votes.filter(({ presence }) => presence > 0.05), tint(k))];
    });
    this.ballots.replaceChildren(...ballots);
  }
}

function makePoint(index) {
  const node = element("g", { class: "point", tabindex: 0, role: "button" }, element("circle", { r: 0.05 }), element("text"));
  node.dataset.index = index;
  return node;
}

// Where an object expects its points: a cross each, a ring for how sure, the shape they make.
// A chosen object shows all of its votes, however faint.
function ballot(cast, colour) {
  const middle = [0, 1].map((i) => cast.reduce((sum, { at }) => sum + at[i], 0) / cast.length);
  const angle = ({ at }) => Math.atan2(at[1] - middle[1], at[0] - middle[0]);
  const around = [...cast].sort((a, b) => angle(a) - angle(b)).map(({ at }) => at);
  const group = element("g", { class: "ballot", stroke: colour });
  if (cast.length > 1) group.append(element("path", { class: "shape", d: path(around), fill: colour, "fill-opacity": 0.1 }));
  for (const { at: [x, y], scale, presence } of cast) {
    group.append(
      element("circle", { class: "sure", cx: x, cy: y, r: Math.min(scale, 0.6), opacity: Math.max(presence, 0.2) }),
      element("path", { d: `M${x - 0.03} ${y - 0.03}l.06 .06m0 -.06l-.06 .06`, "stroke-width": 0.014, opacity: Math.max(presence, 0.2) }),
    );
  }
  return group;
}
