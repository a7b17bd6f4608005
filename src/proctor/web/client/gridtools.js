// The tool bar and the column headings of the sample grid.

import { updateParams } from "./address.js";
import { append, button, foldout, h, OUTCOMES, outcomeMark, replaceContent, select } from "./dom.js";
import { copyText, downloadText, gridToCsv, gridToJson, gridToMarkdown } from "./export.js";
import { evaluatorLabel, formatCount, formatInteger, formatMilliseconds, formatPlain, shortenNames } from "./format.js";

const OUTCOME_TIPS = {
  passed: "every evaluator passed the output",
  failed: "at least one evaluator failed the output",
  error: "the target raised an error, so there is no output",
  unscored: "an evaluator raised an error, so there is no verdict",
  skipped: "no evaluator gave a verdict",
};

/** Draw the tool bar and the column headings again, keeping the focus and the text being typed. */
export function buildToolbar(view) {
  const focused = document.activeElement?.closest?.(".grid-tools, .grid-head")
    ? document.activeElement.dataset.key
    : null;
  const typed = view.tools.querySelector("input[type=search]");
  const caret = typed && document.activeElement === typed ? [typed.value, typed.selectionStart] : null;
  replaceContent(view.tools, buildFilters(view), buildStatus(view));
  buildHeadings(view);
  if (!focused) return;
  const again = view.element.querySelector(`[data-key="${CSS.escape(focused)}"]`);
  again?.focus({ preventScroll: true });
  if (caret && again) {
    again.value = caret[0];
    again.setSelectionRange(caret[1], caret[1]);
  }
}

function buildFilters(view) {
  const { model, filters } = view;
  const first = [searchBox(view), outcomeChips(view)];
  const parts = [];
  if (model.width > 1)
    first.push(
      toggle(
        "differ",
        "configurations differ",
        filters.differ,
        "Samples whose outcome is not the same in all configurations (d)",
      ),
    );
  if (model.epochs > 1)
    first.push(toggle("flaky", "epochs differ", filters.flaky, "Samples whose outcome is not the same in all epochs"));
  if (model.evaluators.length > 1) {
    const options = [["", "all evaluators"], ...model.evaluators.map((name) => [name, evaluatorLabel(name)])];
    parts.push(
      select("Judged by", options, view.evaluator, (evaluator) => updateParams({ evaluator }), {
        "data-key": "evaluator",
      }),
    );
  }
  parts.push(...metadataFilters(view), sortSelect(view));
  if (view.keys.length) {
    const options = [["", "no groups"], ...view.keys.map(({ key }) => key)];
    parts.push(select("Group", options, view.group, (group) => updateParams({ group }), { "data-key": "group" }));
  }
  if (model.width > 2) parts.push(columnMenu(view));
  const lines = view.lines === 3 ? "1" : "3";
  if (view.mode !== "card")
    parts.push(
      button(
        view.lines === 3 ? "One line per row" : "Three lines per row",
        () => updateParams({ lines }, { replace: true }),
        { class: "quiet-button", "data-key": "lines" },
      ),
    );
  const rest =
    view.mode === "card"
      ? foldout("Sort, group and more filters", h("div", { class: "filters" }, parts), {
          open: view.moreOpen,
          ontoggle: (event) => {
            view.moreOpen = event.target.open;
          },
        })
      : parts;
  return h("div", { class: "filters", role: "toolbar", "aria-label": "Filters" }, first, rest);
}

function searchBox(view) {
  let timer = 0;
  const input = h("input", {
    type: "search",
    placeholder: "Search texts  /",
    "aria-label": "Search inputs, outputs and reasons",
    value: view.filters.text,
    "data-key": "text",
    oninput: (event) => {
      clearTimeout(timer);
      timer = setTimeout(() => updateParams({ text: event.target.value.trim() }, { replace: true }), 250);
    },
  });
  return input;
}

/** Say what the outcome filters count: samples with at least one such result. */
function describeRule({ model }) {
  if (model.epochs < 2 && model.width < 2) return "";
  const where = [model.width > 1 && "configuration", model.epochs > 1 && "epoch"].filter(Boolean).join(" and ");
  return `with at least one such result, in any ${where}`;
}

