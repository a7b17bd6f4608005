// Compare two configurations: the answer first, then differences with intervals, flips, slices, and the samples.

import { makeLink, navigate, parseAddress, updateParams } from "./address.js";
import {
  append,
  button,
  emptyState,
  errorState,
  foldout,
  h,
  keepTogether,
  loadingState,
  outcomeMark,
  replaceContent,
  section,
  select,
} from "./dom.js";
import {
  DASH,
  dropUnit,
  formatChange,
  formatChanges,
  formatCount,
  formatInteger,
  formatInterval,
  formatPercent,
  formatPlain,
  formatProbability,
  formatTime,
  formatValue,
  isNumber,
  metricLabel,
  nameMetrics,
  splitAnswer,
} from "./format.js";
import { SampleGrid, filterNames } from "./grid.js";
import { GridModel, pairFilter, selectedPair } from "./gridmodel.js";
import { gridKeys } from "./gridkeys.js";
import { PairLoader, RunLoader, pairModels } from "./loader.js";
import { flipTable, intervalTable, niceTicks } from "./plots.js";
import { SamplePanel } from "./sample.js";
import { listSliceKeys, renderSlices } from "./slices.js";
import { joinPath, source } from "./source.js";

// Slices of larger runs take minutes to compare.
const LARGE = 50_000;

/** Show the comparison of the parameters a (new) and b (old), each RUN@CONFIGURATION. */
export async function renderComparePage(address) {
  const { runs } = await source.get("runs");
  const typed = ["a", "b"].map((name, index) => address.params.get(name) ?? address.segments[index + 1] ?? "");
  const sides = await Promise.all(typed.map((reference) => listSides(runs, reference)));
  const pairs = findPairs(...sides, typed[0] === typed[1]);
  if (pairs.length > 1) return choosePage(runs, "", "", pairs);
  const [a, b] = pairs[0]?.map(writeSide) ?? typed;
  if (address.segments.length > 1 || (pairs.length && `${[a, b]}` !== `${typed}`)) {
    const params = new URLSearchParams(address.params);
    params.set("a", a);
    params.set("b", b);
    navigate(makeLink(["compare"], params), { replace: true });
    return {};
  }
  if (!a || !b) return choosePage(runs, a, b);
  return new ComparePage(runs, a, b, await source.get("compare", { a, b }));
}

/** List the configurations that a typed RUN or RUN@CONFIGURATION means, as [run, configuration]. */
async function listSides(runs, reference) {
  if (!reference) return [];
  const { run_id: id, configurations } = await source.get("find", { reference });
  const run = runs.find((one) => one.run_id === id);
  return run ? configurations.map((name) => [run, name]) : [];
}

/** List the comparisons that two typed sides can mean; configurations of the same name go together. */
function findPairs(news, olds, isSame) {
  let pairs = news.flatMap((one) => olds.map((other) => [one, other]));
  pairs = pairs.filter(([one, other]) => one[0] !== other[0] || one[1] !== other[1]);
  const alike = pairs.filter(([one, other]) => one[1] === other[1]);
  if (alike.length) pairs = alike;
  // The first configuration of a run is the one that the others are compared with.
  else if (isSame) pairs = pairs.filter(([, other]) => other[1] === other[0].configurations[0]);
  return pairs;
}

function writeSide([run, name]) {
  return `${run.run_id}@${name}`;
}

function choosePage(runs, a, b, pairs = []) {
  const links = pairs.map(([one, other]) => {
    const text = one[1] === other[1] ? `${one[1]} in both runs` : `${one[1]} with ${other[1]}`;
    const href = makeLink(["compare"], { a: writeSide(one), b: writeSide(other) });
    return h("li", null, h("a", { href, dir: "auto" }, text));
  });
  const element = h(
    "div",
    { class: "page" },
    h(
      "div",
      { class: "lead" },
      h("h1", null, "Choose two configurations to compare."),
      links.length
        ? [h("p", { class: "quiet" }, "Several configurations match. Choose a comparison:"), h("ul", { class: "sentences" }, links), h("p", { class: "quiet" }, "Or choose two others:")]
        : h("p", { class: "quiet" }, "They can be two configurations of one run, or the same configuration in two runs."),
    ),
    runs.length
      ? renderPickers(runs, a, b)
      : emptyState("There are no runs yet.", "", h("pre", { class: "command" }, "proctor demo")),
  );
  return { title: "Compare", trail: [{ text: "compare" }], element };
}

