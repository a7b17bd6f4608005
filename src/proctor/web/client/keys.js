// The keyboard: single keys outside of text fields, and a dialog that lists them.

import { button, h } from "./dom.js";

const KEYS = [
  ["j", "next row"],
  ["k", "previous row"],
  ["Enter", "open the row"],
  ["Esc", "close the sample"],
  ["n", "next sample that did not pass"],
  ["p", "previous sample that did not pass"],
  ["[ ]", "previous and next configuration of the open sample"],
  ["f", "failures only"],
  ["d", "only samples where configurations differ"],
  ["/", "search texts"],
  ["c", "clear all filters"],
  ["t", "light or dark"],
  ["?", "this list"],
];

const COMMON = KEYS.slice(-2);

let handlers = {};
let listed = KEYS;

/** Set what the keys of the current page do: {key: function}; `texts` describes them if they differ from the usual. */
export function setKeys(next, texts) {
  handlers = next ?? {};
  listed = texts ? [...texts, ...COMMON] : KEYS;
}

/** Listen to the keyboard; `common` are the keys of every page. */
export function installKeys(common) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (document.querySelector("dialog[open]")) return;
    const typing = target.matches("input, textarea, select, [contenteditable]");
    if (typing) {
      if (event.key === "Escape") target.blur();
      return;
    }
    // Enter and Space belong to the focused control.
    if (["Enter", " "].includes(event.key) && target.matches("button, a, summary")) return;
    const handler = handlers[event.key] ?? common[event.key];
    if (handler && handler(event) !== false) event.preventDefault();
  });
}

/** Show the keys in a dialog. */
export function showKeys() {
  const dialog = h(
    "dialog",
    { class: "keys", "aria-label": "Keys" },
    h("h2", null, "Keys"),
    h(
      "table",
      { class: "data" },
      h(
        "tbody",
        null,
        listed.map(([key, text]) =>
          h(
            "tr",
            null,
            h(
              "th",
              { scope: "row" },
              key.split(" ").map((one) => [h("kbd", null, one), " "]),
            ),
            h("td", null, text),
          ),
        ),
      ),
    ),
    button("Close", () => dialog.close()),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
