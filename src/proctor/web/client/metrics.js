// Metrics of a run as interval dots, and as a complete table.

import { button, h } from "./dom.js";
import {
  DASH,
  describeMissing,
  describeMetric,
  evaluatorLabel,
  formatInteger,
  formatInterval,
  formatPercent,
  formatValue,
  isNumber,
  metricLabel,
  shortenNames,
} from "./format.js";
import { chooseDomain, intervalTable } from "./plots.js";

const COSTS = [
  "latency_ms.mean",
  "latency_ms.p50",
  "latency_ms.p95",
  "tokens.mean",
  "tokens.total",
  "cost.mean",
  "cost.total",
  "judges.tokens",
  "judges.cost",
];
// A longer reason has a line of its own.
const SHORT_NOTE = 28;

function sameNumbers(a, b) {
  return a && b && a.n === b.n && (a.value === b.value || Math.abs(a.value - b.value) < 1e-9);
}

/** List the metrics of quality worth a row: [name, label, what a failure filter needs]. */
function listQuality(metrics, evaluators) {
  const table = Object.values(metrics)[0] ?? {};
  const all = Object.values(metrics);
  const rows = [["pass_rate", "pass rate", {}]];
  const differs = (a, b) => all.some((one) => one[a] && !sameNumbers(one[a], one[b]));
  if (table.strict_pass_rate && differs("strict_pass_rate", "pass_rate"))
    rows.push(["strict_pass_rate", "strict pass rate", {}, "errors counted as failures"]);
  if (table.mean_score && differs("mean_score", "pass_rate")) rows.push(["mean_score", "mean score", {}]);
  for (const evaluator of evaluators) {
    const [rate, mean] = [`${evaluator}.pass_rate`, `${evaluator}.mean`];
    if (table[rate]) rows.push([rate, evaluatorLabel(evaluator), { evaluator }, "pass rate"]);
    if (table[mean] && (!table[rate] || differs(mean, rate))) rows.push([mean, evaluatorLabel(evaluator), { evaluator }, "mean score"]);
  }
  const shown = new Set(["success_rate", ...rows.map(([name]) => name)]);
  for (const [name, metric] of Object.entries(table)) {
    const own = !evaluators.some((evaluator) => name.startsWith(`${evaluator}.`));
    if (own && !shown.has(name) && name !== "strict_pass_rate" && name !== "mean_score" && isFraction(metric))
      rows.push([name, metricLabel(name), {}, explainPower(name)]);
  }
  return rows.filter(([name]) => table[name]);
}

/** Say what pass^k and pass@k are. */
function explainPower(name) {
  const [, kind, k] = name.match(/^pass_(hat|at)_k\.(\d+)$/) ?? [];
  if (!kind) return undefined;
  return kind === "hat" ? `all of ${k} epochs pass` : `at least one of ${k} epochs passes`;
}

function isFraction(metric) {
  return (
    metric.kind === "rate" ||
    (metric.kind === "mean" && !metric.unit && isNumber(metric.value) && metric.value >= 0 && metric.value <= 1)
  );
}

/** Draw pass rates and scores of every configuration as interval dots; `open` shows the samples behind a row. */
export function renderQuality({ metrics, summary, run }, open) {
  const names = summary.configurations.filter((name) => metrics[name]);
  const baseline = run.baseline ?? null;
  const several = names.length > 1;
  const short = shortenNames(names, 28);
  const rows = listQuality(metrics, summary.evaluators).flatMap(([metricName, label, filter, note]) => {
    const reference = several && baseline ? metrics[baseline]?.[metricName]?.value : undefined;
    const group = several ? [{ heading: label, note }] : [];
    return [
      ...group,
      ...names.map((name, index) => {
        const metric = metrics[name][metricName];
        const text = several ? short[index] : label;
        const shown = h(
          "span",
          { dir: "auto" },
          open
            ? button(text, () => open({ ...filter, [`o.${name}`]: "notpassed" }), {
                class: "link plain",
                "aria-label": `${label} of ${name}: show the samples that did not pass`,
              })
            : text,
          !several && note && h("span", { class: "quiet" }, ` ${note}`),
        );
        return {
          label: shown,
          metric,
          domain: [0, 1],
          reference,
          tip: `${name}, ${label}: ${describeMetric(metric ?? {})}`,
          ...metricCells(metricName, metric),
        };
      }),
    ];
  });
  return intervalTable({
    caption: "Metrics of quality with 95% intervals",
    headings: [several ? "Configuration" : "Metric", "Value", "95% interval", "n", "Not counted"],
    rows,
    axis: { domain: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], format: (tick) => formatPercent(tick).replace(".0", "") },
  });
}

