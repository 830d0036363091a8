// One colour per object. Neighbouring numbers get distant hues (the golden angle).
const UNEXPLAINED = "#b9c0cc";

export function tint(index) {
  const hue = (25 + 137.508 * index) % 360;
  const lightness = [0.76, 0.84, 0.7][Math.floor(index / 8) % 3];
  return `oklch(${lightness} 0.16 ${hue.toFixed(1)})`;
}

// The colour of what an object explains; -1 is no object.
export const colourOf = (object) => (object < 0 ? UNEXPLAINED : tint(object));
