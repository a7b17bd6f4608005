// The list of runs: pass rates with intervals, filters, and a selection to compare.

import { makeLink, parseAddress, updateParams } from "./address.js";
import { append, button, emptyState, h, keepTogether, outcomeMark, replaceContent, select } from "./dom.js";
import {
  containsWords,
  DASH,
  describeCounts,
  describeMetric,
  describeMissing,
  formatAge,
  formatCount,
  formatInteger,
  formatInterval,
  formatSeconds,
  formatTime,
  formatValue,
  isNumber,
  shortenNames,
} from "./format.js";
import { intervalBar, sparkline } from "./plots.js";
import { source } from "./source.js";

const REFRESH = 3_000;
const MAX_REFRESH = 30_000;
// The server spends at most this share of its time on the list.
const REFRESH_SHARE = 0.05;
const PAGE_SIZE = 100;
const MAX_CONFIGURATIONS = 6;
const SORTS = [
  ["newest", "newest first"],
  ["oldest", "oldest first"],
  ["name", "name"],
  ["pass", "best pass rate"],
  ["worst", "worst pass rate"],
  ["duration", "longest"],
  ["cost", "most expensive"],
];

/** Show all runs. */
export async function renderRunsPage(address) {
  const page = new RunsPage(await source.get("runs"));
  if (source.home === "file" && page.runs.length === 1 && !address.segments.length) {
    location.replace(makeLink(["runs", page.runs[0].run_id]));
  }
  page.update(address);
  return page;
}

class RunsPage {
  title = "Runs";

  constructor({ runs }) {
    this.runs = runs;
    this.limit = PAGE_SIZE;
    this.selected = [];
    this.lead = h("div", { class: "lead" });
    this.tools = h("div", { class: "filters", role: "toolbar", "aria-label": "Filters" });
    this.list = h("div");
    this.bar = h("div", { class: "selection", role: "status", hidden: true });
    this.element = h("div", { class: "page" }, this.lead, this.tools, this.list, this.bar);
    this.keys = { "/": () => this.tools.querySelector("input")?.focus() };
    this.#schedule();
    if (source.home === "server") document.addEventListener("visibilitychange", this.#refreshIfVisible);
  }

  destroy() {
    this.destroyed = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.#refreshIfVisible);
  }

  // A run may start at any time. The list of a large history, which takes longer to read, is read less often.
  #schedule(spent = 0) {
    if (source.home === "file" || this.destroyed) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(this.#refreshIfVisible, Math.min(MAX_REFRESH, Math.max(REFRESH, spent / REFRESH_SHARE)));
  }

  #refreshIfVisible = async () => {
    if (document.hidden) return;
    clearTimeout(this.timer);
    const start = performance.now();
    try {
      const { runs } = await source.get("runs");
      if (this.destroyed) return;
      this.runs = runs;
      this.update(parseAddress());
    } catch {
      // The next attempt follows.
    }
    this.#schedule(performance.now() - start);
  };

  update({ params }) {
    this.params = params;
    const text = JSON.stringify([[...params], this.runs, this.selected, this.limit]);
    if (text === this.shown) return;
    this.shown = text;
    if (!this.runs.length) {
      const command = h("pre", { class: "command" }, "proctor demo");
      const text = "Run the example, or your own evaluation, and this page shows the results:";
      replaceContent(this.list, emptyState("There are no runs yet.", text, command, "h1"));
      return;
    }
    const runs = this.#filter(params);
    replaceContent(this.lead, h("h1", null, keepTogether(describeNewest(this.runs))));
    this.#renderTools(runs.length);
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    replaceContent(
      this.list,
      runs.length
        ? this.#renderTable(runs)
        : emptyState(
            "No run matches these filters.",
            "",
            button(`Show all ${formatInteger(this.runs.length)} runs`, () =>
              updateParams({ text: "", name: "", tag: "", status: "" }),
            ),
          ),
    );
    if (focused) this.list.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    this.#renderSelection();
  }