function outcomeChips(view) {
  const counts = view.model.countOutcomes(view.evaluator);
  const rule = describeRule(view);
  const active = new Set(view.filters.outcomes);
  const chips = OUTCOMES.map((name, index) => {
    if (!counts[index] && !active.has(name)) return null;
    const next = active.has(name) ? [...active].filter((other) => other !== name) : [...active, name];
    const tip = `${formatCount(counts[index], "sample")}${rule && ` ${rule}`}: ${view.evaluator ? `${name} by ${view.evaluator}` : OUTCOME_TIPS[name]}`;
    return button(
      [outcomeMark(name, { label: false }), ` ${name} `, h("span", { class: "count" }, formatInteger(counts[index]))],
      () => updateParams({ outcome: next.join(",") }),
      {
        class: "chip",
        "aria-pressed": String(active.has(name)),
        "data-tip": tip,
        "data-key": `outcome-${name}`,
      },
    );
  });
  return h("div", { class: "chips", role: "group", "aria-label": `Samples by outcome${rule && `, ${rule}`}` }, chips);
}

function toggle(name, text, active, tip) {
  return button(text, () => updateParams({ [name]: !active }), {
    class: "chip",
    "aria-pressed": String(active),
    "data-tip": tip,
    "data-key": name,
  });
}

function metadataFilters(view) {
  const { filters, model, keys } = view;
  const parts = filters.metadata.map(([key, value]) => {
    const values = [...(model.metadata.get(key)?.values ?? [value])].sort((a, b) =>
      a.localeCompare(b, "en", { numeric: true }),
    );
    const options = [["", `any ${key}`], ...values.slice(0, 500)];
    return select(key, options, value, (next) => updateParams({ [`m.${key}`]: next }), { "data-key": `m.${key}` });
  });
  const free = keys.filter(({ key }) => !filters.metadata.some(([used]) => used === key));
  if (!free.length) return parts;
  const options = [["", "add a filter"], ...free.map(({ key }) => key)];
  const add = async (key) => {
    if (!model.metadata.has(key)) model.addMetadata(await view.loader.loadMetadata(key));
    const [first] = [...model.metadata.get(key).values].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    if (first !== undefined) updateParams({ [`m.${key}`]: first });
  };
  return [...parts, select("Metadata", options, "", (key) => key && add(key), { "data-key": "metadata" })];
}

function sortSelect(view) {
  const { model, sort } = view;
  const options = [
    ["plan", "order of the dataset"],
    ["id", "sample id"],
  ];
  if (model.width > 1) options.push(["difference", "difference of scores"]);
  for (const [key, text] of [
    ["score", "score"],
    ["latency", "target latency"],
    ["tokens", "tokens"],
    ["cost", "cost"],
  ]) {
    if (key !== "score" && !model.numbers.includes(key)) continue;
    for (const name of model.configurations.slice(0, 12))
      options.push([`${key}~${name}`, model.width > 1 ? `${text} of ${name}` : text]);
  }
  const current = sort.configuration ? `${sort.key}~${sort.configuration}` : sort.key;
  const choose = (value) =>
    updateParams({
      sort: value === "plan" ? "" : value,
      desc: value === "difference" || /^(latency|tokens|cost)~/.test(value),
    });
  const order = button(sort.descending ? "↓" : "↑", () => updateParams({ desc: !sort.descending }), {
    class: "icon",
    "aria-label": sort.descending ? "Sort ascending" : "Sort descending",
    "data-tip": sort.descending ? "largest first" : "smallest first",
    "data-key": "desc",
  });
  return h("div", { class: "joined" }, select("Sort", options, current, choose, { "data-key": "sort" }), order);
}