function renderPickers(runs, a, b) {
  const sides = runs.flatMap((run) =>
    run.configurations.map((name) => [`${run.run_id}@${name}`, describeChoice(run, name)]),
  );
  const choose = (side) => (value) =>
    updateParams(
      Object.fromEntries([
        [side, value],
        ...filterNames(parseAddress().params).map((name) => [name, ""]),
        ["sample", ""],
      ]),
    );
  const picker = (label, side, value) =>
    select(
      label,
      [["", "choose"], ...(value && !sides.some(([key]) => key === value) ? [[value, value]] : []), ...sides],
      value,
      choose(side),
    );
  const swap = a && b && h("a", { href: makeLink(["compare"], { a: b, b: a }), class: "quiet" }, "Swap");
  return h("div", { class: "pickers" }, picker("Old", "b", b), picker("New", "a", a), swap);
}

/** Describe a configuration of a run by what tells it apart from others of the same name. */
function describeChoice(run, name) {
  const { value, interval, n } = run.metrics[name]?.pass_rate ?? {};
  const range = interval ? ` (95% ${formatInterval(interval, { kind: "rate" })})` : "";
  const rate = isNumber(value) && `${formatPercent(value)}${range} of ${formatInteger(n)} passed`;
  const baseline = run.baselines.length > 0 && `baseline ${run.baselines.join(", ")}`;
  const id = run.run_id.split("-").at(-1);
  return [run.name, name, id, baseline, rate, formatTime(run.started_at)].filter(Boolean).join(" · ");
}

class ComparePage {
  constructor(runs, a, b, payload) {
    Object.assign(this, { runs, a, b, payload });
    const { comparison } = payload;
    this.names = uniqueLabels(comparison);
    this.title = `${this.names[0]} and ${this.names[1]}`;
    this.trail = this.#buildTrail();
    this.keys = {};
    this.params = parseAddress().params;
    this.flips = h("div");
    this.slices = h("div");
    this.samples = h("section", { "aria-label": "Samples" }, loadingState("Loading samples…"));
    this.element = h(
      "div",
      { class: "page" },
      h(
        "div",
        { class: "lead" },
        h("h1", { dir: "auto" }, keepTogether(this.#answer().first || "These sides cannot be compared.")),
        h("p", { dir: "auto" }, this.#answer().rest, " ", this.#describeFlips()),
        renderChanges(payload.changes),
        renderPickers(runs, a, b),
      ),
      noteList(this.#listNotes()),
      h(
        "div",
        { class: "columns compare-columns" },
        section("Differences", renderDeltas(payload.deltas ?? [], this.names), describeSamples(payload)),
        h("section", { "aria-label": "Flips" }, h("h2", null, "Samples"), this.flips),
      ),
      this.slices,
      this.samples,
    );
  }

  // Notes that neither the answer nor a line of the table says.
  #listNotes() {
    const { comparison, deltas = [] } = this.payload;
    const isSaid = (note) => comparison.answer?.includes(note) || deltas.some(({ method }) => method === note);
    const kinds = listKinds(this.payload);
    return (comparison.notes ?? []).filter((note) => !isSaid(note)).map((note) => nameMetrics(note, kinds));
  }

  // The answer with readable names of metrics.
  #answer() {
    const { comparison } = this.payload;
    return splitAnswer({ ...comparison, answer: nameMetrics(comparison.answer ?? "", listKinds(this.payload)) });
  }

  #buildTrail() {
    const { a, b } = this.payload;
    const run = this.runs.find((one) => one.run_id === a.run_id);
    const text = `${this.names[0]} vs ${this.names[1]}`;
    return a.run_id === b.run_id && run
      ? [{ text: run.name, href: makeLink(["runs", run.run_id]) }, { text }]
      : [{ text: "compare", href: makeLink(["compare"]) }, { text }];
  }

  #describeFlips() {
    const { counts, only, comparison } = this.payload;
    const rest =
      only[0] + only[1]
        ? ` ${formatCount(only[0], "sample")} only in ${this.names[0]} and ${formatInteger(only[1])} only in ${this.names[1]} are left out.`
        : "";
    const reason =
      (comparison.biased && "the samples were selected by their results") ||
      (comparison.unlike?.length && "the evaluators differ") ||
      (comparison.uneven?.length && "some evaluators scored fewer samples on one side");
    const [a, b] = this.names;
    return reason
      ? `${formatCount(counts.won, "sample")} passed only in ${a}, ${formatInteger(counts.lost)} only in ${b}; ${reason}, so this does not show which one is better.${rest}`
      : `${formatCount(counts.won, "sample")} won, ${formatInteger(counts.lost)} lost.${rest}`;
  }

