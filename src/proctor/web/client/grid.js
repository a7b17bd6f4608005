// The grid of samples: virtual rows in the scrolling page, filters from the address, texts for visible rows only.

import { linkWith, updateParams } from "./address.js";
import { announce, button, emptyState, h, replaceContent } from "./dom.js";
import { formatCount, formatInteger, splitWords } from "./format.js";
import { filterRows, groupRows, sortRows } from "./gridmodel.js";
import { buildGroup, buildRow } from "./gridrow.js";
import { buildToolbar, flash } from "./gridtools.js";

const OVERSCAN = 14;
const LOAD_DELAY = 50;
const NARROW = 620;
const GROUP_HEIGHT = 34;
const TOP_HEIGHT = 44;
const TEXT_WIDTH = 150;
const MARK_WIDTH = 78;
const CARD_CONFIGURATIONS = 4;

/** Read the filters, order and layout of a grid from the parameters of an address. */
export function readFilters(params) {
  const byConfiguration = {};
  const metadata = [];
  for (const [name, value] of params) {
    if (name.startsWith("o.")) byConfiguration[name.slice(2)] = value;
    if (name.startsWith("m.")) metadata.push([name.slice(2), value]);
  }
  const [key = "plan", configuration = ""] = (params.get("sort") ?? "")
    .split(/~(.*)/s)
    .filter((part) => part !== undefined);
  return {
    outcomes: (params.get("outcome") ?? "").split(",").filter(Boolean),
    byConfiguration,
    metadata,
    differ: params.has("differ"),
    flaky: params.has("flaky"),
    evaluator: params.get("evaluator") ?? "",
    text: params.get("text") ?? "",
    error: params.get("error") ?? "",
    range: readRange(params.get("range")),
    sort: { key: key || "plan", configuration, descending: params.has("desc") },
    group: params.get("group") ?? "",
    lines: params.get("lines") === "3" ? 3 : 1,
    show: (params.get("show") ?? "")
      .split(",")
      .filter((text) => /^\d+$/.test(text))
      .map(Number),
  };
}

function readRange(text) {
  if (!text) return null;
  const [column, configuration, low, high, last] = text.split("~");
  return { column, configuration, low: Number(low), high: Number(high), last: last === "1" };
}

/** Names of the parameters that filter rows. */
export function filterNames(params) {
  return [...params.keys()].filter((name) => /^(o\..*|m\..*|outcome|differ|flaky|evaluator|text|error|range)$/s.test(name));
}

// The parameters that decide which rows there are and how they look.
function listState(params) {
  return JSON.stringify(
    [...params].filter(([name]) => !["sample", "c", "epoch", "against", "by", "tab"].includes(name)),
  );
}