function columnMenu(view) {
  const { model } = view;
  const change = (index, on) => {
    const next = on ? [...view.wanted, index].sort((a, b) => a - b) : view.wanted.filter((other) => other !== index);
    if (next.length) updateParams({ show: next.length === model.width ? "" : next.join(",") }, { replace: true });
  };
  const boxes = model.configurations.map((name, index) =>
    h(
      "label",
      null,
      h("input", {
        type: "checkbox",
        checked: view.wanted.includes(index),
        "data-key": `show-${index}`,
        onchange: (event) => change(index, event.target.checked),
      }),
      " ",
      h("bdi", null, name),
    ),
  );
  return h(
    "details",
    {
      class: "menu",
      open: view.menuOpen,
      ontoggle: (event) => {
        view.menuOpen = event.target.open;
      },
    },
    h("summary", { "data-key": "show" }, "Columns"),
    h("div", { class: "menu-content" }, boxes),
  );
}

function buildStatus(view) {
  const { model, filters } = view;
  const shown = view.rows.length;
  const parts = [
    h(
      "strong",
      null,
      shown === model.rows
        ? formatCount(shown, "sample")
        : `${formatInteger(shown)} of ${formatCount(model.rows, "sample")}`,
    ),
  ];
  if (view.searchText && view.searchShare < 1)
    parts.push(h("span", { class: "quiet" }, ` searching… ${Math.round(100 * view.searchShare)}%`));
  if (view.hiddenColumns)
    parts.push(
      h(
        "span",
        { class: "quiet" },
        ` ${formatInteger(view.shown.length)} of ${formatCount(view.shown.length + view.hiddenColumns, "configuration")} fit here`,
      ),
    );
  if (view.problem) parts.push(h("span", { class: "problem", role: "alert" }, ` ${view.problem}`));
  for (const [name, value] of Object.entries(filters.byConfiguration))
    parts.push(tag(`${name}: ${describeOutcome(value, model)}`, `o.${name}`));
  if (filters.error) parts.push(tag(`error: ${filters.error}`, "error"));
  if (filters.range) {
    const { column, configuration, low, high } = filters.range;
    const isLatency = model.isLatency(column);
    const format = isLatency ? formatMilliseconds : formatPlain;
    const what = isLatency ? "target latency" : `score of ${evaluatorLabel(column)}`;
    const any = model.epochs > 1 ? "at least one " : "";
    parts.push(tag(`${any}${what} in ${configuration} from ${format(low)} to ${format(high)}`, "range"));
  }
  const clear =
    shown !== model.rows && button("Clear filters", () => view.clearFilters(), { class: "link", "data-key": "clear" });
  return [
    h(
      "div",
      { class: "grid-status" },
      h("div", { class: "grid-count" }, parts, clear, h("span", { "data-failures": "" })),
      exportButtons(view),
    ),
    h("p", { class: "grid-rule quiet" }, describeCounting(view)),
  ];
}

/** Say how samples with several results count: in filters, in groups, and as different. */
function describeCounting(view) {
  const { model, filters, groups } = view;
  const parts = [];
  if (model.epochs > 1) parts.push("Outcome filters count samples with at least one such result, in any epoch.");
  if (groups)
    parts.push(
      model.epochs > 1
        ? "Groups count samples: one passes if more than half of its epochs pass; samples without a verdict are left out."
        : "Groups leave out samples without a verdict.",
    );
  if (filters.differ) {
    const same = view.rows.filter((row) => !hasPass(view, row)).length;
    const rule = model.epochs > 1 ? "Samples differ by the outcome of most epochs." : "";
    parts.push(rule, same > 0 && `${formatInteger(same)} of these ${formatInteger(view.rows.length)} pass nowhere: failed in one configuration, and error or no verdict in another.`);
  }
  return parts.filter(Boolean).join(" ");
}

function hasPass({ model, states }, row) {
  for (let column = 0; column < model.width; column += 1) if (states[row * model.width + column] === 0) return true;
  return false;
}

/** Describe the filter of a configuration: one result of several, or the outcome of most epochs. */
function describeOutcome(value, { epochs }) {
  const name = value.replace("most:", "").replace("notpassed", "not passed");
  if (epochs < 2) return name;
  return value.startsWith("most:") ? `most epochs ${name}` : `at least one ${name}`;
}

