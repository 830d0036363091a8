// A pen on a fine canvas, read out in the model's coarse pixels.
const FINE = 10; // fine pixels per pixel of the model, each way
const PEN = 2.4; // width of a line, in pixels of a picture of 28

export class Drawing {
  constructor(width, height, channels) {
    Object.assign(this, { width, height, channels });
    this.canvas = new OffscreenCanvas(width * FINE, height * FINE);
    this.context = this.canvas.getContext("2d", { willReadFrequently: true });
    this.clear();
  }

  clear() {
    this.context.fillStyle = "#000";
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.empty = true;
  }

  // A line through points in [0, 1] x [0, 1] of the canvas.
  stroke(points) {
    const pen = this.context;
    pen.strokeStyle = "#fff";
    pen.lineCap = pen.lineJoin = "round";
    pen.lineWidth = (PEN * FINE * Math.min(this.width, this.height)) / 28;
    pen.beginPath();
    const [first, ...rest] = points.map(([x, y]) => [x * this.canvas.width, y * this.canvas.height]);
    pen.moveTo(...first);
    if (rest.length === 0) pen.lineTo(first[0] + 0.1, first[1]);
    // Through the middles of the segments: corners become curves.
    rest.forEach((point, i) => {
      const next = rest[i + 1];
      if (next) pen.quadraticCurveTo(...point, (point[0] + next[0]) / 2, (point[1] + next[1]) / 2);
      else pen.lineTo(...point);
    });
    pen.stroke();
    this.empty = false;
  }

  // Put a picture there to draw on.
  load(bytes) {
    const { width, height, channels } = this;
    const image = new ImageData(width, height);
    for (let i = 0; i < width * height; i++) {
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = bytes[channels * i + (channels === 3 ? c : 0)];
      image.data[4 * i + 3] = 255;
    }
    const small = new OffscreenCanvas(width, height);
    small.getContext("2d").putImageData(image, 0, 0);
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(small, 0, 0, this.canvas.width, this.canvas.height);
    this.empty = false;
  }

  // A picture of any size, fitted in; of strokes, made light on dark and centred.
  open(bitmap, strokes) {
    const { width, height } = this.canvas;
    const exact = bitmap.width === this.width && bitmap.height === this.height;
    const scale = Math.min(width / bitmap.width, height / bitmap.height);
    const [w, h] = [bitmap.width * scale, bitmap.height * scale];
    const sheet = new OffscreenCanvas(Math.max(1, Math.round(w)), Math.max(1, Math.round(h)));
    const ink = sheet.getContext("2d", { willReadFrequently: true });
    ink.imageSmoothingEnabled = !exact;
    ink.imageSmoothingQuality = "high";
    ink.drawImage(bitmap, 0, 0, sheet.width, sheet.height);
    // Transparent pictures lie on white paper if their ink is dark, else on black.
    ink.globalCompositeOperation = "destination-over";
    ink.fillStyle = inkIsDark(ink.getImageData(0, 0, sheet.width, sheet.height).data) ? "#fff" : "#000";
    ink.fillRect(0, 0, sheet.width, sheet.height);
    this.clear();
    this.context.imageSmoothingEnabled = false;
    this.context.filter = strokes && borderIsLight(ink) ? "invert(1)" : "none";
    this.context.drawImage(sheet, (width - sheet.width) / 2, (height - sheet.height) / 2);
    this.context.filter = "none";
    this.empty = false;
    if (strokes && !exact) this.centre();
  }

  // Mean of the fine pixels under each coarse one.
  read() {
    const fine = this.context.getImageData(0, 0, this.canvas.width, this.canvas.height).data;
    const { width, height, channels } = this;
    const sums = new Float64Array(width * height * channels);
    for (let y = 0; y < height * FINE; y++) {
      for (let x = 0; x < width * FINE; x++) {
        const from = 4 * (y * width * FINE + x);
        const to = channels * (Math.floor(y / FINE) * width + Math.floor(x / FINE));
        for (let c = 0; c < channels; c++) sums[to + c] += fine[from + c];
      }
    }
    return Uint8Array.from(sums, (sum) => Math.round(sum / (FINE * FINE)));
  }

  // Fit what is drawn into the middle 20 of 28 pixels, as MNIST's digits are.
  centre() {
    const bytes = this.read();
    const { width, height, channels } = this;
    let [left, top, right, bottom] = [width, height, -1, -1];
    for (let i = 0; i < width * height; i++) {
      if (bytes[channels * i] < 40) continue;
      const [x, y] = [i % width, Math.floor(i / width)];
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    }
    if (right < 0) return;
    const [w, h] = [right - left + 1, bottom - top + 1];
    const scale = ((20 / 28) * Math.min(width, height)) / Math.max(w, h);
    const copy = new OffscreenCanvas(this.canvas.width, this.canvas.height);
    copy.getContext("2d").drawImage(this.canvas, 0, 0);
    this.clear();
    const [tw, th] = [w * scale * FINE, h * scale * FINE];
    this.context.imageSmoothingEnabled = true;
    this.context.drawImage(
      copy, left * FINE, top * FINE, w * FINE, h * FINE,
      (this.canvas.width - tw) / 2, (this.canvas.height - th) / 2, tw, th,
    );
    this.empty = false;
  }
}

