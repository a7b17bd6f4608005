// The page of a run: what happened in a sentence, metrics with intervals, distributions, slices, and all samples.

import { linkWith, makeLink, parseAddress, updateParams } from "./address.js";
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
  describeCounts,
  formatCount,
  formatInteger,
  formatInterval,
  formatSeconds,
  formatTime,
  formatValue,
  isNumber,
  nameMetrics,
  showId,
  splitAnswer,
} from "./format.js";
import { evaluatorBlock, latencyBlock } from "./distributions.js";
import { SampleGrid } from "./grid.js";
import { GridModel, countPairs, pairFilter, selectedPair } from "./gridmodel.js";
import { gridKeys } from "./gridkeys.js";
import { RunLoader } from "./loader.js";
import { renderAllMetrics, renderCosts, renderQuality } from "./metrics.js";
import { flipTable } from "./plots.js";
import { definitionList, SamplePanel } from "./sample.js";
import { listSliceKeys, renderSlices } from "./slices.js";
import { joinPath, source } from "./source.js";
import { runStatus } from "./runs.js";

const REFRESH = 4_000;
const COMPARISON_WAIT = 250;
const LARGE = 20_000;
const MAX_COMPARED = 6;
const MAX_SENTENCES = 12;

/** Show one run. */
export async function renderRunPage(address) {
  const runId = address.segments[1];
  const page = new RunPage(runId, await source.get(joinPath("runs", runId)));
  const parts = [page.loadOverview(), !page.isLarge && page.loadComparisons()];
  if (!page.isLarge) await Promise.race([Promise.all(parts), new Promise((done) => setTimeout(done, COMPARISON_WAIT))]);
  page.params = address.params;
  return page;
}

class RunPage {
  constructor(runId, payload) {
    this.runId = runId;
    this.path = joinPath("runs", runId);
    this.payload = payload;
    this.params = parseAddress().params;
    this.gridRequest = source.get(`${this.path}/grid`);
    this.gridRequest.catch(() => {});
    this.lead = h("div");
    this.overview = h("div", { class: "overview" });
    this.samples = h("section", { id: "samples", "aria-label": "Samples" }, loadingState("Loading samples…"));
    this.element = h("div", { class: "page" }, this.lead, this.overview, this.samples);
    this.title = payload.summary.name;
    this.trail = [
      { text: payload.summary.name, href: makeLink(["runs"], { name: payload.summary.name }) },
      { text: formatTime(payload.summary.started_at) },
    ];
    this.#renderSummary();
  }

  /** True if comparisons and metadata take seconds; they are then loaded after the samples. */
  get isLarge() {
    return this.payload.summary.finished > LARGE;
  }

  /** Load distributions, errors and flaky samples, and show them. */
  async loadOverview() {
    try {
      Object.assign(this.payload, await source.get(`${this.path}/overview`));
    } catch (error) {
      this.payload.latency ??= {};
      if (!(error.status >= 0)) throw error;
    }
    if (!this.destroyed) this.#renderSummary();
  }

  /** Load the answers of the comparisons with the baseline, and show them. */
  async loadComparisons() {
    if (!this.payload.run.baseline || !this.payload.summary.finished) return;
    try {
      this.comparisons = await source.get(`${this.path}/comparisons`);
    } catch {
      return;
    }
    if (!this.destroyed) this.#renderSummary();
  }

  /** Load the samples after the summary is on the page. */
  async ready() {
    this.#showTab();
    try {
      await this.#startGrid();
    } catch (error) {
      replaceContent(this.samples, errorState(error));
      if (!(error.status >= 0)) throw error;
    }
    this.#schedule();
  }

  destroy() {
    this.destroyed = true;
    clearTimeout(this.timer);
    this.grid?.destroy();
  }

