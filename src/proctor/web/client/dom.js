// Build elements. Text is only ever set with textContent: model output is untrusted and is never markup.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
// Images in transcripts: data URLs of bitmap formats only.
const SAFE_IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]*$/;
const PROPERTIES = new Set(["value", "checked", "selected", "disabled", "open", "indeterminate"]);

/** Make an HTML element; attributes with a function value are event listeners, children are nodes or text. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Make an SVG element. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG_NAMESPACE, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== undefined && value !== null && value !== false) setAttribute(element, name, value);
  }
  append(element, children);
  return element;
}

function setAttribute(element, name, value) {
  if (typeof value === "function") {
    element.addEventListener(name.replace(/^on/, ""), value);
  } else if (name === "style") {
    for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
  } else if (PROPERTIES.has(name) && name in element) {
    element[name] = value;
  } else if (name.startsWith("on") || name === "srcdoc") {
    throw new Error(`the attribute ${name} is not allowed`);
  } else if (name === "href" && !String(value).startsWith("#")) {
    throw new Error("links stay inside this page");
  } else if (name === "src" && !SAFE_IMAGE.test(value)) {
    throw new Error("only bitmap images in data URLs are shown");
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** True if an image address can be shown without a request and without markup. */
export function isSafeImage(address) {
  return typeof address === "string" && SAFE_IMAGE.test(address);
}

