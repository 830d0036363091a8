// A set of capsules: one focus stop for all, arrow keys between them, a switch for each.

export class Capsules {
  // `make(index)` gives { node, button, box }; `on` has look(index | null), choose, toggle.
  constructor(host, count, make, on) {
    this.items = Array.from({ length: count }, (_, index) => make(index));
    host.append(...this.items.map((item) => item.node));
    this.items.forEach((item, index) => this.listen(item, index, on));
    this.stop(0);
  }

  listen({ node, button, box }, index, on) {
    node.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && on.look(index));
    node.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && on.look(null));
    button.addEventListener("focus", () => {
      this.stop(index);
      if (button.matches(":focus-visible")) on.look(index);
    });
    button.addEventListener("blur", () => on.look(null));
    button.addEventListener("click", () => on.choose(index));
    box.addEventListener("change", () => on.toggle(index, box.checked));
    node.addEventListener("keydown", (event) => this.key(event, index, on));
  }

  key(event, index, on) {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const shown = this.shown();
    const count = shown.length;
    if (event.key in steps) this.focus(shown[(shown.indexOf(index) + steps[event.key] + count) % count]);
    else if (event.key === "Home") this.focus(shown[0]);
    else if (event.key === "End") this.focus(shown[count - 1]);
    else if (event.key === "Delete" || event.key === "x") {
      const { box } = this.items[index];
      box.checked = !box.checked;
      on.toggle(index, box.checked);
    } else return;
    event.preventDefault();
  }

  focus(index) {
    this.stop(index);
    this.items[index].button.focus({ focusVisible: true });
  }

  // Indices of the capsules that are not folded away, in their order on the page.
  shown() {
    const order = (a, b) => (this.items[a].node.compareDocumentPosition(this.items[b].node) & 4 ? -1 : 1);
    return this.items.flatMap(({ node }, i) => (node.checkVisibility() ? [i] : [])).sort(order);
  }

  // Keep the tab stop on a capsule that can be seen.
  settle() {
    const shown = this.shown();
    const now = this.items.findIndex(({ button }) => button.tabIndex === 0);
    if (shown.length && !shown.includes(now)) this.stop(shown[0]);
  }

  // Only the current capsule can be reached by the tabulator key.
  stop(index) {
    this.items.forEach(({ button, box }, i) => {
      button.tabIndex = box.tabIndex = i === index ? 0 : -1;
    });
  }
}

export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

export function makeSwitch(name) {
  const box = make("input", { type: "checkbox", checked: true, title: `Switch ${name} off or on` });
  box.setAttribute("aria-label", `${name} is on`);
  return box;
}