  async #startGrid() {
    const model = new GridModel(await this.gridRequest);
    this.gridRequest = null;
    const loader = new RunLoader(this.runId);
    if (this.destroyed) return;
    this.grid = new SampleGrid({ model, loader, name: `samples of ${this.title}` });
    this.grid.fileName = `${this.title}-${this.runId}`;
    this.panel = new SamplePanel(this.grid);
    replaceContent(this.samples, this.grid.element);
    this.element.append(this.panel.element);
    Object.assign(
      this.keys,
      gridKeys(
        this.grid,
        this.panel,
        () => this.params,
        () => this.#showSamples(),
      ),
    );
    this.#renderSummary();
    await this.update(parseAddress());
    this.grid.keys = await loader.listKeys();
    if (this.destroyed) return;
    if (this.grid.keys.length) this.#renderSummary();
    this.grid.redraw();
    if (this.params.get("sample")) this.grid.select(model.findRow(this.params.get("sample")));
    if (this.isLarge) await this.loadComparisons();
  }

  keys = {};
  comparisons = [];

  #showSamples() {
    if (readTab(this.params) !== "samples") updateParams({ tab: "samples" });
  }

  #showTab() {
    const tab = readTab(this.params);
    this.overview.hidden = tab !== "overview";
    this.samples.hidden = tab !== "samples";
    this.lead.classList.toggle("short", tab === "samples");
    replaceContent(this.tabs, this.#renderTabs(tab));
  }

  #renderTabs(tab) {
    const { payload } = this;
    const { summary } = payload;
    const count = this.grid ? this.grid.model.rows : summary.dataset.length;
    const entry = (name, text, href) =>
      h("a", { href, class: "page-tab", "aria-current": tab === name ? "page" : null }, text);
    const own = makeLink(["runs", this.runId]);
    const judge = payload.evaluators.find((one) => one.judges?.length);
    return [
      entry("overview", "Overview", tab === "overview" ? own : linkWith({ tab: "overview", sample: "" })),
      entry(
        "samples",
        ["Samples ", h("span", { class: "quiet" }, isNumber(count) ? formatInteger(count) : "")],
        tab === "samples" ? linkWith({}) : linkWith({ tab: "samples" }),
      ),
      judge &&
        source.has(`${this.path}/judges`) &&
        entry("judges", "Judges", makeLink(["runs", this.runId, "judges"])),
      hasRubrics(payload) &&
        source.has(`${this.path}/rubrics`) &&
        entry("rubrics", "Rubrics", makeLink(["runs", this.runId, "rubrics"])),
      source.home === "server" && summary.finished > 0 && entry("label", "Label", makeLink(["label", this.runId], { evaluator: judge?.name })),
      source.home === "server" && entry("trend", "Trend", makeLink(["trends"], { name: summary.name, run: this.runId })),
    ];
  }

  /** Follow the address: filters for the grid, the open sample, the key of the slices. */
  async update({ params }) {
    const before = this.params;
    this.params = params;
    this.#showTab();
    if (!this.grid) return;
    if (readTab(before) !== readTab(params)) scrollTo(0, 0);
    const panel = this.panel.update(params);
    if (before?.get("by") !== params.get("by")) this.#renderSlicesSection();
    this.#markFlips();
    await this.grid.update(params);
    await panel;
    if (Boolean(before?.get("sample")) !== Boolean(params.get("sample"))) this.grid.keepInView();
  }

  // A run in progress is read again until it has finished.
  #schedule() {
    const { status } = this.payload.summary;
    if (this.destroyed || source.home === "file" || (status !== "running" && status !== "submitted")) return;
    this.timer = setTimeout(async () => {
      if (!document.hidden) await this.#refresh();
      this.#schedule();
    }, REFRESH);
  }

  async #refresh() {
    try {
      const path = joinPath("runs", this.runId);
      const payload = await source.get(path);
      const changed =
        payload.summary.finished !== this.payload.summary.finished ||
        payload.summary.status !== this.payload.summary.status;
      if (!changed || this.destroyed) return;
      this.payload = Object.assign(payload, await source.get(`${path}/overview`));
      const model = new GridModel(await source.get(`${path}/grid`));
      const openId = this.params.get("sample");
      const before = openId ? this.grid.model.countResults(this.grid.model.findRow(openId)) : 0;
      this.grid.replaceModel(model);
      if (payload.summary.status === "completed") this.loadComparisons();
      if (openId && model.countResults(model.findRow(openId)) !== before) this.panel.reload();
      this.#renderSummary();
    } catch {
      // The next attempt follows.
    }
  }

  #renderSummary() {
    const { payload } = this;
    const { summary } = payload;
    this.tabs = h("nav", { class: "page-tabs", "aria-label": "Parts of the run" });
    replaceContent(this.lead, this.#renderLead(), this.tabs);
    this.#showTab();
    replaceContent(this.overview);
    append(this.overview, [
      warningList(payload.warnings?.map((text) => this.#nameMetrics(text))),
      summary.finished === 0 && emptyState("No results.", payload.status_text),
      summary.finished > 0 &&
        h(
          "div",
          { class: "columns" },
          section("Metrics", renderQuality(payload, this.#open)),
          this.#renderComparisons(),
        ),
      summary.finished > 0 && this.#renderDistributions(),
      (this.slices = h("div")),
      this.#renderFlaky(),
      this.#renderErrors(),
      foldout("All metrics, options and versions", [renderAllMetrics(payload), runFacts(payload)]),
    ]);
    this.#renderSlicesSection();
  }

  // Opens the samples behind a number.
  #open = (changes) => {
    const cleared = Object.fromEntries(
      [...this.params.keys()]
        .filter((name) => /^(o\.|outcome|differ|flaky|evaluator|range|text|error|sample)/.test(name))
        .map((name) => [name, ""]),
    );
    updateParams({ ...cleared, ...changes, tab: "samples" });
  };

  #renderLead() {
    const { summary, sentences, status_text: statusText } = this.payload;
    const facts = [
      formatTime(summary.started_at),
      isNumber(summary.duration_seconds) && summary.duration_seconds > 0 && formatSeconds(summary.duration_seconds),
      `${summary.dataset.name}${isNumber(summary.dataset.length) ? `, ${formatCount(summary.dataset.length, "sample")}` : ""}`,
      summary.target && `target ${summary.target}`,
      summary.code,
    ].filter(Boolean);
    return h(
      "div",
      { class: "lead" },
      h("h1", null, keepTogether(this.#headline(sentences))),
      this.#renderSentences(sentences),
      h(
        "p",
        { class: "facts quiet" },
        runStatus(summary),
        summary.status !== "completed" && " · ",
        facts.map((fact, index) => [index > 0 && " · ", h("bdi", null, fact)]),
      ),
      // The status of a run that is not complete is already among the facts.
      summary.status === "completed" && statusText && h("p", { class: "status-text" }, statusText),
    );
  }

  // What the headline does not say yet.
  #renderSentences(sentences) {
    const headline = this.#headline(sentences);
    const rest = sentences.filter((text) => text !== headline);
    const more = rest.length - MAX_SENTENCES;
    const items = rest.slice(0, MAX_SENTENCES).map((text) => h("li", { dir: "auto" }, text));
    if (more > 0) items.push(h("li", { class: "quiet" }, `… and ${formatCount(more, "configuration")} more, in the table below`));
    return items.length > 0 && h("ul", { class: "sentences" }, items);
  }

  // Put readable names of metrics into a sentence of the server.
  #nameMetrics(text) {
    const { metrics, summary } = this.payload;
    const names = Object.values(metrics).flatMap((table) => Object.keys(table));
    const kinds = [...names.map((name) => [name, ""]), ...summary.evaluators.map((name) => [name, "score"])];
    return nameMetrics(text, Object.fromEntries(kinds.filter(([name]) => !summary.configurations.includes(name))));
  }

  #headline(sentences) {
    if (sentences.length === 1) return sentences[0];
    const answers = this.comparisons
      .filter((one) => one.answer)
      .map((one) => splitAnswer({ ...one, answer: this.#nameMetrics(one.answer) }));
    if (answers.length === 1) return answers[0].first;
    if (answers.length > 1 && answers.length < 5) return answers.map(({ claim }) => claim).join(" ");
    const { summary } = this.payload;
    const rated = summary.configurations
      .filter((name) => isNumber(summary.metrics[name]?.pass_rate?.value))
      .sort((a, b) => summary.metrics[b].pass_rate.value - summary.metrics[a].pass_rate.value);
    if (rated.length < 2) return sentences[0] ?? describeCounts(summary.counts);
    const [best, worst] = [rated[0], rated.at(-1)];
    const text = (name) => `${formatRate(summary.metrics[name].pass_rate)} in ${name}`;
    return rated.length === 2
      ? `${text(best)}, ${text(worst)}.`
      : `From ${text(worst)} to ${text(best)}, in ${formatInteger(rated.length)} configurations.`;
  }

  #renderComparisons() {
    const names = this.payload.summary.configurations;
    if (names.length < 2 || !this.grid) return null;
    const base = this.payload.run.baseline ?? names[0];
    const others = names.filter((name) => name !== base).slice(0, MAX_COMPARED);
    this.flips = h("div", { class: "flip-list" });
    const block = section(
      "Differences",
      h(
        "p",
        { class: "quiet" },
        `Samples that pass with one configuration only, against ${base}.${this.grid.model.epochs > 1 ? " A sample passes if more than half of its epochs pass." : ""} Choose a cell to see them.`,
      ),
      this.flips,
    );
    this.compared = others.map((name) => [name, base]);
    this.#markFlips();
    return block;
  }

  #markFlips() {
    if (!this.flips) return;
    const { model } = this.grid;
    replaceContent(
      this.flips,
      this.compared.map(([a, b]) => {
        const [column, baseColumn] = [a, b].map((name) => model.configurations.indexOf(name));
        if (column < 0 || baseColumn < 0) return null;
        const counts = countPairs(model, column, baseColumn);
        const selected = selectedPair(this.params ?? new URLSearchParams(), a, b);
        const answer = this.comparisons.find((one) => one.a === a && one.b === b)?.answer;
        return h(
          "div",
          { class: "flip-block" },
          flipTable({
            counts,
            a,
            b,
            selected,
            onCell: (key) => this.#open(selected === key ? {} : pairFilter(key, a, b)),
          }),
          h(
            "p",
            { class: "flip-note" },
            answer && h("span", { dir: "auto" }, `${this.#nameMetrics(answer)} `),
            h(
              "a",
              { href: makeLink(["compare"], { a: `${this.runId}@${a}`, b: `${this.runId}@${b}` }) },
              "Compare in detail",
            ),
          ),
        );
      }),
    );
  }

  #renderDistributions() {
    const { payload } = this;
    if (!payload.latency) return section("Evaluators", loadingState("Counting scores…"));
    const names = payload.summary.configurations.slice(0, 4);
    const blocks = payload.evaluators.map((evaluator) => evaluatorBlock(evaluator, names, this.#open));
    const latency = Object.keys(payload.latency ?? {}).length > 0 && latencyBlock(payload, names, this.#open);
    return [
      blocks.length > 0 && section("Evaluators", h("div", { class: "multiples" }, blocks)),
      section("Time, tokens and cost", h("div", { class: "columns" }, renderCosts(payload), latency)),
    ];
  }

  #renderSlicesSection() {
    const keys = this.grid?.keys ?? [];
    if (!this.slices || !keys.length || !source.has(`${this.path}/slices`)) return;
    const usable = listSliceKeys(keys);
    if (!usable.length) return;
    const by = this.params?.get("by") ?? "";
    const chooser = select("By", [["", "choose a key"], ...usable], by, (value) =>
      updateParams({ by: value }, { replace: true }),
    );
    const content = h("div");
    replaceContent(this.slices, section("Slices", chooser, content));
    if (by) renderSlices(content, this.runId, by, this.#open);
  }

  #renderFlaky() {
    const { flaky, flaky_count: count } = this.payload;
    if (!flaky?.length) return null;
    const link = ({ sample_id: sample, configuration: c }) =>
      h("a", { href: makeLink(["runs", this.runId], { sample, c }), dir: "auto", class: "sample-id" }, showId(sample));
    const several = this.payload.summary.configurations.length > 1;
    const items = flaky.map((one) =>
      h("li", null, h("span", null, link(one), several && [" in ", h("bdi", null, one.configuration)], `: ${one.passed} of ${one.trials} passed`)),
    );
    return section(
      "Flaky samples",
      h("p", { class: "quiet" }, "Passed some epochs but not all, the least reliable first."),
      h("ul", { class: "legend" }, items),
      count > flaky.length && h("p", { class: "quiet" }, `… and ${formatInteger(count - flaky.length)} more`),
      button("All samples whose epochs differ, also by errors or missing verdicts", () => this.#open({ flaky: "1" }), { class: "link" }),
    );
  }

  #renderErrors() {
    const { errors } = this.payload;
    if (!errors?.length) return null;
    const isUnscored = ({ kind }) => kind === "evaluation failed (no verdict)";
    return section(
      "Errors",
      h("p", { class: "quiet" }, "Counts of results; a kind opens the samples that contain them."),
      h(
        "table",
        { class: "data errors" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            ["Kind", "Results", "Example"].map((text) => h("th", { scope: "col" }, text)),
          ),
        ),
        h(
          "tbody",
          null,
          errors.map((error) =>
            h(
              "tr",
              null,
              h(
                "th",
                { scope: "row" },
                button(
                  [outcomeMark(isUnscored(error) ? "unscored" : "error", { label: false }), ` ${error.kind}`],
                  () => this.#open(isUnscored(error) ? { outcome: "unscored" } : { error: error.kind }),
                  { class: "link" },
                ),
              ),
              h("td", { class: "number", "data-label": "results" }, formatInteger(error.count)),
              h("td", { dir: "auto", class: "example" }, error.example),
            ),
          ),
        ),
      ),
    );
  }
}

/** Write a pass rate with its denominator and interval. */
function formatRate({ value, n, interval }) {
  const range = interval ? ` (95% ${formatInterval(interval, { kind: "rate" })})` : "";
  return `${formatValue(value, { kind: "rate" })} of ${formatInteger(n)} passed${range}`;
}

/** An address with filters or an open sample shows the samples. */
function readTab(params) {
  const tab = params?.get("tab");
  if (tab === "overview" || tab === "samples") return tab;
  return [...(params?.keys() ?? [])].some((name) =>
    /^(o\.|m\.|outcome|differ|flaky|evaluator|range|text|error|sort|group|sample)/.test(name),
  )
    ? "samples"
    : "overview";
}

function hasRubrics(payload) {
  return payload.evaluators.some(
    (one) => /rubric/i.test(one.uses ?? "") || /rubric/i.test(JSON.stringify(one.parameters ?? {})),
  );
}

function warningList(warnings) {
  if (!warnings?.length) return null;
  const items = warnings.map((text) => h("li", { dir: "auto" }, keepTogether(text)));
  const list = h("ul", null, items.slice(0, 5));
  return h(
    "div",
    { class: "warnings", role: "note", "aria-label": "Warnings" },
    h("strong", null, formatCount(warnings.length, "warning")),
    list,
    items.length > 5 && foldout(`${items.length - 5} more`, h("ul", null, items.slice(5))),
  );
}

function runFacts({ run }) {
  const entries = [
    ["run", run.run_id],
    ["dataset", [run.dataset?.source, run.dataset?.fingerprint].filter(Boolean).join(", ")],
    ["command", (run.provenance?.command ?? []).join(" ")],
    [
      "configurations",
      (run.configurations ?? [])
        .map((one) => `${one.name ?? "default"} ${JSON.stringify(one.options ?? {})}`)
        .join("\n"),
    ],
    ["options", JSON.stringify(run.options ?? {})],
    [
      "packages",
      Object.entries(run.provenance?.packages ?? {})
        .map(([name, version]) => `${name} ${version}`)
        .join(", "),
    ],
    ["redacted", run.redacted && JSON.stringify(run.redacted)],
    ["spent", run.spent && JSON.stringify(run.spent)],
  ];
  return h("div", { class: "facts-list" }, definitionList(entries.filter(([, value]) => value)));
}
