// Poses as in scae.geometry: [a, b, tx, c, d, ty] maps (x, y) of a child frame to its parent.

export const apply = ([a, b, tx, c, d, ty], [x, y]) => [a * x + b * y + tx, c * x + d * y + ty];

export function compose([a, b, tx, c, d, ty], [e, f, ux, g, h, uy]) {
  return [
    a * e + b * g, a * f + b * h, a * ux + b * uy + tx,
    c * e + d * g, c * f + d * h, c * ux + d * uy + ty,
  ];
}

// Scale and turn about a centre, then shift.
export function about([x, y], { scale, angle, dx, dy }) {
  const cos = scale * Math.cos(angle);
  const sin = scale * Math.sin(angle);
  return [cos, -sin, x + dx - cos * x + sin * y, sin, cos, y + dy - sin * x - cos * y];
}

const WHOLE = [-1, -1, 1, 1];

// Corners of a template, or of the box [left, top, right, bottom] in it, laid onto the image.
export const quad = (pose, [left, top, right, bottom] = WHOLE) =>
  [[left, top], [right, top], [right, bottom], [left, bottom]].map((corner) => apply(pose, corner));

// Where the middle of a template lies.
export const middle = ([, , x, , , y]) => [x, y];