/** A virtual grid over a model; `loader` brings the texts, `onRows` hears of the number of rows. */
export class SampleGrid {
  constructor({ model, loader, keys = [], defaultLines = 1, name = "samples" }) {
    Object.assign(this, { model, loader, keys, defaultLines, name });
    this.items = [];
    this.rendered = new Map();
    this.selected = -1;
    this.matches = null;
    this.searchText = "";
    this.closedGroups = new Set();
    this.mode = "wide";
    this.rowHeight = 30;
    this.shown = model.configurations.map((_, index) => index);
    this.#buildElements();
    this.onScroll = () => this.#renderRows();
    addEventListener("scroll", this.onScroll, { passive: true });
    addEventListener("resize", this.onScroll);
    this.observer = new ResizeObserver(() => this.#layout());
    this.observer.observe(this.element);
    // What is above the grid can change its height, too.
    this.pageObserver = new ResizeObserver(() => {
      this.bodyTop = null;
      this.#renderRows();
    });
    this.pageObserver.observe(document.body);
  }

  #buildElements() {
    this.tools = h("div", { class: "grid-tools" });
    this.head = h("div", { class: "row grid-head", role: "row", "aria-rowindex": "1" });
    this.body = h("div", { class: "grid-body", role: "rowgroup" });
    this.body.addEventListener("click", (event) => this.#onClick(event));
    this.body.addEventListener("focusin", (event) => {
      const row = event.target.closest("[data-row]");
      if (row) this.selected = Number(row.dataset.row);
      if (row) this.#markRows();
    });
    this.table = h(
      "div",
      { class: "grid-table", role: "grid", "aria-label": this.name, "aria-multiselectable": "false" },
      h("div", { class: "grid-head-holder", role: "rowgroup" }, this.head),
      this.body,
    );
    this.empty = h("div");
    this.element = h("div", { class: "grid" }, this.tools, this.table, this.empty);
  }

  destroy() {
    removeEventListener("scroll", this.onScroll);
    removeEventListener("resize", this.onScroll);
    this.observer.disconnect();
    this.pageObserver.disconnect();
    this.search?.abort();
    clearTimeout(this.timer);
  }

  /** Apply the state of an address. */
  async update(params) {
    const key = listState(params);
    const isSame = key === this.stateKey && this.states && this.model === this.stateModel;
    this.params = params;
    this.openSample = params.get("sample");
    if (isSame) {
      this.#markRows();
      return;
    }
    this.stateKey = key;
    this.stateModel = this.model;
    const filters = readFilters(params);
    this.filters = filters;
    this.evaluator = this.model.evaluators.includes(filters.evaluator) ? filters.evaluator : "";
    this.sort = filters.sort;
    this.group = filters.group;
    this.lines = params.has("lines") ? filters.lines : this.defaultLines;
    this.#startSearch(filters.text, filters.error);
    await this.#loadColumns(filters);
    if (this.stateKey !== key) return;
    const wasShown = Boolean(this.states);
    this.#apply();
    if (wasShown && !this.openSample) this.#scrollToStart();
  }

  // Other rows are read from the first one.
  #scrollToStart() {
    const top = this.element.getBoundingClientRect().top;
    if (top < 0) scrollBy(0, top - TOP_HEIGHT);
  }

  /** Draw the tool bar again, for example when the metadata keys are known. */
  redraw() {
    if (this.states) this.#layout(true);
  }

  /** Replace the model, for a run in progress. */
  replaceModel(model) {
    const selectedId = this.model.ids[this.selected];
    this.loader.forgetChanged(model);
    this.model = model;
    this.selected = selectedId === undefined ? -1 : model.findRow(selectedId);
    this.update(this.params);
  }

  /** Load columns of numbers that are not loaded yet. */
  async loadNumbers(names) {
    const { model, loader } = this;
    const missing = names.filter((name) => model.numbers.includes(name) && !model.columns[name]);
    await Promise.all(missing.map(async (name) => model.addNumbers(name, await loader.loadNumbers(name))));
  }

