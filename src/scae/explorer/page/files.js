// Files dropped on the stage or chosen by button.
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