  async ready() {
    try {
      await this.#startGrid();
    } catch (error) {
      replaceContent(this.samples, errorState(error));
      if (!(error.status >= 0)) throw error;
    }
  }

  async #startGrid() {
    const { a, b } = this.payload;
    const ids = [...new Set([b.run_id, a.run_id])];
    const grids = await Promise.all(ids.map((id) => source.get(`${joinPath("runs", id)}/grid`)));
    if (this.destroyed) return;
    const parts = new Map(
      ids.map((id, index) => [id, { model: new GridModel(grids[index]), loader: new RunLoader(id) }]),
    );
    const sides = [
      [b, this.names[1]],
      [a, this.names[0]],
    ].map(([side, label]) => {
      const { model, loader } = parts.get(side.run_id);
      return {
        model,
        loader,
        label,
        configuration: side.configuration,
        column: model.configurations.indexOf(side.configuration),
      };
    });
    const model = pairModels(sides);
    this.model = model;
    const loader = new PairLoader(model, sides);
    this.grid = new SampleGrid({ model, loader, defaultLines: 3, name: "compared samples" });
    this.grid.fileName = this.title;
    this.panel = new SamplePanel(this.grid);
    replaceContent(this.samples, this.grid.element);
    this.element.append(this.panel.element);
    Object.assign(
      this.keys,
      gridKeys(this.grid, this.panel, () => this.params),
    );
    if (!filterNames(this.params).length && !this.params.get("sample"))
      updateParams({ differ: true }, { replace: true });
    else await this.update(parseAddress());
    this.grid.keys = await loader.listKeys();
    if (this.destroyed) return;
    this.#renderSlices();
    this.grid.redraw();
    if (this.params.get("sample")) this.grid.select(model.findRow(this.params.get("sample")));
  }

  destroy() {
    this.destroyed = true;
    this.grid?.destroy();
  }

  async update({ params }) {
    const before = this.params;
    this.params = params;
    if (!this.grid) return;
    this.#renderFlips();
    if (before.get("by") !== params.get("by")) this.#renderSlices();
    const panel = this.panel.update(params);
    await this.grid.update(params);
    await panel;
    if (Boolean(before.get("sample")) !== Boolean(params.get("sample"))) this.grid.keepInView();
  }

  #renderFlips() {
    const [a, b] = this.names;
    const selected = selectedPair(this.params, a, b);
    const counts = this.payload.counts;
    replaceContent(
      this.flips,
      flipTable({ counts, a, b, selected, onCell: (key) => this.#open(selected === key ? {} : pairFilter(key, a, b)) }),
      h(
        "p",
        { class: "quiet flip-note" },
        "A sample passes if more than half of its results pass; errors and results without a verdict do not pass. Choose a cell to see its samples.",
      ),
    );
  }

  #open = (changes) => {
    const cleared = Object.fromEntries(
      filterNames(this.params)
        .filter((name) => !name.startsWith("m."))
        .map((name) => [name, ""]),
    );
    updateParams({ ...cleared, ...changes });
    const top = this.samples.getBoundingClientRect().top;
    if (top > innerHeight * 0.5) scrollBy(0, top - 60);
  };

  // A report in one file has the slices of its run, without their differences; so has a page of a large run.
  #renderSlices() {
    const { a, b } = this.payload;
    const usable = listSliceKeys(this.grid?.keys ?? []);
    const isLarge = this.runs.some(({ run_id: id, finished }) => [a.run_id, b.run_id].includes(id) && finished > LARGE);
    const isCompared = source.home === "server" && !isLarge;
    const hasSlices = a.run_id === b.run_id && source.has(`${joinPath("runs", a.run_id)}/slices`);
    if (!usable.length || !(isCompared || hasSlices)) return;
    const by = this.params.get("by") ?? "";
    const chooser = select("By", [["", "choose a key"], ...usable], by, (value) =>
      updateParams({ by: value }, { replace: true }),
    );
    const content = h("div");
    replaceContent(this.slices, section("Slices", chooser, content));
    const open = (changes) =>
      this.#open(Object.fromEntries(Object.entries(changes).map(([name, value]) => [this.#renameFilter(name), value])));
    const filter = (key, value) => this.#open({ [key === "tags" ? `m.tags.${value}` : `m.${key}`]: key === "tags" ? "yes" : value, differ: true });
    if (by && isCompared) renderComparedSlices(content, { a: this.a, b: this.b, by, names: this.names, filter });
    else if (by) renderSlices(content, a.run_id, by, open, [b.configuration, a.configuration]);
  }

  #renameFilter(name) {
    const { a, b } = this.payload;
    if (name === `o.${a.configuration}`) return `o.${this.names[0]}`;
    return name === `o.${b.configuration}` ? `o.${this.names[1]}` : name;
  }
}

