// Small SVG plots with axes, units and tooltips. Each has a table with the same numbers for screen readers.

import { append, drawResponsive, h, svg } from "./dom.js";
import {
  DASH,
  formatInteger,
  formatInterval,
  formatPercent,
  formatPlain,
  formatTime,
  formatValue,
  isNumber,
} from "./format.js";

/** Return round numbers that divide a range. */
export function niceTicks(low, high, count = 5) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step)
    ticks.push(Number(tick.toPrecision(12)));
  return ticks;
}

/** Make a table for screen readers, or inside a foldout. */
export function dataTable(caption, headings, rows, { hidden = true } = {}) {
  const table = h(
    "table",
    { class: "data" },
    h("caption", null, caption),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        headings.map((text) => h("th", { scope: "col" }, text)),
      ),
    ),
    h(
      "tbody",
      null,
      rows.map((cells) =>
        h(
          "tr",
          null,
          cells.map((cell) => h("td", null, cell)),
        ),
      ),
    ),
  );
  return hidden ? h("div", { class: "visually-hidden" }, table) : table;
}

/** Return the share of a domain as a percentage for SVG attributes. */
function percentOf(domain) {
  const [low, high] = domain;
  return (value) => `${(100 * Math.min(1.02, Math.max(-0.02, (value - low) / (high - low || 1)))).toFixed(3)}%`;
}

/** Choose a domain that covers values and intervals; rates and scores use 0 to 1. */
export function chooseDomain(metrics) {
  const numbers = metrics.flatMap((metric) => [metric?.value, ...(metric?.interval ?? [])]).filter(isNumber);
  if (!numbers.length) return [0, 1];
  const fraction = metrics.every((metric) => metric?.kind === "rate" || (metric?.kind === "mean" && !metric.unit));
  if (fraction && numbers.every((number) => number >= 0 && number <= 1)) return [0, 1];
  const ticks = niceTicks(Math.min(0, ...numbers), Math.max(...numbers) || 1, 4);
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1;
  return [
    Math.min(0, ...numbers),
    Math.max(ticks.at(-1), Math.max(...numbers) > ticks.at(-1) ? ticks.at(-1) + step : 0),
  ];
}

/**
 * Interval dots: a table with one row per metric; each row has a dot, its 95% interval, and the numbers in words.
 * Rows: {label, href, metric, domain, reference, band, outcome, tip, heading, remark}, or {axis} for the numbers of
 * the rows above it.
 */
export function intervalTable({ caption, headings, rows, axis }) {
  const drawRow = (row) => {
    if (row.axis) return axisRow(row.axis, headings);
    return row.heading ? headingRow(row, headings.length + 1) : intervalRow(row, headings);
  };
  const body = rows.map(drawRow);
  const foot = axis && h("tfoot", null, axisRow(axis, headings));
  const table = h(
    "table",
    { class: "intervals" },
    h("caption", { class: "visually-hidden" }, caption),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("th", { scope: "col" }, headings[0]),
        h("th", { scope: "col", class: "plot-cell" }, h("span", { class: "visually-hidden" }, "Plot")),
        headings.slice(1).map((text) => h("th", { scope: "col", class: "number" }, text)),
      ),
    ),
    h("tbody", null, body),
    foot,
  );
  return h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": caption }, table);
}

function axisRow(axis, headings) {
  return h(
    "tr",
    { class: "axis-row" },
    h("td"),
    h("td", { class: "plot-cell" }, axisLine(axis)),
    headings.slice(1).map(() => h("td", { class: "number" })),
  );
}

function headingRow({ heading, note }, columns) {
  return h(
    "tr",
    { class: "group" },
    h("th", { colspan: columns, scope: "colgroup" }, heading, note && h("span", { class: "quiet" }, ` ${note}`)),
  );
}

function intervalRow({ label, href, metric, domain, reference, band, tip, cells, shape, ticks, remark }, headings) {
  const name = href ? h("a", { href, dir: "auto" }, label) : h("span", { dir: "auto" }, label);
  const row = h(
    "tr",
    null,
    h("th", { scope: "row" }, name),
    h("td", { class: "plot-cell", "data-tip": tip }, intervalBar({ metric, domain, reference, band, shape, ticks })),
    cells.map((cell, index) => h("td", { class: "number", "data-label": headings[index + 1] }, cell)),
  );
  // A sentence in a cell would push the other columns out of the page.
  return remark ? [row, h("tr", { class: "remark" }, h("td", { colspan: headings.length + 1, dir: "auto" }, remark))] : row;
}

