// The page of a constellation model.
import { get, latestOnly, post } from "./api.js";
import { say } from "./notice.js";
import { ObjectList } from "./object-list.js";
import { Plane } from "./plane.js";

const $ = (id) => document.getElementById(id);
const SQUARE = [[-1, -1], [1, -1], [1, 1], [-1, 1]];
const TRIANGLE = [[-1, 0], [1, -1], [1, 1]];

export async function startPoints(model) {
  $("about").textContent =
    `Model ${model.name}: ${model.objects} objects with ${model.votes} votes each`;
  const off = new Set();
  let hover = null;
  let chosen = null;
  let answer = { points: [], objects: [] };

  const paint = () => {
    plane.draw(answer, hover ?? chosen);
    list.update(answer.objects, off, chosen, "points");
    const count = plane.points.length;
    $("plane-caption").textContent = count ? caption(answer, count) : "Click here to add points.";
  };
  const refresh = latestOnly(
    () => post("/api/explain", { points: plane.points, objects_off: [...off] }),
    (given) => {
      answer = given;
      paint();
    },
    (error) => say(error.message, true),
  );
  const plane = new Plane($("plane"), () => {
    paint();
    refresh();
  });
  const list = new ObjectList($("capsules"), model.objects, {
    look: (index) => {
      hover = index;
      paint();
    },
    choose: (index) => {
      chosen = chosen === index ? null : index;
      paint();
    },
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
    if (event.key !== "Escape") return;
    chosen = null;
    paint();
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

function caption({ points, objects }, count) {
  const groups = objects.map((_, k) => points.filter(({ object }) => object === k).length);
  const told = groups.flatMap((size, k) => (size ? [`object ${k} explains ${size}`] : []));
  return `${count} point${count > 1 ? "s" : ""}: ${told.join(", ") || "no object explains any"}.`;
}