/** Append nodes and texts; arrays are flattened, empty values are left out. */
export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Replace the content of an element. */
export function replaceContent(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

export const OUTCOMES = ["passed", "failed", "error", "unscored", "skipped"];
export const NO_RESULT = 255;
const MARK_SHAPES = {
  passed: () => svg("circle", { cx: 6, cy: 6, r: 4.5 }),
  failed: () => svg("path", { d: "M6 1 L11.5 11 L0.5 11 Z" }),
  error: () => svg("rect", { x: 1.5, y: 1.5, width: 9, height: 9 }),
  unscored: () => svg("path", { d: "M1.5 6 H10.5", class: "stroke" }),
  skipped: () => svg("circle", { cx: 6, cy: 6, r: 3.8, class: "stroke" }),
  waiting: () => svg("circle", { cx: 6, cy: 6, r: 1.2 }),
};

/** Return the name of an outcome index of the grid. */
export function outcomeName(index) {
  return OUTCOMES[index] ?? "waiting";
}

/** Draw the mark of an outcome: a shape and a colour, with the word for screen readers. */
export function outcomeMark(outcome, { label = true, small = false } = {}) {
  const name = typeof outcome === "number" ? outcomeName(outcome) : outcome;
  const text = name === "waiting" ? "no result yet" : name;
  const access = label ? { role: "img", "aria-label": text } : { "aria-hidden": "true" };
  const shape = (MARK_SHAPES[name] ?? MARK_SHAPES.waiting)();
  return svg("svg", { class: `mark ${name}${small ? " small" : ""}`, viewBox: "0 0 12 12", ...access }, shape);
}

/** Make a button; it never submits a form. */
export function button(content, onclick, attributes) {
  return h("button", { type: "button", ...attributes, onclick }, content);
}

/** Make a labelled select; options are texts or [value, text] pairs. */
export function select(label, options, value, onchange, attributes) {
  const items = options.map((option) => {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    return h("option", { value: key, selected: key === value }, text);
  });
  return h(
    "label",
    { class: "control" },
    h("span", { class: "control-label" }, label),
    h("select", { ...attributes, onchange: (event) => onchange(event.target.value) }, items),
  );
}

/** Make a folded section with a summary line. */
export function foldout(summary, content, attributes) {
  return h("details", { class: "foldout", ...attributes }, h("summary", null, summary), content);
}

const FOLD_LINES = 12;
const LINE_LENGTH = 90;

/** Show untrusted text as a quotation; long texts are folded at 12 lines. */
export function quotation(text, { label, content, kind = "" } = {}) {
  const lines = countLines(text);
  const box = h("div", { class: `quotation ${kind}`, dir: "auto", role: label ? "group" : null, "aria-label": label });
  append(box, content ?? text);
  if (!text && !content) box.append(h("span", { class: "quiet" }, "(empty)"));
  if (lines <= FOLD_LINES + 2) return box;
  box.classList.add("folded");
  const unfold = button(
    `Show all of about ${lines.toLocaleString("en")} lines`,
    () => {
      const folded = box.classList.toggle("folded");
      unfold.textContent = folded ? `Show all of about ${lines.toLocaleString("en")} lines` : "Fold";
      unfold.setAttribute("aria-expanded", String(!folded));
    },
    { class: "link", "aria-expanded": "false" },
  );
  return h("div", { class: "foldable" }, box, unfold);
}

function countLines(text) {
  let lines = 0;
  for (const line of text.slice(0, 2_000_000).split("\n")) lines += Math.max(1, Math.ceil(line.length / LINE_LENGTH));
  return lines;
}

/** Let a long name break after its separators, and not inside a word. */
export function breakName(name) {
  return name.split(/(?<=[_.:/])/).map((part, index) => [index > 0 && h("wbr"), part]);
}

/** Keep options, intervals and sizes in a text in one piece: a line would break after their hyphens and spaces. */
export function keepTogether(text) {
  return text.split(/(--[\w-]+|\bn = [\d,]+|\bp [=<] [\d.]+|[+−]?[\d.]+(?:–| to )[+−]?[\d.]+%?)/).map((part, index) => (index % 2 ? h("span", { class: "nowrap" }, part) : part));
}

/** Make a section with a heading. */
export function section(heading, ...content) {
  const id = `s-${heading.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return h("section", { id, "aria-label": heading }, h("h2", null, heading), content);
}

/** The state of a page or section without content: what is missing and what to do. */
export function emptyState(title, text, action, heading = "p") {
  return h("div", { class: "state" }, h(heading, { class: "state-title" }, title), text && h("p", null, text), action);
}

/** The state of a page whose data could not be read. */
export function errorState(error, retry, heading = "p") {
  return h(
    "div",
    { class: "state state-error", role: "alert" },
    h(heading, { class: "state-title" }, outcomeMark("error", { label: false }), " This could not be loaded."),
    h("p", null, error.message),
    error.fix && h("p", null, h("strong", null, "Fix: "), error.fix),
    retry && button("Try again", retry),
  );
}

/** The state of a page while its data is read. */
export function loadingState(text = "Loading…") {
  return h("div", { class: "state loading", role: "status" }, text);
}

/** Tell screen readers about a change that is visible elsewhere. */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (region) region.textContent = text;
}

/** Redraw the content of an element when its width changes. */
export function drawResponsive(element, draw) {
  let width = 0;
  const observer = new ResizeObserver(([entry]) => {
    const next = Math.round(entry.contentRect.width);
    if (next === width || next === 0) return;
    width = next;
    requestAnimationFrame(() => replaceContent(element, draw(width)));
  });
  observer.observe(element);
  return element;
}

/** Show the text of `data-tip` attributes next to the pointer or the focused element. */
export function installTooltips() {
  const tip = h("div", { id: "tooltip", "aria-hidden": "true", hidden: true });
  document.body.append(tip);
  const hide = () => {
    tip.hidden = true;
  };
  const show = (event) => {
    const owner = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (!owner) return hide();
    tip.textContent = owner.getAttribute("data-tip");
    tip.hidden = false;
    placeTooltip(tip, owner, event.type === "pointerover" ? event : null);
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, { passive: true, capture: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
}

function placeTooltip(tip, owner, pointer) {
  const box = owner.getBoundingClientRect();
  const x = pointer ? pointer.clientX : box.left + box.width / 2;
  const left = Math.max(
    8,
    Math.min(x - tip.offsetWidth / 2, document.documentElement.clientWidth - tip.offsetWidth - 8),
  );
  const above = box.top - tip.offsetHeight - 6;
  const top = above > 48 ? above : Math.min(box.bottom + 6, window.innerHeight - tip.offsetHeight - 8);
  tip.style.left = `${Math.round(left)}px`;
  tip.style.top = `${Math.round(top)}px`;
}