function tag(text, name) {
  return button([h("bdi", null, text), " ×"], () => updateParams({ [name]: "" }), {
    class: "tag",
    "aria-label": `Remove the filter ${text}`,
  });
}

function exportButtons(view) {
  const name = view.fileName ?? "samples";
  const download = async (event) => {
    const target = event.currentTarget;
    const text = await gridToCsv(view, (share) => {
      target.textContent = `CSV ${Math.round(100 * share)}%`;
    });
    target.textContent = "CSV";
    downloadText(`${name}.csv`, text, "text/csv");
  };
  const copyAs = (render) => async (event) => {
    const target = event.currentTarget;
    await copyText(await render(view), "Samples");
    flash(target, "Copied");
  };
  const tip = "the first 50 rows of the current filter";
  return h(
    "div",
    { class: "exports" },
    button("Copy as Markdown", copyAs(gridToMarkdown), {
      class: "quiet-button",
      "data-tip": tip,
      "data-key": "markdown",
    }),
    button("JSON", copyAs(gridToJson), {
      class: "quiet-button",
      "aria-label": "Copy as JSON",
      "data-tip": tip,
      "data-key": "json",
    }),
    button("CSV", download, {
      class: "quiet-button",
      "aria-label": "Download as CSV",
      "data-tip": "download the current filter",
      "data-key": "csv",
    }),
  );
}

/** Show another text on a button for a moment. */
export function flash(target, text) {
  target.dataset.text ??= target.textContent;
  target.textContent = text;
  setTimeout(() => {
    target.textContent = target.dataset.text;
  }, 1_200);
}

function buildHeadings(view) {
  const { model, sort } = view;
  const heading = (text, key, tip, extra) => {
    const active = sort.key === key.split("~")[0] && (sort.configuration || "") === (key.split(/~(.*)/s)[1] ?? "");
    const change = () => updateParams({ sort: key === "plan" ? "" : key, desc: active ? !sort.descending : false });
    const arrow = active && key !== "plan" ? (sort.descending ? " ↓" : " ↑") : "";
    return h(
      "div",
      {
        role: "columnheader",
        class: "cell",
        "aria-sort": active && key !== "plan" ? (sort.descending ? "descending" : "ascending") : "none",
      },
      button([h("span", { dir: "auto", class: "heading-text" }, text), arrow], change, {
        class: "heading",
        "data-tip": tip,
        "data-key": `head-${key}`,
      }),
      extra,
    );
  };
  view.shortNames = shortenNames(model.configurations, view.mode === "wide" ? 24 : view.mode === "card" ? 12 : 0);
  replaceContent(view.head);
  append(view.head, [
    heading("Sample", "id", "Sort by sample id"),
    heading("Input", "plan", "Sort in the order of the dataset"),
    view.shown.map((column) => configurationHeading(view, column, heading)),
  ]);
  view.head.hidden = view.mode === "card";
}

function configurationHeading(view, column, heading) {
  const name = view.model.configurations[column];
  const { epochs } = view.model;
  const values = ["passed", "notpassed", ...OUTCOMES.slice(1), ...(epochs > 1 ? ["most:passed", "most:notpassed"] : [])];
  const options = [
    ["", view.mode === "marks" ? "any" : "any outcome"],
    ...values.map((each) => [each, describeOutcome(each, view.model)]),
  ];
  const stored = view.filters.byConfiguration[name] ?? "";
  // With one epoch, the outcome of most epochs is that of the result.
  const value = epochs > 1 ? stored : stored.replace("most:", "");
  const filter = h(
    "select",
    {
      class: "outcome-filter",
      "aria-label": `Outcome in ${name}`,
      "data-key": `o.${name}`,
      onchange: (event) => updateParams({ [`o.${name}`]: event.target.value }),
    },
    options.map((option) => {
      const [key, text] = Array.isArray(option) ? option : [option, option];
      return h("option", { value: key, selected: key === value }, text);
    }),
  );
  if (value) filter.classList.add("active");
  return heading(view.shortNames[column], `score~${name}`, `${name}\nSort by score`, filter);
}