/** Say over which samples the numbers of both sides are, as they can differ from those of their runs. */
function describeSamples({ comparison, deltas = [], only }) {
  const sizes = deltas.filter((delta) => isNumber(delta.absolute)).map((delta) => delta.n ?? 0);
  if (!sizes.length) return null;
  const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
  const common = low === high ? formatCount(high, "common sample") : `${formatInteger(low)} to ${formatCount(high, "common sample")}`;
  const left = only[0] + only[1] ? ` ${formatCount(only[0] + only[1], "sample")} of one side only are left out.` : "";
  return h(
    "p",
    { class: "quiet" },
    `Old and new are over the ${common} (n) that have a number on both sides, with the epochs of a sample averaged first, so they can differ from the numbers of their runs.${left}${describeCorrection(comparison.tests)}`,
  );
}

/** Say that verdicts are stricter than the intervals beside them. */
function describeCorrection(tests = 0) {
  if (tests < 2) return "";
  return ` Each interval has 95% for its own metric; verdicts are corrected for ${formatCount(tests, "test")}, those of the run’s other comparisons with its baseline included.`;
}

/** Map the compared metrics to their kinds; a side of the same name is not one of them. */
function listKinds({ comparison, deltas = [] }) {
  const tables = ["metrics", "scores", "fields"].flatMap((name) => Object.values(comparison[name] ?? {}));
  const kinds = Object.fromEntries([...tables, ...deltas].map(({ name, kind }) => [name, kind ?? ""]));
  for (const name of [comparison.a, comparison.b]) delete kinds[name];
  return kinds;
}

function uniqueLabels({ a, b }) {
  return a === b ? [`${a} (new)`, `${b} (old)`] : [a, b];
}

function noteList(notes) {
  if (!notes.length) return null;
  return h(
    "ul",
    { class: "notes" },
    notes.map((text) => h("li", { dir: "auto" }, text)),
  );
}

function renderChanges(changes = []) {
  if (!changes.length) return null;
  return h(
    "ul",
    { class: "changes", "aria-label": "What changed" },
    changes.map(({ what, same, text }) =>
      h(
        "li",
        { class: same ? "same" : "changed" },
        same === null
          ? `${what}: unknown`
          : [
              same ? `same ${what}` : h("strong", null, `${what} changed`),
              !same && text ? [": ", h("bdi", null, text)] : "",
            ],
      ),
    ),
  );
}

function deltaMetric({ kind = "number", unit = "" }) {
  return { kind, unit: kind === "number" ? unit : "" };
}