/** Draw one dot with its interval. */
export function intervalBar({ metric, domain, reference, band, shape = "passed", ticks = null }) {
  const x = percentOf(domain);
  const marks = [];
  for (const tick of ticks ?? niceTicks(...domain, 4))
    marks.push(svg("line", { x1: x(tick), x2: x(tick), y1: 0, y2: 22, class: "gridline" }));
  if (band)
    marks.push(
      svg("rect", {
        x: x(band[0]),
        width: `${parseFloat(x(band[1])) - parseFloat(x(band[0]))}%`,
        y: 2,
        height: 18,
        class: "band",
      }),
    );
  if (isNumber(reference))
    marks.push(svg("line", { x1: x(reference), x2: x(reference), y1: 0, y2: 22, class: "reference" }));
  if (metric?.interval) {
    const [low, high] = metric.interval;
    marks.push(svg("line", { x1: x(low), x2: x(high), y1: 11, y2: 11, class: `interval ${shape}` }));
    for (const end of [low, high])
      marks.push(svg("line", { x1: x(end), x2: x(end), y1: 7, y2: 15, class: `interval-end ${shape}` }));
  }
  if (isNumber(metric?.value)) marks.push(dot(x(metric.value), shape));
  return svg("svg", { class: "interval-bar", height: 22, width: "100%", "aria-hidden": "true" }, marks);
}

function dot(x, shape) {
  if (shape !== "failed") return svg("circle", { cx: x, cy: 11, r: 4.5, class: `dot ${shape}` });
  return svg(
    "svg",
    { x, y: 0, overflow: "visible" },
    svg("path", { d: "M0 5.5 L5.5 15.5 L-5.5 15.5 Z", class: "dot failed" }),
  );
}

/** Draw the numbers of an axis. */
export function axisLine({ domain, format, ticks }) {
  const x = percentOf(domain);
  const list = ticks ?? niceTicks(...domain, 4);
  const labels = list.map((tick, index) =>
    svg(
      "text",
      {
        x: x(tick),
        y: 12,
        class: list.length > 3 && index % 2 ? "tick odd" : "tick",
        "text-anchor": index === 0 ? "start" : index === list.length - 1 ? "end" : "middle",
      },
      format(tick),
    ),
  );
  return svg("svg", { class: "axis", height: 16, width: "100%", "aria-hidden": "true" }, labels);
}

/** A histogram for one series: bars are buttons that open the samples behind them. */
export function histogram({
  caption,
  edges,
  counts,
  threshold,
  format = formatPlain,
  logarithmic = false,
  onBar,
  height = 72,
}) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (!total || edges.length < 2) return h("p", { class: "quiet plot-empty" }, "no values");
  [edges, counts] = mergeBins(edges, counts, format);
  const most = Math.max(...counts);
  const scale = logarithmic ? Math.log10 : (value) => value;
  const [low, high] = [scale(edges[0]), scale(edges.at(-1))];
  const x = (value) => (high > low ? (100 * (scale(value) - low)) / (high - low) : 0);
  const bars = counts.map((count, index) => {
    const [start, end] = [edges[index], edges[index + 1]];
    const width = high > low ? x(end) - x(start) : 100;
    const size = count ? Math.max(2, (count / most) * (height - 4)) : 0;
    const side = isNumber(threshold) ? (start >= threshold - 1e-9 ? "passed" : "failed") : "plain";
    const text = `${describeBin(start, end, format)}: ${formatInteger(count)} of ${formatInteger(total)}`;
    const bar = svg(
      "g",
      {
        class: `bar ${side}${onBar && count ? " clickable" : ""}`,
        "data-tip": text,
        ...(onBar &&
          count && {
            role: "button",
            tabindex: "-1",
            "aria-label": text,
            onclick: () => onBar(start, end, index === counts.length - 1),
          }),
      },
      svg("rect", { class: "hit", x: `${x(start)}%`, y: 0, width: `${width}%`, height }),
      svg("rect", {
        class: "fill",
        x: `${x(start) + width * 0.06}%`,
        y: height - size,
        width: `${width * 0.88}%`,
        height: size,
      }),
    );
    return bar;
  });
  const line =
    isNumber(threshold) &&
    svg("line", { class: "threshold", x1: `${x(threshold)}%`, x2: `${x(threshold)}%`, y1: 0, y2: height });
  const ends = svg(
    "svg",
    { class: "axis", width: "100%", height: 16, "aria-hidden": "true" },
    svg("text", { x: 0, y: 12, class: "tick" }, format(edges[0])),
    isNumber(threshold) &&
      svg("text", { x: `${x(threshold)}%`, y: 12, class: "tick", "text-anchor": "middle" }, format(threshold)),
    logarithmic && svg("text", { x: "50%", y: 12, class: "tick", "text-anchor": "middle" }, "logarithmic scale"),
    svg("text", { x: "100%", y: 12, class: "tick", "text-anchor": "end" }, format(edges.at(-1))),
  );
  const rows = counts
    .map((count, index) => [describeBin(edges[index], edges[index + 1], format), formatInteger(count)])
    .filter((_, index) => counts[index]);
  return h(
    "figure",
    { class: "histogram" },
    addArrowKeys(
      svg(
        "svg",
        {
          class: "bars",
          width: "100%",
          height,
          ...(onBar ? { role: "group", "aria-label": `${caption}; arrow keys move` } : { "aria-hidden": "true" }),
        },
        bars,
        line || null,
        svg("line", { class: "baseline", x1: 0, x2: "100%", y1: height - 0.5, y2: height - 0.5 }),
      ),
    ),
    ends,
    dataTable(caption, ["Range", "Results"], rows),
  );
}

