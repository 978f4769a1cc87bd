// Small helpers over the DOM. Text goes in as text only: there is no innerHTML anywhere in the console.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** An element with properties, attributes (`aria-*`, `data-*`, `for`) and children. */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "for") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children);
  return node;
}

/** An SVG element with attributes and children. */
export function shape(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A `<div><dt/><dd/></div>` pair of a definition list. */
export function definition(term, value) {
  return element("div", {}, element("dt", { textContent: term }), element("dd", { textContent: value }));
}

/** Says something to screen readers. */
export function announce(text) {
  byId("announce").textContent = text;
}