function deltaShape(delta) {
  return { better: "passed", worse: "failed" }[delta.verdict] ?? "neutral";
}

function renderDeltas(deltas, [a, b]) {
  const shown = deltas.filter((delta) => isNumber(delta.absolute));
  if (!shown.length) return h("p", { class: "quiet" }, "There is no common number to compare.");
  const isShare = (delta) => delta.kind === "rate" || delta.kind === "score";
  const reach = (list) =>
    Math.max(
      ...list
        .flatMap((delta) => [delta.absolute, ...(delta.interval ?? [])])
        .filter(isNumber)
        .map(Math.abs),
      1e-9,
    ) * 1.05;
  const shares = shown.filter(isShare);
  const common = shares.length ? reach(shares) : 1;
  const drawRow = (delta) =>
    deltaRow(delta, metricLabel(delta.name, delta.kind), [a, b], isShare(delta) ? common : reach([delta]));
  const draw = (kind) => {
    const list = shares.filter((delta) => delta.kind === kind);
    return list.length ? [...list.map(drawRow), deltaAxis(common, { kind })] : [];
  };
  // Rates are in points and scores are not, so each has its own numbers at the axis.
  const rows = [...draw("rate"), ...draw("score"), ...shown.filter((delta) => !isShare(delta)).map(drawRow)];
  return intervalTable({
    caption: `Differences between ${b} and ${a} with 95% intervals`,
    headings: ["Metric", "Old → new", "Difference", "95% interval", "n", "Verdict"],
    rows,
  });
}

/** Describe the axis of differences of one kind. */
function deltaAxis(limit, metric) {
  const format = (tick) => formatChange(tick, metric).replace(/\.0+$|(\.\d*?)0+$/, "$1");
  const end = niceTicks(0, limit, 2).at(-1);
  return { axis: { domain: [-limit, limit], ticks: [-end, end], format } };
}

/** Describe a difference as a row with its interval and verdict. */
function deltaRow(delta, label, [a, b], limit, confidence = "95%") {
  const metric = deltaMetric(delta);
  const unit = delta.kind === "rate" ? " points" : "";
  const reason = delta.interval ? "" : explainNoInterval(delta, metric, unit);
  const isLong = reason.length > 28;
  const sides = [delta.b, delta.a].map((value) => formatValue(value, metric));
  // The words of a unit stand beside the difference; a second time they make the table too wide.
  const plain = ["ms", "USD"].includes(metric.unit) ? metric : { ...metric, unit: "" };
  return {
    label,
    metric: { value: delta.absolute, interval: delta.interval },
    domain: [-limit, limit],
    reference: 0,
    shape: deltaShape(delta),
    tip: `${label}: ${formatValue(delta.b, metric)} in ${b}, ${formatValue(delta.a, metric)} in ${a}\ndifference ${formatChange(delta.absolute, metric)}${unit}, ${confidence} ${formatChanges(delta.interval, metric)}, p = ${formatProbability(delta.p_adjusted)}, n = ${formatInteger(delta.n)}`,
    cells: [
      h("span", { class: "nowrap" }, dropUnit(...sides), " → ", sides[1]),
      h("strong", { class: "nowrap" }, `${formatChange(delta.absolute, metric)}${unit}`),
      delta.interval
        ? h("span", { class: "nowrap" }, formatChanges(delta.interval, plain))
        : h("span", { class: "quiet" }, isLong ? DASH : reason),
      formatInteger(delta.n),
      renderVerdict(delta),
    ],
    remark: isLong ? reason : explainVerdict(delta, confidence),
  };
}