function describeBin(start, end, format) {
  return format(start) === format(end) ? format(start) : `${format(start)} to ${format(end)}`;
}

/** Merge the bins whose edges read the same, as those of times that differ by less than the digits that are shown. */
function mergeBins(edges, counts, format) {
  const [starts, sums] = [[edges[0]], [0]];
  counts.forEach((count, index) => {
    sums[sums.length - 1] += count;
    const isLast = index === counts.length - 1;
    if (!isLast && format(edges[index + 1]) !== format(starts.at(-1)) && format(edges[index + 1]) !== format(edges.at(-1))) {
      starts.push(edges[index + 1]);
      sums.push(0);
    }
  });
  return [[...starts, edges.at(-1)], sums];
}

/** Make the marks of a plot one stop of the Tab key: arrow keys move between its buttons, Enter and Space press. */
function addArrowKeys(image) {
  const marks = [...image.querySelectorAll("[role=button]")];
  marks[0]?.setAttribute("tabindex", "0");
  image.addEventListener("keydown", (event) => {
    const index = marks.indexOf(event.target);
    if (index < 0) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const next = marks[Math.min(marks.length - 1, Math.max(0, index + step))];
      marks[index].setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      marks[index].dispatchEvent(new MouseEvent("click", { bubbles: true }));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return image;
}

/** A 2 × 2 table of passes; `a` is the new side, `b` the old one. Every cell is a button that opens its samples. */
export function flipTable({ counts, a, b, onCell, selected }) {
  const total = counts.both + counts.lost + counts.won + counts.neither || 1;
  const cell = (key, mark, text) => {
    const share = counts[key] / total;
    const name = { both: "both pass", lost: "lost", won: "won", neither: "neither" }[key];
    const label = `${formatInteger(counts[key])} ${name}: ${text} (${formatPercent(share)} of ${formatInteger(total)})`;
    const area = h("span", { class: `flip-area ${mark}`, "aria-hidden": "true" });
    // The side of the square, so that areas are proportional.
    area.style.setProperty("--share", Math.sqrt(share));
    return h(
      "td",
      null,
      h(
        "button",
        {
          type: "button",
          class: `flip-cell ${key}`,
          "aria-label": label,
          "aria-pressed": String(selected === key),
          "data-tip": label,
          disabled: counts[key] === 0,
          onclick: () => onCell(key),
        },
        h("span", { class: "flip-square" }, area),
        h("span", { class: "flip-count" }, formatInteger(counts[key])),
        h("span", { class: "flip-name" }, name),
      ),
    );
  };
  return h(
    "table",
    { class: "flips" },
    h("caption", { class: "visually-hidden" }, `Samples that pass in ${b} and in ${a}`),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("td"),
        h("th", { scope: "col" }, h("bdi", null, a), " passes"),
        h("th", { scope: "col" }, h("bdi", null, a), " does not"),
      ),
    ),
    h(
      "tbody",
      null,
      h(
        "tr",
        null,
        h("th", { scope: "row" }, h("bdi", null, b), " passes"),
        cell("both", "passed", "pass in both"),
        cell("lost", "failed", `pass in ${b} only`),
      ),
      h(
        "tr",
        null,
        h("th", { scope: "row" }, h("bdi", null, b), " does not"),
        cell("won", "passed", `pass in ${a} only`),
        cell("neither", "neutral", "pass in neither"),
      ),
    ),
  );
}

