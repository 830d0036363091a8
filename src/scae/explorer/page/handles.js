// The frame around a chosen object: drag it, turn it, scale it; arrow keys do the same.
import { about, apply, element, path } from "./vector.js";

const REACH = 0.22; // of the turning knob beyond the frame
const still = () => ({ scale: 1, angle: 0, dx: 0, dy: 0 });
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

export class Handles {
  constructor(stage, changed) {
    Object.assign(this, { stage, changed, edit: null });
    const unit = stage.width / 28;
    this.rim = 0.8 * unit;
    this.frame = element("path");
    this.move = this.handle("move", "Move", this.frame);
    this.knobs = ["turn", "size"].map((kind) => [
      element("circle", { class: "wide", r: 2.2 * unit }),
      element("circle", { class: "grip", r: 0.75 * unit }),
    ]);
    this.turn = this.handle("turn", "Turn", ...this.knobs[0]);
    this.size = this.handle("size", "Scale", ...this.knobs[1]);
    this.group = element("g", {}, this.move, this.turn, this.size);
    this.group.style.display = "none";
    stage.svg.append(this.group);
  }

  // An edit is made by `startEdit`; null hides the handles.
  show(edit) {
    this.edit = edit;
    this.group.style.display = edit ? "" : "none";
    if (edit) this.place();
  }

  place() {
    const { box: [left, top, right, bottom], change } = this.edit;
    const centre = [(left + right) / 2, (top + bottom) / 2];
    const shift = shiftOf(this.edit);
    const at = (x, y) => this.stage.toPixels(apply(shift, [x, y]));
    const corners = [at(left, top), at(right, top), at(right, bottom), at(left, bottom)];
    this.frame.setAttribute("d", path(corners));
    const tops = [at(centre[0], top - REACH / change.scale), at(right, bottom)];
    this.knobs.forEach((circles, i) =>
      circles.forEach((circle) => {
        circle.setAttribute("cx", clamp(tops[i][0], this.stage.left + this.rim, this.stage.left + this.stage.width - this.rim));
        circle.setAttribute("cy", clamp(tops[i][1], this.stage.top + this.rim, this.stage.top + this.stage.height - this.rim));
      }),
    );
    this.centre = centre;
    const percent = Math.round(100 * change.scale);
    const degrees = Math.round((change.angle * 180) / Math.PI);
    this.turn.setAttribute("aria-valuenow", degrees);
    this.turn.setAttribute("aria-valuetext", `${degrees} degrees`);
    this.size.setAttribute("aria-valuenow", percent);
    this.size.setAttribute("aria-valuetext", `${percent} percent`);
    const [x, y] = [change.dx, change.dy].map((shift) => Math.round(50 * shift));
    this.move.setAttribute("aria-valuetext", `${x} percent right, ${y} percent down`);
    this.move.setAttribute("aria-valuenow", x);
  }

  handle(kind, verb, ...shapes) {
    const node = element("g", {
      class: `handle ${kind}`, tabindex: 0, role: "slider",
      "aria-label": `${verb} the object; arrow keys work too`,
    }, ...shapes);
    let start = null;
    node.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      event.preventDefault();
      node.focus({ focusVisible: false });
      node.setPointerCapture(event.pointerId);
      start = { at: this.stage.fromEvent(event), change: { ...this.edit.change } };
    });
    node.addEventListener("pointermove", (event) => {
      if (start) this.drag(kind, start, this.stage.fromEvent(event));
    });
    for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, () => (start = null));
    node.addEventListener("keydown", (event) => this.key(kind, event));
    return node;
  }

  drag(kind, { at, change }, now) {
    const middle = [this.centre[0] + change.dx, this.centre[1] + change.dy];
    const arm = (point) => [point[0] - middle[0], point[1] - middle[1]];
    const [from, to] = [arm(at), arm(now)];
    if (kind === "move") {
      this.set({ ...change, dx: change.dx + now[0] - at[0], dy: change.dy + now[1] - at[1] });
    } else if (kind === "turn") {
      const turned = Math.atan2(to[1], to[0]) - Math.atan2(from[1], from[0]);
      this.set({ ...change, angle: change.angle + turned });
    } else {
      const grown = Math.hypot(...to) / Math.max(0.02, Math.hypot(...from));
      this.set({ ...change, scale: change.scale * grown });
    }
  }

  key(kind, event) {
    const [right, down] = {
      ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1],
    }[event.key] ?? [0, 0];
    if (!right && !down) return;
    event.preventDefault();
    const { change } = this.edit;
    const much = event.shiftKey ? 4 : 1;
    if (kind === "move") {
      this.set({ ...change, dx: change.dx + 0.05 * much * right, dy: change.dy + 0.05 * much * down });
    } else if (kind === "turn") {
      this.set({ ...change, angle: change.angle + (right + down) * much * (Math.PI / 36) });
    } else {
      this.set({ ...change, scale: change.scale * 1.05 ** (much * (right - down)) });
    }
  }

  set({ scale, angle, dx, dy }) {
    const turn = 2 * Math.PI;
    this.edit.change = {
      scale: clamp(scale, 0.25, 4),
      angle: ((((angle + Math.PI) % turn) + turn) % turn) - Math.PI,
      dx: clamp(dx, -1.5, 1.5),
      dy: clamp(dy, -1.5, 1.5),
    };
    this.place();
    this.changed();
  }
}

// A new edit of an object, as yet unmoved: its frame lies around the given points.
export function startEdit(points, [x, y] = [0, 0]) {
  const xs = points.map(([u]) => clamp(u, -1, 1));
  const ys = points.map(([, v]) => clamp(v, -1, 1));
  const box = points.length
    ? [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)]
    : [x - 0.3, y - 0.3, x + 0.3, y + 0.3];
  return { box, change: still() };
}

// The transform that an edit makes of the whole object.
export function shiftOf({ box: [left, top, right, bottom], change }) {
  return about([(left + right) / 2, (top + bottom) / 2], change);
}

export const isMoved = ({ change }) => JSON.stringify(change) !== JSON.stringify(still());
