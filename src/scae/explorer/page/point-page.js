// The page of a constellation model.
import { get, latestOnly, post } from "./api.js";
import { Handles, isMoved, shiftOf, startEdit } from "./handles.js";
import { say } from "./notice.js";
import { ObjectList } from "./object-list.js";
import { Plane } from "./plane.js";
import { Steps } from "./steps.js";

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
      const { points } = await get(`/api/scene?index=${scene}`);
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