/** A line of recent values without axes; the text of the last value stands next to it. */
export function sparkline(values, label) {
  const known = values.filter(isNumber);
  if (known.length < 2) return h("span", { class: "quiet" }, "");
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const y = (value) => (high > low ? 16 - (14 * (value - low)) / (high - low) : 9);
  const points = values
    .map((value, index) =>
      isNumber(value) ? `${(2 + (68 * index) / (values.length - 1)).toFixed(1)},${y(value).toFixed(1)}` : "",
    )
    .filter(Boolean);
  const last = points.at(-1).split(",");
  return svg(
    "svg",
    { class: "sparkline", width: 72, height: 18, role: "img", "aria-label": label, "data-tip": label },
    svg("polyline", { points: points.join(" ") }),
    svg("circle", { cx: last[0], cy: last[1], r: 2 }),
  );
}

const TREND_HEIGHT = 280;
const MARGIN = { top: 26, right: 16, bottom: 28, left: 56 };

/** A metric over runs: a line with an interval band per series, marks where something changed. */
export function trendPlot({ caption, series, metric, onPoint }) {
  const points = series.flatMap(({ name, points: list }) => list.map((point) => ({ ...point, series: name })));
  const holder = h("div", { class: "trend" });
  drawResponsive(holder, (width) => drawTrend(width, series, points, metric, onPoint));
  const rows = points.map((point) => [
    formatTime(point.time),
    point.series,
    formatValue(point.value, metric),
    formatInterval(point.interval, metric) || DASH,
    formatInteger(point.n),
    point.changes.join(", "),
  ]);
  return h(
    "figure",
    null,
    holder,
    dataTable(caption, ["Time", "Configuration", "Value", "95% interval", "n", "Changed"], rows),
  );
}

function drawTrend(width, series, points, metric, onPoint) {
  const times = points.map((point) => new Date(point.time).getTime());
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const bounds = points.flatMap((point) => [point.value, ...(point.interval ?? [])]).filter(isNumber);
  const pad = (Math.max(...bounds) - Math.min(...bounds)) * 0.08 || 0.05;
  const fraction = metric.kind === "rate";
  const domain = [
    Math.max(fraction ? 0 : -Infinity, Math.min(...bounds) - pad),
    Math.min(fraction ? 1 : Infinity, Math.max(...bounds) + pad),
  ];
  const x = (time) =>
    MARGIN.left +
    (last > first
      ? ((new Date(time).getTime() - first) / (last - first)) * (width - MARGIN.left - MARGIN.right)
      : (width - MARGIN.left - MARGIN.right) / 2);
  // Points of the same time stand next to each other, so that their whiskers can be told apart.
  const shift = (index) => (last > first ? 0 : (index - (series.length - 1) / 2) * Math.min(48, 200 / series.length));
  const y = (value) =>
    TREND_HEIGHT -
    MARGIN.bottom -
    ((value - domain[0]) / (domain[1] - domain[0])) * (TREND_HEIGHT - MARGIN.top - MARGIN.bottom);
  const image = svg("svg", {
    width,
    height: TREND_HEIGHT,
    role: "group",
    "aria-label": "Runs; arrow keys move between them, Enter opens one",
    class: "trend-plot",
  });
  append(image, [
    ...trendAxes(width, domain, [first, last], x, y, metric),
    ...changeMarks(points, x),
    ...series.flatMap((one, index) => trendSeries(one, index, (time) => x(time) + shift(index), y, metric, onPoint),
    ),
  ]);
  return addArrowKeys(image);
}

