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