  #filter(params) {
    const [text, name, tag, status] = ["text", "name", "tag", "status"].map((key) => params.get(key) ?? "");
    const matches = (run) =>
      (!name || run.name === name) &&
      (!status || run.status === status) &&
      (!tag || Object.entries(run.tags).some(([key, value]) => `${key}=${value}` === tag)) &&
      containsWords(
        JSON.stringify([
          run.run_id,
          run.name,
          run.tags,
          run.dataset.name,
          run.target,
          run.configurations,
          run.code,
          run.evaluators,
        ]),
        text,
      );
    return sortRuns(this.runs.filter(matches), params.get("sort") ?? "newest");
  }

  #renderTools(count) {
    const { params } = this;
    const distinct = (values) => [...new Set(values)].sort();
    const names = distinct(this.runs.map((run) => run.name));
    const tags = distinct(
      this.runs.flatMap((run) => Object.entries(run.tags).map(([key, value]) => `${key}=${value}`)),
    );
    const statuses = distinct(this.runs.map((run) => run.status));
    const old = this.tools.querySelector("input");
    const search =
      old ??
      h("input", {
        type: "search",
        placeholder: "Search runs  /",
        "aria-label": "Search runs",
        oninput: (event) => updateParams({ text: event.target.value.trim() }, { replace: true }),
      });
    if (document.activeElement !== search) search.value = params.get("text") ?? "";
    const shown =
      count === this.runs.length
        ? formatCount(count, "run")
        : `${formatInteger(count)} of ${formatCount(this.runs.length, "run")}`;
    const key = JSON.stringify([names, tags, statuses, ["name", "tag", "status", "sort"].map((each) => params.get(each))]);
    // An open list of choices would close if it were drawn again.
    if (old && (key === this.toolsKey || document.activeElement?.closest(".filters select"))) {
      this.tools.lastElementChild.textContent = shown;
      return;
    }
    this.toolsKey = key;
    const rest = [
      names.length > 1 &&
        select("Name", [["", "all names"], ...names], params.get("name") ?? "", (name) => updateParams({ name })),
      tags.length > 0 &&
        select("Tag", [["", "all tags"], ...tags], params.get("tag") ?? "", (tag) => updateParams({ tag })),
      statuses.length > 1 &&
        select("Status", [["", "any status"], ...statuses], params.get("status") ?? "", (status) =>
          updateParams({ status }),
        ),
      select("Sort", SORTS, params.get("sort") ?? "newest", (sort) =>
        updateParams({ sort: sort === "newest" ? "" : sort }),
      ),
      h("span", { class: "quiet" }, shown),
    ];
    for (const child of [...this.tools.children]) if (child !== search) child.remove();
    if (!old) this.tools.append(search);
    append(this.tools, rest);
  }

  #renderTable(runs) {
    const hasCost = runs.some((run) => hasMetric(run, "cost"));
    const hasTokens = runs.some((run) => hasMetric(run, "tokens"));
    const hasCode = runs.some((run) => run.code);
    const columns = { hasCost, hasTokens, hasCode };
    const head = [
      ["Run"],
      ["Started"],
      ["Dataset", "", "dataset"],
      ["Configuration"],
      ["Pass rate", "share of results with a verdict that passed, with its 95% interval"],
      ["Score", "mean of the scores, from 0 to 1", "number"],
      hasTokens && ["Tokens", "", "number tokens"],
      hasCost && ["Cost", "", "number cost"],
      ["Earlier", "pass rate of the last runs of this name", "spark"],
      ["Time", "duration of the run", "number"],
      hasCode && ["Code", "version of the code", "code"],
    ].filter(Boolean);
    const table = h(
      "table",
      { class: "runs" },
      h("caption", { class: "visually-hidden" }, "Runs, one row per configuration"),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          head.map(([text, tip, kind]) => h("th", { scope: "col", class: kind, "data-tip": tip || null }, text)),
        ),
      ),
      runs.slice(0, this.limit).map((run) => this.#renderRun(run, columns)),
    );
    const more =
      runs.length > this.limit &&
      button(`Show ${formatInteger(Math.min(PAGE_SIZE, runs.length - this.limit))} more`, () => {
        this.limit += PAGE_SIZE;
        this.update(parseAddress());
      });
    return [table, more];
  }

  #renderRun(run, columns) {
    const names = run.configurations.slice(0, MAX_CONFIGURATIONS);
    const short = shortenNames(run.configurations, 18);
    const rest = run.configurations.length - names.length;
    const span = names.length + (rest ? 1 : 0);
    const shared = { rowspan: span };
    const link = makeLink(["runs", run.run_id]);
    const tags = Object.entries(run.tags).map(([key, value]) =>
      button(`${key}=${value}`, () => updateParams({ tag: `${key}=${value}` }), {
        class: "tag",
        "aria-label": `Only runs with ${key}=${value}`,
      }),
    );
    const first = h(
      "td",
      { ...shared, class: "run-name" },
      h("a", { href: link, class: "strong", dir: "auto", "data-key": run.run_id }, run.name),
      " ",
      runStatus(run),
      run.rescored_from &&
        h("span", { class: "tag static", "data-tip": `the outputs of ${run.rescored_from}, scored again` }, "rescored"),
      run.baselines?.map((name) => h("span", { class: "tag static" }, `baseline ${name}`)),
      h("div", { class: "run-tags" }, tags),
    );
    const before = [
      first,
      h(
        "td",
        { ...shared, class: "nowrap", "data-tip": formatTime(run.started_at), "data-label": "Started" },
        formatAge(run.started_at),
      ),
      h(
        "td",
        { ...shared, class: "dataset", "data-label": "Dataset", "data-tip": run.dataset.name },
        h("bdi", null, run.dataset.name),
        isNumber(run.dataset.length) && h("div", { class: "quiet" }, formatCount(run.dataset.length, "sample")),
      ),
    ];
    const after = [
      h("td", { ...shared, class: "number nowrap", "data-label": "Time", "data-tip": explainTime(run) }, formatTimeSpent(run)),
      columns.hasCode && h("td", { ...shared, class: "code", "data-label": "Code", "data-tip": run.code }, run.code),
    ];
    const rows = names.map((name, index) =>
      h("tr", null, index === 0 && before, this.#renderConfiguration(run, name, columns, short[index]), index === 0 && after),
    );
    if (rest)
      rows.push(
        h(
          "tr",
          null,
          h(
            "td",
            { colspan: 4 + Number(columns.hasCost) + Number(columns.hasTokens) },
            h("a", { href: link, class: "quiet" }, `${formatCount(rest, "more configuration")}`),
          ),
        ),
      );
    return h("tbody", null, rows);
  }

  #renderConfiguration(run, name, columns, label) {
    const metrics = run.metrics[name] ?? {};
    const rate = metrics.pass_rate;
    const side = `${run.run_id}@${name}`;
    const box = h("input", {
      type: "checkbox",
      checked: this.selected.includes(side),
      "data-key": side,
      "aria-label": `Compare ${name} of ${run.name}, ${formatTime(run.started_at)}`,
      onchange: (event) => this.#toggle(side, event.target.checked),
    });
    const ofJudges = (kind) => (run.rescored_from && kind !== "score" ? "of the judges; the outputs are those of another run" : "");
    const describeCell = (metric, kind) =>
      [metric && describeMetric(metric), ofJudges(kind)].filter(Boolean).join("; ") || null;
    const numeric = (metric, kind) =>
      h(
        "td",
        { class: `number ${kind}`, "data-tip": describeCell(metric, kind) },
        isNumber(metric?.value)
          ? formatValue(metric.value, {
              ...metric,
              unit: metric.unit === "tokens" ? "" : metric.unit,
              kind: metric.unit === "tokens" ? "count" : metric.kind,
            })
          : ofJudges(kind) && DASH,
        kind === "score" && isNumber(metric?.value) && h("span", { class: "quiet" }, ` n = ${formatInteger(metric.n)}`),
      );
    return [
      h(
        "td",
        { class: "configuration", "data-tip": label === name ? null : name },
        source.home === "server" ? h("label", null, box, " ", h("bdi", null, label)) : h("bdi", null, label),
      ),
      h("td", { class: "rate", "data-tip": rate ? describeMetric(rate) : null }, renderRate(rate, run, name)),
      numeric(metrics.mean_score, "score"),
      columns.hasTokens && numeric(metrics.tokens, "tokens"),
      columns.hasCost && numeric(metrics.cost, "cost"),
      h("td", { class: "spark" }, this.#sparkline(run, name)),
    ];
  }

  #sparkline(run, name) {
    const earlier = this.runs
      .filter(
        (other) =>
          other.name === run.name &&
          other.started_at <= run.started_at &&
          (!other.rescored_from || other === run) &&
          isNumber(other.metrics[name]?.pass_rate?.value),
      )
      .slice(0, 12)
      .reverse();
    const values = earlier.map((other) => other.metrics[name].pass_rate.value);
    const label = `pass rate of ${name} in the last ${formatCount(values.length, "run")}: ${values.map((value) => formatValue(value, { kind: "rate" })).join(", ")}`;
    return sparkline(values, label);
  }

  #toggle(side, on) {
    this.selected = on ? [...this.selected, side].slice(-2) : this.selected.filter((other) => other !== side);
    this.update(parseAddress());
  }

  #renderSelection() {
    const count = this.selected.length;
    this.bar.hidden = count === 0;
    if (!count) return;
    const order = (side) => this.runs.findIndex((run) => side.startsWith(`${run.run_id}@`));
    const [b, a] =
      order(this.selected[0]) < order(this.selected[1] ?? "") ? [...this.selected].reverse() : this.selected;
    replaceContent(
      this.bar,
      count === 1
        ? "Choose a second configuration to compare."
        : h("a", { class: "action", href: makeLink(["compare"], { a, b }) }, "Compare the two selected configurations"),
      " ",
      button(
        "Clear",
        () => {
          this.selected = [];
          this.update(parseAddress());
        },
        { class: "link" },
      ),
    );
  }
}