const grey = (data, i) => (data[i] + data[i + 1] + data[i + 2]) / 3;

function inkIsDark(data) {
  let [sum, weight] = [0, 0];
  for (let i = 0; i < data.length; i += 4) {
    sum += grey(data, i) * data[i + 3];
    weight += data[i + 3];
  }
  return sum < 127.5 * weight;
}

function borderIsLight(context) {
  const { width, height } = context.canvas;
  const sides = [[0, 0, width, 1], [0, height - 1, width, 1], [0, 0, 1, height], [width - 1, 0, 1, height]];
  let [sum, count] = [0, 0];
  for (const side of sides) {
    const { data } = context.getImageData(...side);
    for (let i = 0; i < data.length; i += 4, count++) sum += grey(data, i);
  }
  return sum > 127.5 * count;
}

// Mouse, finger or stylus on the stage becomes strokes of the drawing.
export function listenToPen(stage, drawing, changed) {
  let points = null;
  const at = (event) => {
    const box = stage.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  };
  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest(".handle")) return;
    event.preventDefault();
    stage.setPointerCapture(event.pointerId);
    points = [at(event)];
    drawing.stroke(points);
    changed();
  });
  stage.addEventListener("pointermove", (event) => {
    if (!points) return;
    for (const step of event.getCoalescedEvents?.() ?? [event]) points.push(at(step));
    drawing.stroke(points.slice(-8));
    changed();
  });
  for (const end of ["pointerup", "pointercancel"]) {
    stage.addEventListener(end, () => (points = null));
  }
}

// Files dropped on the page or chosen by button. The browser decodes them; the server only ever
// sees pictures of the model's size.
const MAX_BYTES = 30e6;

export function listenToFiles(stage, button, input, opened) {
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    if (input.files.length) opened(input.files[0]);
    input.value = "";
  });
  // Anywhere on the page: a file dropped beside the stage must not replace the page.
  window.addEventListener("dragover", (event) => {
    event.preventDefault();
    stage.classList.add("over");
  });
  window.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) stage.classList.remove("over");
  });
  window.addEventListener("drop", (event) => {
    event.preventDefault();
    stage.classList.remove("over");
    const file = event.dataTransfer?.files[0];
    if (file) opened(file);
  });
}

export async function readBitmap(file) {
  if (file.size > MAX_BYTES) throw new Error("This file is larger than 30 MB; use a smaller picture.");
  try {
    return await createImageBitmap(file);
  } catch {
    throw new Error("This file is not a picture that the browser can read.");
  }
}

// Ten digits as pen strokes on a square of 28, for looking without any data.
const STROKES = {
  0: [[[15, 5], [10, 7], [8, 14], [10, 21], [14, 23], [18, 21], [20, 14], [18, 7], [14, 5]]],
  1: [[[16, 4.5], [14, 14], [12, 23.5]]],
  2: [[[8, 9], [10, 5.5], [15, 4.5], [19, 8], [17, 13], [11, 19], [8, 22.5]], [[8, 22.5], [14, 21.5], [20.5, 22.5]]],
  3: [[[8.5, 6.5], [13, 4.5], [18.5, 7], [17, 11.5], [12.5, 13.2]], [[12.5, 13.2], [18, 14], [19.5, 18.5], [15, 23], [8, 21.5]]],
  4: [[[9, 5], [8, 13], [9, 14.5], [19.5, 13.5]], [[18.5, 5], [17.5, 14], [16.5, 23.5]]],
  5: [[[19.5, 5], [11, 5.5], [10, 12]], [[10, 12], [15.5, 11], [19.5, 15], [18, 21], [12, 23.5], [8, 21]]],
  6: [[[16.5, 4.5], [11, 10], [8.5, 17], [11, 23], [16, 22.5], [18.5, 18], [15, 14.5], [9.5, 17.5]]],
  7: [[[7.5, 6.5], [13, 6], [20, 5.5]], [[20, 5.5], [16, 13], [12.5, 23.5]]],
  8: [[[18.5, 7], [14, 4.5], [9.5, 7.5], [12, 12], [17, 16], [18, 20.5], [14, 23.5], [9.5, 20.5], [11.5, 15.5], [16.5, 11.5], [18.5, 7]]],
  9: [[[18.5, 9], [15, 5], [10, 7], [9.5, 12], [14, 14], [18.5, 9]], [[18.5, 9], [17.5, 16], [15, 23.5]]],
};

export const digits = Object.keys(STROKES);

export function drawExample(drawing, digit) {
  drawing.clear();
  for (const stroke of STROKES[digit]) drawing.stroke(stroke.map(([x, y]) => [x / 28, y / 28]));
}
