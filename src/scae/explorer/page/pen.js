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
