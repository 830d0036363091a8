// Asks what kind of model is served and shows its page.
import { get, say } from "./api.js";
import { startImages } from "./image-page.js";
import { startPoints } from "./point-page.js";

try {
  const model = await get("/api/model");
  const start = model.kind === "images" ? startImages : startPoints;
  document.getElementById(model.kind).hidden = false;
  await start(model);
} catch (error) {
  document.getElementById("about").textContent = "";
  say(error.message, true);
}
