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

// Where the middle of a template lies.
export const middle = ([, , x, , , y]) => [x, y];

// Elements of a picture in vector form.
export function element(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export const path = (points) => `M${points.map(([x, y]) => `${x.toFixed(3)} ${y.toFixed(3)}`).join("L")}Z`;