function hasMetric(run, name) {
  return Object.values(run.metrics).some((metrics) => isNumber(metrics[name]?.value));
}

/** Write how long a run took, or takes so far; a dash if nobody knows. */
function formatTimeSpent(run) {
  if (run.duration_seconds > 0) return formatSeconds(run.duration_seconds);
  if (run.status !== "running") return DASH;
  return `${formatSeconds(Math.max(0, (Date.now() - new Date(run.started_at).getTime()) / 1000))} so far`;
}

function explainTime({ duration_seconds: seconds, status }) {
  if (seconds > 0) return null;
  return status === "running" ? "the run is in progress" : `the run is ${status}, so its duration is unknown`;
}

function renderRate(rate, run, name) {
  const soFar = !isNumber(rate?.value) && run.so_far?.[name];
  if (soFar) rate = soFar;
  if (!isNumber(rate?.value)) return h("span", { class: "quiet" }, describeCounts(run.counts));
  return h(
    "div",
    { class: "rate-cell" },
    intervalBar({ metric: rate, domain: [0, 1], ticks: [0, 0.5, 1] }),
    h(
      "span",
      { class: "rate-text" },
      h("strong", null, formatValue(rate.value, rate)),
      h(
        "span",
        { class: "quiet" },
        ` ${rate.interval ? formatInterval(rate.interval, rate) : "no interval"} of ${formatInteger(rate.n)}${soFar ? " so far" : ""}`,
      ),
      describeMissing(rate) && h("div", { class: "missing" }, describeMissing(rate)),
    ),
  );
}

