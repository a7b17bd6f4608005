// A metric over runs of one name, with intervals and marks where something changed.

import { makeLink, navigate, updateParams } from "./address.js";
import { emptyState, h, keepTogether, replaceContent, select } from "./dom.js";
import {
  DASH,
  formatCount,
  formatInteger,
  formatInterval,
  formatTime,
  formatValue,
  isNumber,
  metricLabel,
} from "./format.js";
import { legend, trendPlot } from "./plots.js";
import { source } from "./source.js";

const MAX_TRIED = 10;

/** Show a metric over time. */
export async function renderTrendsPage(address) {
  const content = h("div", { class: "page" });
  const page = {
    title: "Trends",
    trail: [{ text: "trends" }],
    element: content,
    update: async ({ params }) => {
      const name = params.get("name") ?? "";
      const metric = params.get("metric") ?? "pass_rate";
      const rescored = params.has("rescored") ? "1" : "";
      let payload = await source.get("trends", { name, metric, rescored });
      const { names } = payload;
      const run = params.get("run") ?? "";
      let shown = name || names[0] || "";
      // Without a choice, the newest name that has a value.
      for (const other of !name && names.length > 1 ? names.slice(0, MAX_TRIED) : []) {
        const next = await source.get("trends", { name: other, metric, rescored });
        if (other !== names[0] && !next.points.length) continue;
        [payload, shown] = [next, other];
        if (next.points.length) break;
      }
      return showTrend(content, payload, shown, names, run);
    },
  };
  await page.update(address);
  return page;
}

function showTrend(content, payload, name, names, run) {
  const metric = {
    kind: payload.kind ?? payload.points[0]?.kind ?? "number",
    unit: payload.unit ?? payload.points[0]?.unit ?? "",
  };
  const points = payload.points.map((point) => ({
    ...point,
    time: point.date ?? point.started_at,
    changes: point.changes ?? [],
    isSelected: point.run_id === run,
    note: point.unfinished || (point.rescored_from ? `rescored from ${point.rescored_from}` : ""),
  }));
  const series = [...Map.groupBy(points, (point) => point.configuration)].map(([label, list]) => ({
    name: label,
    points: list,
  }));
  const tools = h(
    "div",
    { class: "filters" },
    select("Name", names, name, (value) => updateParams({ name: value, run: "" })),
    select(
      "Metric",
      payload.metrics.map((key) => [key, metricLabel(key)]),
      payload.metric,
      (value) => updateParams({ metric: value }),
    ),
    payload.rescored > 0 &&
      h(
        "label",
        { "data-tip": "A rescored run has the outputs of another run, so it is no new measurement." },
        h("input", {
          type: "checkbox",
          checked: points.some((point) => point.rescored_from),
          onchange: (event) => updateParams({ rescored: event.target.checked }),
        }),
        ` with ${formatCount(payload.rescored, "rescored run")}`,
      ),
  );
  if (!points.length) {
    replaceContent(
      content,
      h(
        "div",
        { class: "lead" },
        h(
          "h1",
          null,
          name ? `No run of ${name} has a value for ${metricLabel(payload.metric)}.` : "There are no runs yet.",
        ),
      ),
      tools,
      !names.length && emptyState("An empty history.", "", h("pre", { class: "command" }, "proctor demo")),
    );
    return;
  }
  const open = (point) => navigate(makeLink(["runs", point.run_id]));
  replaceContent(
    content,
    h("div", { class: "lead" }, h("h1", null, keepTogether(describeTrend(series, metric, payload.metric, name)))),
    tools,
    h(
      "section",
      { "aria-label": "Plot" },
      legend(series.map((one) => one.name)),
      trendPlot({ caption: `${metricLabel(payload.metric)} of ${name} over time`, series, metric, onPoint: open }),
      h(
        "p",
        { class: "quiet" },
        `${describeIntervals(series)}${describeMarks(points)}`,
      ),
    ),
    renderTable(points, metric),
  );
}

/** Say how the plot shows intervals: a band over several runs, whiskers at a single one. */
function describeIntervals(series) {
  const counts = series.map((one) => one.points.filter((point) => isNumber(point.value) && point.interval).length);
  const parts = [
    counts.some((count) => count > 1) && "The band is the 95% interval.",
    counts.includes(1) && "The whiskers of a single point are its 95% interval.",
  ].filter(Boolean);
  return parts.join(" ") || "There are no intervals.";
}

/** Explain the marks that the plot has. */
function describeMarks(points) {
  const marks = [
    [points.some((point) => point.isSelected), " A ring marks the run you came from."],
    [points.some((point) => point.changes.length), " ◆ marks runs where something changed."],
    [points.some((point) => point.note), " Hollow points are runs that are not complete, or rescored."],
  ];
  return marks.map(([isShown, text]) => (isShown ? text : "")).join("");
}

function describePoint(point, metric) {
  const interval = point.interval ? `95% ${formatInterval(point.interval, metric)}` : "no interval";
  return `${formatValue(point.value, metric)} (${interval}, n = ${formatInteger(point.n)})`;
}

function describeTrend(series, metric, metricName, name) {
  const isSingleRun = new Set(series.flatMap((one) => one.points.map((point) => point.run_id))).size === 1;
  if (isSingleRun && series.length > 1 && series.length <= 3)
    return `In the only run of ${name}, ${metricLabel(metricName)}: ${series.map(({ name: label, points: [point] }) => `${label} ${describePoint(point, metric)}`).join("; ")}.`;
  const [longest] = [...series].sort((a, b) => b.points.length - a.points.length);
  const valued = longest.points.filter((point) => isNumber(point.value));
  const measured = valued.filter((point) => !point.rescored_from);
  const known = measured.length ? measured : valued;
  const [before, last] = [known.at(-2), known.at(-1)];
  const others = series.length - 1;
  const whose = series.length > 1 ? `${name}, ${longest.name}` : name;
  const rest = others ? ` ${formatCount(others, "other configuration")} below.` : "";
  const head = `${metricLabel(metricName)} of ${whose}: ${describePoint(last, metric)} in ${known.length === 1 ? "the only run" : `the newest of ${formatInteger(known.length)} runs`}`;
  const text = `${head}${before ? `, ${describePoint(before, metric)} in the run before` : ""}.${rest}`;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function renderTable(points, metric) {
  const rows = [...points]
    .reverse()
    .slice(0, 200)
    .map((point) =>
      h(
        "tr",
        { class: point.isSelected ? "selected" : null, "aria-current": point.isSelected ? "true" : null },
        h("td", { class: "nowrap" }, h("a", { href: makeLink(["runs", point.run_id]) }, formatTime(point.time)), h("span", { class: "quiet" }, ` ${point.run_id.split("-").at(-1)}`)),
        h("td", { dir: "auto" }, point.configuration),
        h("td", { class: "number" }, h("strong", null, formatValue(point.value, metric))),
        h("td", { class: "number", "data-label": "95% interval" }, formatInterval(point.interval, metric) || DASH),
        h("td", { class: "number", "data-label": "n" }, formatInteger(point.n)),
        h(
          "td",
          { class: "remarks" },
          [point.changes.length ? `${point.changes.join(", ")} changed` : "", point.note].filter(Boolean).join("; "),
        ),
      ),
    );
  return h(
    "div",
    { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Table of runs" },
    h(
      "table",
      { class: "data stacked" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["Run", "Configuration", "Value", "95% interval", "n", "Remarks"].map((text, index) =>
            h("th", { scope: "col", class: index > 1 && index < 5 ? "number" : null }, text),
          ),
        ),
      ),
      h("tbody", null, rows),
    ),
  );
}