function trendAxes(width, domain, [first, last], x, y, metric) {
  const ticks = niceTicks(...domain, 5).filter((tick) => tick >= domain[0] && tick <= domain[1]);
  const lines = ticks.flatMap((tick) => [
    svg("line", { class: "gridline", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }),
    svg(
      "text",
      { class: "tick", x: MARGIN.left - 8, y: y(tick) + 4, "text-anchor": "end" },
      metric.kind === "rate" ? `${formatPlain(100 * tick)}%` : formatValue(tick, metric),
    ),
  ]);
  const dates =
    last > first
      ? [
          [first, "start"],
          ...(width > 520 ? [[(first + last) / 2, "middle"]] : []),
          [last, "end"],
        ]
      : [[first, "middle"]];
  const write = (time) => formatTime(new Date(time).toISOString()).slice(0, last - first > 2 * 86_400_000 ? 10 : 16);
  // Runs of one minute have one label.
  const labels = dates.filter(([time], index) => index === 0 || write(time) !== write(dates[index - 1][0]));
  return [
    ...lines,
    ...labels.map(([time, anchor]) =>
      svg("text", { class: "tick", x: x(time), y: TREND_HEIGHT - 8, "text-anchor": anchor }, write(time)),
    ),
  ];
}

function changeMarks(points, x) {
  const byRun = new Map(points.filter((point) => point.changes.length).map((point) => [point.run_id, point]));
  return [...byRun.values()].map((point) =>
    svg(
      "g",
      { class: "change-mark", "data-tip": `${formatTime(point.time)}: ${point.changes.join(", ")} changed` },
      svg("line", { x1: x(point.time), x2: x(point.time), y1: MARGIN.top - 8, y2: TREND_HEIGHT - MARGIN.bottom }),
      svg("path", { d: `M${x(point.time)} ${MARGIN.top - 16} l5 5 l-5 5 l-5 -5 Z` }),
    ),
  );
}

function trendSeries({ name, points }, index, x, y, metric, onPoint) {
  const tone = `tone-${index % 6}`;
  const known = points.filter((point) => isNumber(point.value));
  const banded = known.filter((point) => point.interval);
  const upper = banded.map((point) => `${x(point.time)},${y(point.interval[1])}`);
  const lower = banded.map((point) => `${x(point.time)},${y(point.interval[0])}`).reverse();
  const marks = known.map((point) => {
    const interval = point.interval ? `, 95% ${formatInterval(point.interval, metric)}` : "";
    const tip = `${name}, ${formatTime(point.time)}: ${formatValue(point.value, metric)}${interval}, n = ${formatInteger(point.n)}${point.note ? `, ${point.note}` : ""}`;
    const shape = seriesShape(index, x(point.time), y(point.value), point.note);
    return svg(
      "g",
      {
        class: `point ${tone}${point.isSelected ? " selected" : ""}`,
        "data-tip": tip,
        role: "button",
        tabindex: "-1",
        "aria-label": tip,
        onclick: () => onPoint(point),
      },
      svg("circle", { class: "hit", cx: x(point.time), cy: y(point.value), r: 12 }),
      point.isSelected && svg("circle", { class: "ring", cx: x(point.time), cy: y(point.value), r: 9 }),
      shape,
    );
  });
  return [
    banded.length > 1
      ? svg("polygon", { class: `trend-band ${tone}`, points: [...upper, ...lower].join(" ") })
      : banded.map((point) => whisker(x(point.time), y(point.interval[0]), y(point.interval[1]), tone)),
    svg("polyline", {
      class: `trend-line ${tone}`,
      points: known.map((point) => `${x(point.time)},${y(point.value)}`).join(" "),
    }),
    ...marks,
  ];
}

/** Draw the interval of a single point, which has no band. */
function whisker(x, low, high, tone) {
  return svg("path", { class: `trend-line ${tone}`, "data-whisker": "", d: `M${x} ${low} V${high} M${x - 5} ${low} h10 M${x - 5} ${high} h10` });
}

/** Draw a point of a series; series differ by shape and colour, unfinished runs are hollow. */
function seriesShape(index, x, y, hollow) {
  const name = hollow ? "shape hollow" : "shape";
  const paths = [null, "m0 -5.5 l5.5 9.5 h-11 Z", "m-4 -4 h8 v8 h-8 Z", "m0 -5.5 l5 5.5 l-5 5.5 l-5 -5.5 Z"];
  const path = paths[index % paths.length];
  return path
    ? svg("path", { class: name, d: `M${x} ${y} ${path}` })
    : svg("circle", { class: name, cx: x, cy: y, r: 4 });
}

/** The legend of a plot with several series. */
export function legend(names) {
  return h(
    "ul",
    { class: "legend" },
    names.map((name, index) =>
      h(
        "li",
        { class: `tone-${index % 6}` },
        svg(
          "svg",
          { width: 14, height: 14, "aria-hidden": "true", class: `point tone-${index % 6}` },
          seriesShape(index, 7, 7, false),
        ),
        h("bdi", null, name),
      ),
    ),
  );
}