  async #loadColumns({ evaluator, metadata, group, range, sort }) {
    const scores = [evaluator, range?.column].filter(
      (name) => this.model.evaluators.includes(name) && !this.model.scores.has(name),
    );
    const keys = [...metadata.map(([key]) => key), group].filter((key) => key && !this.model.metadata.has(key));
    try {
      await Promise.all([
        this.loadNumbers([sort.key, this.model.isLatency(range?.column) ? "latency" : ""]),
        ...scores.map(async (name) => this.model.addScores(name, await this.loader.loadScores(name))),
        ...keys.map(async (key) => this.model.addMetadata(await this.loader.loadMetadata(key))),
      ]);
      this.problem = "";
    } catch (error) {
      this.problem = error.message;
    }
  }

  // Search for texts and for a kind of errors; ids are known without a request.
  #startSearch(text, error) {
    const key = JSON.stringify([text, error]);
    if (key === this.searchKey) return;
    this.search?.abort();
    this.searchKey = key;
    this.searchText = text || error;
    this.matches = null;
    if (!this.searchText) return;
    const words = splitWords(text);
    this.matches = new Set();
    this.model.ids.forEach((id, row) => {
      const lower = id.toLowerCase();
      if (!error && words.every((word) => lower.includes(word))) this.matches.add(row);
    });
    this.searchShare = 0;
    this.search = new AbortController();
    const { signal } = this.search;
    const addHits = (rows, share) => {
      if (signal.aborted) return;
      for (const row of rows) this.matches.add(row);
      this.searchShare = share;
      this.#apply();
    };
    this.loader.search({ text, error }, addHits, { signal }).catch((error) => {
      if (signal.aborted) return;
      this.problem = `The search stopped: ${error.message}`;
      this.searchShare = 1;
      this.#apply();
    });
  }

  #apply() {
    const { model, filters } = this;
    this.states = model.states(this.evaluator);
    this.marks = model.marksOf(this.evaluator);
    this.values = model.averages(model.valuesOf(this.evaluator));
    const column = model.columns[this.sort.key];
    this.shownValues = column ? model.averages(column) : this.values;
    const rows = filterRows(model, this.states, { ...filters, evaluator: this.evaluator, matches: this.matches });
    this.rows = sortRows(model, rows, { ...this.sort, values: this.values });
    this.#arrange();
    this.#layout(true);
    announce(`${formatCount(this.rows.length, "sample")} shown`);
  }

  // Items are rows, and groups as negative numbers.
  #arrange() {
    this.groups =
      this.group && this.model.metadata.has(this.group) ? groupRows(this.model, this.rows, this.group) : null;
    if (!this.groups) {
      this.items = this.rows;
    } else {
      const items = [];
      this.groups.forEach((group, index) => {
        group.closed = this.closedGroups.has(group.value);
        items.push(-1 - index);
        if (!group.closed) items.push(...group.rows);
      });
      this.items = items;
    }
    this.positions = null;
  }

  // Groups are lower than rows: positions have offsets.
  #measure() {
    this.groupHeight = this.mode === "card" ? 36 + 26 * this.shown.length : GROUP_HEIGHT;
    this.offsets = null;
    if (!this.groups || this.groupHeight === this.rowHeight) return;
    this.offsets = new Float64Array(this.items.length + 1);
    for (let index = 0; index < this.items.length; index += 1) {
      this.offsets[index + 1] = this.offsets[index] + (this.items[index] < 0 ? this.groupHeight : this.rowHeight);
    }
  }

  #offset(position) {
    return this.offsets ? this.offsets[position] : position * this.rowHeight;
  }

  // The last position that starts at or before a vertical place.
  #positionAt(place) {
    if (!this.offsets) return Math.floor(place / this.rowHeight);
    let [low, high] = [0, this.items.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.offsets[middle] <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  toggleGroup(group) {
    if (this.closedGroups.has(group.value)) this.closedGroups.delete(group.value);
    else this.closedGroups.add(group.value);
    this.#arrange();
    this.#layout(true);
  }

  /** Return the rows in their order, without groups. */
  visibleRows() {
    return this.groups ? Int32Array.from(this.groups.flatMap((group) => group.rows)) : (this.rows ?? new Int32Array());
  }

  /** Return the position of a row in the list, or -1. */
  position(row) {
    if (!this.positions) {
      this.positions = new Int32Array(this.model.rows).fill(-1);
      this.items.forEach((item, index) => {
        if (item >= 0) this.positions[item] = index;
      });
    }
    return this.positions[row] ?? -1;
  }

  #layout(force = false) {
    if (!this.states) return;
    const width = this.element.clientWidth;
    if (!width || (!force && width === this.layoutWidth)) return;
    this.layoutWidth = width;
    const chosen = this.#chooseColumns(width);
    this.element.dataset.mode = this.mode;
    this.element.dataset.lines = String(this.lines);
    const cells =
      this.mode === "marks" ? `repeat(${chosen.length}, ${MARK_WIDTH}px)` : `repeat(${chosen.length}, minmax(0, 1fr))`;
    const idWidth = Math.round(Math.min(170, Math.max(96, width * 0.13)));
    this.table.style.setProperty(
      "--grid-columns",
      this.mode === "card" ? "1fr" : `${idWidth}px minmax(${width < 900 ? 80 : 140}px, 1.1fr) ${cells}`,
    );
    const heights = {
      card: 54 + 26 * chosen.length,
      marks: this.lines === 3 ? 64 : 30,
      wide: this.lines === 3 ? 72 : 30,
    };
    this.rowHeight = heights[this.mode];
    this.table.style.setProperty("--row-height", `${this.rowHeight}px`);
    this.#measure();
    this.body.style.height = `${this.#offset(this.items.length)}px`;
    this.table.setAttribute("aria-rowcount", String(this.items.length + 1));
    this.#renderFrame();
    this.bodyTop = null;
    const hadFocus = this.body.contains(document.activeElement);
    this.#clearRows();
    this.#renderRows();
    if (hadFocus) this.rendered.get(this.position(this.selected))?.focus({ preventScroll: true });
  }

  #chooseColumns(width) {
    const wanted = this.filters.show.filter((index) => index < this.model.width);
    const all = wanted.length ? wanted : [...this.model.configurations.keys()];
    this.wanted = all;
    let limit = all.length;
    if (width < NARROW) {
      this.mode = "card";
      limit = CARD_CONFIGURATIONS;
    } else {
      this.mode = (width - 280) / all.length >= TEXT_WIDTH ? "wide" : "marks";
      if (this.mode === "marks") limit = Math.max(1, Math.floor((width - 340) / (MARK_WIDTH + 12)));
    }
    this.shown = all.slice(0, limit);
    this.hiddenColumns = all.length - this.shown.length;
    return this.shown;
  }

  #renderFrame() {
    buildToolbar(this);
    this.element.style.setProperty("--tools-height", `${this.tools.offsetHeight}px`);
    const none = this.items.length === 0;
    this.table.hidden = none;
    replaceContent(this.empty, none && this.#emptyContent());
  }

  #emptyContent() {
    if (!this.model.rows) return emptyState("No results.", "Samples of a run in progress appear here as soon as they finish.");
    if (this.searchText && this.searchShare < 1)
      return emptyState(
        "Searching…",
        `${Math.round(100 * this.searchShare)}% of the texts searched, nothing found yet.`,
      );
    return emptyState(
      "No sample matches these filters.",
      "",
      button(`Show all ${formatInteger(this.model.rows)} samples`, () => this.clearFilters()),
    );
  }

  clearFilters() {
    updateParams(Object.fromEntries(filterNames(this.params).map((name) => [name, ""])));
  }

  #clearRows() {
    this.rendered.clear();
    this.body.replaceChildren();
  }

  #visibleRange() {
    // Measured once: reading it while scrolling would force a layout.
    this.bodyTop ??= this.body.getBoundingClientRect().top + scrollY;
    const top = this.bodyTop - scrollY;
    const first = this.#positionAt(-top) - OVERSCAN;
    const last = this.#positionAt(innerHeight - top) + 1 + OVERSCAN;
    return [Math.max(0, Math.min(first, this.items.length)), Math.max(0, Math.min(last, this.items.length))];
  }

  #renderRows() {
    if (!this.states || !this.body.isConnected) return;
    const [first, last] = this.#visibleRange();
    for (const [position, element] of this.rendered) {
      if (position < first || position >= last) {
        element.remove();
        this.rendered.delete(position);
      }
    }
    const fresh = document.createDocumentFragment();
    this.sampleLink = linkWith({ sample: "" });
    for (let position = first; position < last; position += 1) {
      if (!this.rendered.has(position)) fresh.append(this.#renderItem(position));
    }
    this.body.append(fresh);
    this.#scheduleTexts();
  }

  #renderItem(position) {
    const item = this.items[position];
    const isGroup = item < 0;
    const element = isGroup
      ? buildGroup(this, this.groups[-1 - item], position)
      : buildRow(this, item, this.loader.cached(item), position);
    element.style.transform = `translateY(${this.#offset(position)}px)`;
    if (isGroup) element.style.height = `${this.groupHeight}px`;
    if (!isGroup) this.#markSelection(element, item);
    this.rendered.set(position, element);
    return element;
  }

  #markSelection(element, row) {
    const isOpen = this.model.ids[row] === this.openSample;
    element.classList.toggle("open", isOpen);
    element.classList.toggle("selected", row === this.selected);
    element.setAttribute("aria-selected", String(row === this.selected || isOpen));
    element.tabIndex = row === this.selected || (this.selected < 0 && row === this.items[0]) ? 0 : -1;
  }

  #markRows() {
    for (const [at, element] of this.rendered) if (this.items[at] >= 0) this.#markSelection(element, this.items[at]);
  }

  // One request at a time, for the rows that are visible when it starts.
  #scheduleTexts() {
    if (this.loading || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.#loadTexts();
    }, LOAD_DELAY);
  }

  async #loadTexts() {
    const missing = [...this.rendered.keys()]
      .map((position) => this.items[position])
      .filter((item) => item >= 0 && !this.loader.cached(item));
    if (!missing.length) return;
    this.loading = true;
    const { loader } = this;
    try {
      await loader.loadRows(missing);
    } catch (error) {
      this.loading = false;
      this.problem = error.message;
      buildToolbar(this);
      return;
    }
    this.loading = false;
    if (loader === this.loader) this.#showTexts(new Set(missing));
    this.#scheduleTexts();
  }

  #showTexts(rows) {
    for (const [position, element] of this.rendered) {
      if (!rows.has(this.items[position])) continue;
      const hadFocus = element === document.activeElement;
      const fresh = this.#renderItem(position);
      element.replaceWith(fresh);
      if (hadFocus) fresh.focus({ preventScroll: true });
    }
  }

  #onClick(event) {
    const element = event.target.closest("[data-row]");
    if (!element || event.ctrlKey || event.metaKey || event.shiftKey || String(getSelection())) return;
    event.preventDefault();
    const cell = event.target.closest("[data-column]");
    this.open(Number(element.dataset.row), { column: cell ? Number(cell.dataset.column) : -1 });
  }

  /** Open a sample in the panel. */
  open(row, { column = -1, epoch = -1, replace = false } = {}) {
    this.select(row);
    const changes = { sample: this.model.ids[row], epoch: epoch >= 0 ? String(epoch + 1) : "" };
    if (column >= 0) changes.c = this.model.configurations[column];
    updateParams(changes, { replace: replace || Boolean(this.openSample) });
  }

  /** Select a row and scroll it into view. */
  select(row, { focus = false } = {}) {
    this.selected = row;
    const position = this.position(row);
    if (position >= 0) this.#scrollTo(position);
    this.#renderRows();
    this.#markRows();
    if (focus) this.rendered.get(position)?.focus({ preventScroll: true });
  }

  #scrollTo(position) {
    const margin = 60 + this.head.offsetHeight + this.tools.offsetHeight;
    const top = this.body.getBoundingClientRect().top + this.#offset(position);
    if (top < margin) scrollBy(0, top - margin);
    else if (top + this.rowHeight > innerHeight - 24) scrollBy(0, top + this.rowHeight - innerHeight + 24);
  }

  /** Keep the open row at the same place while the width changes. */
  keepInView() {
    const row = this.openSample ? this.model.findRow(this.openSample) : -1;
    if (row >= 0 && this.position(row) >= 0) this.#scrollTo(this.position(row));
    this.#renderRows();
  }

  /** Move the selection by a number of rows; an open sample follows. */
  move(step) {
    const rows = this.visibleRows();
    if (!rows.length) return;
    const current = this.openSample ? this.model.findRow(this.openSample) : this.selected;
    const at = rows.indexOf(current);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))];
    if (this.openSample) this.open(next, { replace: true });
    else this.select(next, { focus: true });
  }

  /** Open the next or previous sample with a result that did not pass, at that result; else say that there is none. */
  moveToFailure(step) {
    const rows = this.visibleRows();
    const current = this.openSample ? this.model.findRow(this.openSample) : this.selected;
    const column = this.model.configurations.indexOf(this.params?.get("c"));
    for (let at = rows.indexOf(current) + step; at >= 0 && at < rows.length; at += step) {
      const failure = this.model.findFailure(rows[at], this.evaluator, column);
      if (failure) return this.open(rows[at], { ...failure, epoch: this.model.epochs > 1 ? failure.epoch : -1, replace: true });
    }
    const text = step > 0 ? "No further failure" : "No earlier failure";
    announce(text);
    for (const place of document.querySelectorAll("[data-failures]")) flash(place, text);
  }
}