/** Return the cells of a metric: value, interval or why there is none, n, what is not counted; and a long reason. */
export function metricCells(name, metric) {
  if (!metric) return { cells: ["", "", "", ""] };
  const missing = describeMissing(metric).replace(" not counted", "");
  const reason = metric.interval ? "" : explainNoInterval(name, metric);
  const isLong = reason.length > SHORT_NOTE;
  const tip = reason.includes("cluster") ? "the results of one sample, or of samples that belong together, are one cluster" : null;
  return {
    cells: [
      h("strong", null, formatValue(metric.value, metric)),
      formatInterval(metric.interval, metric) || h("span", { class: "quiet", "data-tip": tip }, isLong ? DASH : reason),
      formatInteger(metric.n),
      h("span", { class: missing ? "missing" : "" }, missing),
    ],
    remark: isLong ? `No interval: ${reason}` : "",
  };
}

/** Draw latency, tokens and cost of every configuration as interval dots. */
export function renderCosts({ metrics, summary }) {
  const names = summary.configurations.filter((name) => metrics[name]);
  const short = shortenNames(names, 28);
  // The numbers of an evaluator called "tokens" are scores, whatever the name says.
  const isScore = (name) => summary.evaluators.some((evaluator) => name.startsWith(`${evaluator}.`));
  const rows = COSTS.filter((name) => !isScore(name)).flatMap((metricName) => {
    const label = metricLabel(metricName);
    const known = names.filter((name) => isNumber(metrics[name][metricName]?.value));
    if (!known.length) return [];
    const domain = chooseDomain(known.map((name) => metrics[name][metricName]));
    return [
      { heading: label },
      ...known.map((name) => {
        const metric = metrics[name][metricName];
        return {
          label: short[names.indexOf(name)],
          metric,
          domain,
          ticks: [0],
          tip: `${name}, ${label}: ${describeMetric(metric)}`,
          ...metricCells(metricName, metric),
        };
      }),
      { axis: { domain, ticks: domain, format: (end) => formatValue(end, metrics[known[0]][metricName]) } },
    ];
  });
  if (!rows.length) return h("p", { class: "quiet" }, "No times, tokens or costs were recorded.");
  return intervalTable({
    caption: "Latency, tokens and cost",
    headings: ["Configuration", "Value", "95% interval", "n", "Not counted"],
    rows,
  });
}

// A number without an interval says why.
function explainNoInterval(name, { n, note }) {
  if (/\.total$|^judges\./.test(name)) return "a sum, no estimate";
  if (/\.max$/.test(name)) return "a maximum, no estimate";
  return note?.replace(/: no interval$/, "").replace(/^clustered$/, "") || (n < 2 ? "fewer than 2 results" : "none");
}

/** Show every metric in a table. */
export function renderAllMetrics({ metrics, summary }) {
  const names = summary.configurations.filter((name) => metrics[name]);
  const all = [...new Set(names.flatMap((name) => Object.keys(metrics[name])))].filter((metric) =>
    names.some((name) => isNumber(metrics[name][metric]?.value)),
  );
  const cell = (name, metric) => {
    if (!metric) return h("td");
    const range = formatInterval(metric.interval, metric) || `no interval: ${explainNoInterval(name, metric)}`;
    const facts = [range, `n = ${formatInteger(metric.n)}`, describeMissing(metric)].filter(Boolean);
    facts.forEach((fact, index) => (facts[index] = index < facts.length - 1 ? `${fact},` : fact));
    return h(
      "td",
      { class: "number", "data-tip": describeMetric(metric) },
      formatValue(metric.value, metric),
      h(
        "div",
        { class: "quiet" },
        facts.slice(isNumber(metric.value) ? 0 : 1).map((fact) => [h("span", { class: "nowrap" }, fact), " "]),
      ),
    );
  };
  return h(
    "div",
    { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "All metrics" },
    h(
      "table",
      { class: "data all-metrics" },
      h("caption", { class: "visually-hidden" }, "All metrics"),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { scope: "col" }, "Metric"),
          names.map((name) => h("th", { scope: "col", class: "number", dir: "auto" }, name)),
        ),
      ),
      h(
        "tbody",
        null,
        all.map((metric) =>
          h(
            "tr",
            null,
            h("th", { scope: "row" }, metric),
            names.map((name) => cell(metric, metrics[name][metric])),
          ),
        ),
      ),
    ),
  );
}
