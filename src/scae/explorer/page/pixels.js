// Bytes of height x width x channels, to and from base64 and canvases.

export function decode(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export function encode(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 4096) {
    text += String.fromCharCode(...bytes.subarray(i, i + 4096));
  }
  return btoa(text);
}

// `colour(i)` gives red, green, blue and opacity of pixel i.
export function paint(canvas, width, height, colour) {
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let i = 0; i < width * height; i++) image.data.set(colour(i), 4 * i);
  context.putImageData(image, 0, 0);
}

export function show(canvas, bytes, width, height, channels) {
  paint(canvas, width, height, (i) => {
    const at = channels * i;
    return [bytes[at], bytes[channels === 3 ? at + 1 : at], bytes[channels === 3 ? at + 2 : at], 255];
  });
}

// Red where only parts draw, green where only objects do, yellow where both.
export function showBoth(canvas, parts, objects, width, height, channels) {
  const grey = (bytes, i) => {
    let sum = 0;
    for (let c = 0; c < channels; c++) sum += bytes[channels * i + c];
    return sum / channels;
  };
  paint(canvas, width, height, (i) => [grey(parts, i), grey(objects, i), 0, 255]);
}

const GLOW = 190; // opacity of the brightest pixel, of 255

// Pixels that parts explain, each layer { shares, colour } in its colour; shares are 0 to 255.
export function glow(canvas, layers, width, height) {
  const colours = layers.map(({ colour }) => rgb(colour));
  const total = new Float64Array(width * height);
  for (const { shares } of layers) shares.forEach((share, i) => (total[i] += share));
  const gain = Math.min(3, GLOW / total.reduce((most, share) => Math.max(most, share), 1));
  paint(canvas, width, height, (i) => {
    if (!total[i]) return [0, 0, 0, 0];
    const mixed = [0, 1, 2].map((c) =>
      layers.reduce((sum, { shares }, l) => sum + (colours[l][c] * shares[i]) / total[i], 0));
    return [...mixed, gain * total[i]];
  });
}

const probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });

function rgb(colour) {
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data;
}

// One colour per object. Neighbouring numbers get distant hues (the golden angle).
const UNEXPLAINED = "#b9c0cc";

export function tint(index) {
  const hue = (25 + 137.508 * index) % 360;
  const lightness = [0.76, 0.84, 0.7][Math.floor(index / 8) % 3];
  return `oklch(${lightness} 0.16 ${hue.toFixed(1)})`;
}

// The colour of what an object explains; -1 is no object.
export const colourOf = (object) => (object < 0 ? UNEXPLAINED : tint(object));
