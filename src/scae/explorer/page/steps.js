// The steps of an explanation: radio buttons, back and next, and the number keys.
import { make } from "./capsules.js";

export class Steps {
  // `steps` maps a name to the words on its button.
  constructor(host, steps, first, changed) {
    this.names = Object.keys(steps);
    this.changed = changed;
    const list = make("div", { className: "segments" });
    this.radios = this.names.map((name, i) => {
      const radio = make("input", { type: "radio", name: host.id, value: name });
      radio.addEventListener("change", () => this.set(name));
      list.append(make("label", { title: `Key ${i + 1}` }, radio, make("span", { textContent: steps[name] })));
      return radio;
    });
    this.back = make("button", { type: "button", textContent: "‹", title: "Step back" });
    this.next = make("button", { type: "button", textContent: "›", title: "Next step" });
    this.back.setAttribute("aria-label", "Step back");
    this.next.setAttribute("aria-label", "Next step");
    this.back.addEventListener("click", () => this.go(-1));
    this.next.addEventListener("click", () => this.go(1));
    host.append(make("div", { className: "walk" }, this.back, list, this.next));
    window.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const name = this.names[Number(event.key) - 1];
      if (name) this.set(name);
    });
    this.show(first);
  }

  go(by) {
    const index = this.names.indexOf(this.value) + by;
    if (index >= 0 && index < this.names.length) this.set(this.names[index]);
  }

  set(name) {
    this.show(name);
    this.changed();
  }

  show(name) {
    this.value = name;
    const index = this.names.indexOf(name);
    this.radios[index].checked = true;
    // Not `disabled`: a button that loses its focus throws the keyboard back to the top.
    this.back.setAttribute("aria-disabled", String(index === 0));
    this.next.setAttribute("aria-disabled", String(index === this.names.length - 1));
  }
}
