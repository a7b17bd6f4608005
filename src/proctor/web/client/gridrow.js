// The elements of one row of the sample grid.

import { append, button, h, OUTCOMES, outcomeMark, outcomeName } from "./dom.js";
import { formatCost, formatInteger, formatMilliseconds, formatScore, showId } from "./format.js";

/** Build a row: id, input, and a cell per shown configuration. `texts` is undefined until they are loaded. */
export function buildRow(view, row, texts, position) {
  const { model } = view;
  const id = model.ids[row];
  const link = h(
    "a",
    {
      href: `${view.sampleLink}${view.sampleLink.includes("?") ? "&" : "?"}sample=${encodeURIComponent(id)}`,
      tabindex: "-1",
      dir: "auto",
    },
    showId(id),
  );
  const element = h(
    "div",
    { class: "row", role: "row", "aria-rowindex": position + 2, "data-row": row, tabindex: "-1" },
    h("div", { role: "rowheader", class: "cell id", title: showId(id) }, link),
    h(
      "div",
      { role: "gridcell", class: "cell input", dir: "auto" },
      texts ? texts.input : h("span", { class: "pending", "aria-hidden": "true" }),
    ),
  );
  for (const column of view.shown) element.append(buildCell(view, row, column, texts));
  return element;
}

function buildCell(view, row, column, texts) {
  const { model } = view;
  const index = row * model.width + column;
  const first = model.cell(row, column);
  const state = view.states[index];
  const preview = texts ? choosePreview(texts, first, view, model.configurations[column]) : undefined;
  const tip = describeCell(view, row, column, preview);
  const element = h("div", {
    role: "gridcell",
    class: `cell result ${outcomeName(state)}`,
    "data-column": column,
    "data-tip": tip,
  });
  const number = h("span", { class: "score" }, formatShown(view, index));
  append(element, [model.epochs > 1 ? epochStrip(model, view.marks, first) : outcomeMark(state), number]);
  if (view.mode === "marks") return element;
  if (view.mode === "card")
    element.prepend(cellName(view.shortNames[column]));
  if (texts === undefined) {
    element.append(h("span", { class: "text" }, h("span", { class: "pending", "aria-hidden": "true" })));
  } else if (preview) {
    const text = h(
      "span",
      { class: preview.error ? "text error-text" : "text", dir: "auto" },
      preview.error ?? preview.output ?? "",
    );
    if (view.lines > 1 && preview.reason)
      text.append(h("span", { class: "reason" }, preview.evaluator ? `${preview.evaluator}: ` : "", preview.reason));
    element.append(text);
  }
  return element;
}

/** Choose the epoch to show: the first with the outcome of the filter, else the first that did not pass. */
export function choosePreview(texts, first, { model, marks, filters }, configuration) {
  const cells = texts.cells.filter(({ cell }) => cell >= first && cell < first + model.epochs);
  const wanted = (filters.byConfiguration[configuration] ?? filters.outcomes.join()).replace("most:", "");
  const exact = OUTCOMES.indexOf(filters.error ? "error" : wanted);
  return (
    cells.find(({ cell }) => marks[cell] === exact) ??
    cells.find(({ cell }) => (marks[cell] === 0) === (wanted === "passed")) ??
    cells[0]
  );
}

/** A name that is cut in the middle if it is too long: names often differ at their ends. */
function cellName(name) {
  const letters = [...name];
  return h(
    "span",
    { class: "cell-name", dir: "auto" },
    h("span", null, letters.slice(0, -6).join("")),
    h("span", null, letters.slice(-6).join("")),
  );
}

function formatShown(view, index) {
  const value = view.shownValues?.[index];
  if (value === undefined || Number.isNaN(value)) return "";
  return (
    { latency: formatMilliseconds, tokens: formatInteger, cost: formatCost }[view.sort.key]?.(value) ??
    formatScore(value)
  );
}

function describeCell(view, row, column, preview) {
  const { model } = view;
  const index = row * model.width + column;
  const name = outcomeName(view.states[index]);
  const parts = [`${model.configurations[column]}: ${name === "waiting" ? "no result yet" : name}`];
  const value = view.values?.[index];
  if (value === value && value !== undefined) parts.push(`score ${formatScore(value)}`);
  const epoch = model.epochs > 1 && preview ? `epoch ${preview.cell - model.cell(row, column) + 1}: ` : "";
  if (epoch) parts[0] += " (most epochs)";
  if (preview?.reason) parts.push(`${epoch}${preview.evaluator}: ${preview.reason}`);
  if (preview?.error) parts.push(epoch + preview.error);
  return parts.join("\n");
}

/** One small mark per epoch: samples that do not always pass are visible at a glance. */
export function epochStrip(model, marks, first) {
  const strip = h("span", { class: "strip", role: "img" });
  const names = [];
  for (let epoch = 0; epoch < model.epochs; epoch += 1) {
    strip.append(outcomeMark(marks[first + epoch], { label: false, small: true }));
    names.push(outcomeName(marks[first + epoch]));
  }
  strip.setAttribute("aria-label", `epochs: ${names.join(", ")}`);
  return strip;
}

/** Build the heading of a group: its value, its size, and passes per configuration. */
export function buildGroup(view, group, position) {
  const { model } = view;
  const value = group.value ?? `no ${view.group}`;
  const toggle = button(
    [
      h("span", { class: "caret", "aria-hidden": "true" }, group.closed ? "▸" : "▾"),
      h("bdi", null, value),
      h("span", { class: "quiet" }, ` ${formatInteger(group.rows.length)}`),
    ],
    () => view.toggleGroup(group),
    {
      class: "group-toggle",
      "aria-expanded": String(!group.closed),
    },
  );
  const element = h(
    "div",
    { class: "row group-row", role: "row", "aria-rowindex": position + 2 },
    h("div", { role: "rowheader", class: "cell group-name" }, toggle),
  );
  for (const column of view.shown) {
    let passed = 0;
    let judged = 0;
    for (const row of group.rows) {
      const state = view.states[row * model.width + column];
      if (state < 2) judged += 1;
      if (state === 0) passed += 1;
    }
    const rest = group.rows.length - judged;
    const long = `${formatInteger(passed)} of ${formatInteger(judged)} passed${rest ? `, ${formatInteger(rest)} without a verdict` : ""}`;
    const text = view.mode === "marks" ? `${passed}/${judged}` : long;
    const name = view.mode === "card" ? cellName(view.shortNames[column]) : null;
    element.append(h("div", { role: "gridcell", class: "cell result", "data-tip": long }, name, h("span", { class: "quiet" }, text)));
  }
  return element;
}