/** Show the status of a run in words; nothing for a completed one. */
export function runStatus(run) {
  if (run.status === "completed") return null;
  const planned = isNumber(run.planned)
    ? `${formatInteger(run.finished)} of ${formatCount(run.planned, "result")}`
    : formatCount(run.finished, "result");
  const share = run.planned
    ? h("progress", { value: run.finished, max: run.planned, "aria-label": "finished results" })
    : null;
  return h(
    "span",
    { class: `status ${run.status}` },
    run.status === "failed" || run.status === "interrupted" ? outcomeMark("failed", { label: false }) : null,
    ` ${run.status}, ${planned} `,
    run.status === "running" ? share : null,
  );
}

function sortRuns(runs, order) {
  const rate = (run) => Math.max(-1, ...Object.values(run.metrics).map((metrics) => metrics.pass_rate?.value ?? -1));
  const cost = (run) => Object.values(run.metrics).reduce((sum, metrics) => sum + (metrics.cost?.value ?? 0), 0);
  const compare =
    {
      oldest: (a, b) => a.started_at.localeCompare(b.started_at),
      name: (a, b) => a.name.localeCompare(b.name) || b.started_at.localeCompare(a.started_at),
      pass: (a, b) => rate(b) - rate(a),
      worst: (a, b) => rate(a) - rate(b),
      duration: (a, b) => b.duration_seconds - a.duration_seconds,
      cost: (a, b) => cost(b) - cost(a),
    }[order] ?? ((a, b) => b.started_at.localeCompare(a.started_at));
  return [...runs].sort(compare);
}

function describeNewest(runs) {
  const active = runs.filter((run) => run.status === "running");
  const newest = runs.find(
    (run) =>
      run.status !== "running" && run.configurations.some((name) => isNumber(run.metrics[name]?.pass_rate?.value)),
  );
  const parts = [
    `${formatCount(runs.length, "run")}${active.length ? `, ${formatInteger(active.length)} in progress` : ""}.`,
  ];
  if (newest) {
    const best = newest.configurations
      .filter((name) => isNumber(newest.metrics[name]?.pass_rate?.value))
      .sort((a, b) => newest.metrics[b].pass_rate.value - newest.metrics[a].pass_rate.value)[0];
    const rate = newest.metrics[best].pass_rate;
    const interval = rate.interval ? ` (95% ${formatInterval(rate.interval, rate)})` : "";
    parts.push(
      ` The newest result is ${newest.name}, ${formatAge(newest.started_at)}: ${newest.configurations.length > 1 ? `${best} is highest, ` : ""}${formatValue(rate.value, rate)} of ${formatInteger(rate.n)} passed${interval}.`,
    );
  }
  return parts.join("");
}