/** Explain a verdict that seems to contradict the rest of its row; empty if none does. */
function explainVerdict({ verdict, interval, method = "", p_adjusted: p }, confidence) {
  // A method is a sentence if the numbers of both sides mean different things.
  if (verdict === "not comparable") return method.split("; ").find((part) => part.includes(": ")) ?? "";
  const isDecided = verdict === "better" || verdict === "worse" || verdict === "different";
  if (!interval || !isNumber(p)) return "";
  const [isAlone, excludesZero] = [confidence === "95%", interval[0] > 0 || interval[1] < 0];
  const test = `the corrected test (p ${formatProbability(p).replace(/^(?!<)/, "= ").replace("<", "< ")}, Holm)`;
  if (isDecided && !excludesZero)
    return `The verdict comes from ${test}; the interval ${isAlone ? "is approximate" : "is wider, so that all intervals hold together"}, and includes 0.`;
  if (verdict !== "not enough evidence" || !excludesZero) return "";
  return `The interval${isAlone ? " of this metric alone" : ""} excludes 0, but ${test} does not decide.`;
}

/** Load and draw the differences of every slice by a key, as `proctor compare --by` shows them. */
async function renderComparedSlices(holder, { a, b, by, names, filter }) {
  replaceContent(holder, loadingState());
  try {
    const { comparison } = await source.get("compare", { a, b, by });
    replaceContent(holder, drawComparedSlices(comparison.slices, names, filter, listKinds({ comparison })));
  } catch (error) {
    replaceContent(holder, errorState(error));
    if (!(error.status >= 0)) throw error;
  }
}

function drawComparedSlices({ key, slices = [], tests = 0, confidence = 0.95, overlapping, binned, notes = [] }, names, filter, kinds) {
  const level = `${formatPlain(100 * confidence)}%`;
  const metrics = [...new Set(slices.flatMap((slice) => Object.keys(slice.deltas ?? {})))];
  const draw = (name) => {
    const parts = slices.map((slice) => [slice, slice.deltas?.[name]]).filter(([, delta]) => isNumber(delta?.absolute));
    const bounds = parts.flatMap(([, delta]) => [delta.absolute, ...(delta.interval ?? [])]).filter(isNumber);
    const limit = 1.05 * Math.max(1e-9, ...bounds.map(Math.abs));
    const rows = parts.map(([{ label }, delta]) => {
      const row = deltaRow(delta, label, names, limit, level);
      if (!binned) row.label = button(label, () => filter(key, label), { class: "link plain", "aria-label": `${key} ${label}: show the samples that differ` });
      return row;
    });
    if (!rows.length) return [];
    const [[, { kind }]] = parts;
    return [{ heading: metricLabel(name, kind) }, ...rows, deltaAxis(limit, deltaMetric({ kind }))];
  };
  const table = (list) =>
    intervalTable({
      caption: `Differences by ${key}`,
      headings: [key, "Old → new", "Difference", `${level} interval`, "n", "Verdict"],
      rows: list.flatMap(draw),
    });
  const [first, ...rest] = metrics;
  if (!first) return h("p", { class: "quiet" }, "No slice has a number on both sides.");
  const rule = `The intervals have ${level} each, so that all of them hold together with 95%; verdicts are corrected for ${formatCount(tests, "test")}.`;
  return [
    h("p", { class: "quiet" }, `${rule}${overlapping ? " A sample can be in several slices." : ""} n counts common samples.`),
    noteList(notes.map((note) => nameMetrics(note, kinds))),
    table([first]),
    rest.length > 0 && foldout(formatCount(rest.length, "other metric"), table(rest)),
  ];
}

/** Say why a difference has no interval; one that is the same in every sample has no spread, but can be tested. */
function explainNoInterval({ absolute, error, method = "", n = 0, p, paired = true }, metric, unit) {
  if (!isNumber(p)) return method.split("; ")[0] || (n < 2 ? "fewer than 2 samples" : "no interval");
  if (!paired || isNumber(error)) return "no interval";
  return absolute === 0 ? "equal in every sample" : `${formatChange(absolute, metric)}${unit} in every sample`;
}

function renderVerdict(delta) {
  const more = delta.more_samples ? ` (about ${formatInteger(delta.more_samples)} more samples would decide if the difference stays near this one)` : "";
  const shape = { better: "passed", worse: "failed" }[delta.verdict];
  return append(h("span", { class: "verdict-cell", "data-tip": more ? `${delta.verdict}${more}` : null }), [
    shape && outcomeMark(shape, { label: false }),
    shape && "\u00a0",
    delta.verdict ?? "not enough evidence",
  ]);
}
