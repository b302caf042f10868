/**
 * As much of a page as the explorer's parts need under node: elements, focus, events without a way
 * up the tree. Importing this makes `window` and `document`.
 */

class FakeElement extends EventTarget {
  constructor(tag) {
    super();
    Object.assign(this, { tag, parent: null, children: [], attributes: {}, dataset: {}, style: {} });
    Object.assign(this, { className: '', textContent: '', hidden: false, clientWidth: 0 });
  }

  append(...parts) {
    parts.forEach((part) => {
      part.parent = this;
      this.children.push(part);
    });
  }

  /** An element that goes takes the focus with it, as in a browser. */
  replaceChildren(...parts) {
    const { activeElement, body } = document;
    if (this !== activeElement && this.contains(activeElement)) document.activeElement = body;
    this.children = [];
    this.append(...parts);
  }

  setAttribute(name, value) {
    this.attributes[name] = value;
    if (name.startsWith('data-')) this.dataset[name.slice(5)] = value;
  }

  getAttribute(name) {
    return this.attributes[name] ?? null;
  }

  contains(other) {
    for (let at = other; at; at = at.parent) if (at === this) return true;
    return false;
  }

  matches(selectors) {
    const classes = this.className.split(' ').map((name) => `.${name}`);
    return selectors.split(', ').some((one) => one === this.tag || classes.includes(one));
  }

  closest(selectors) {
    for (let at = this; at; at = at.parent) if (at.matches(selectors)) return at;
    return null;
  }

  focus() {
    document.activeElement = this;
  }

  getBoundingClientRect() {
    return { left: 0, top: 0 };
  }

  setPointerCapture() {}
}

/** Make an element with others in it. */
export function made(tag, className = '', ...parts) {
  const element = new FakeElement(tag);
  element.className = className;
  element.append(...parts);
  return element;
}

/** Tell a listener of an event; fields such as its target are as given. */
export function fire(listening, name, fields = {}) {
  const event = new Event(name, { cancelable: true });
  for (const [field, value] of Object.entries({ target: listening, ...fields })) {
    Object.defineProperty(event, field, { value });
  }
  listening.dispatchEvent(event);
  return event;
}

globalThis.window = Object.assign(new EventTarget(), { Plotly: {} });
globalThis.requestAnimationFrame = () => 1; // frames never come: nothing is drawn
globalThis.document = {
  body: made('body'),
  createElement: (tag) => made(tag),
  createElementNS: (_, tag) => made(tag),
};
document.activeElement = document.body;
