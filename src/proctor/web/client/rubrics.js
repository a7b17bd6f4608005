// Rubric scores as a heat map: sessions × rubrics, sorted by total.

import { makeLink, updateParams } from "./address.js";
import { button, emptyState, h, keepTogether, replaceContent, select } from "./dom.js";
import { formatCount, formatFixed, formatInteger, formatPlain, isNumber, showId } from "./format.js";
import { intervalTable } from "./plots.js";
import { joinPath, source } from "./source.js";

const PAGE_SIZE = 200;

/** Show the rubric scores of a run. */
export async function renderRubricsPage(address) {
  const runId = address.segments[1];
  const path = joinPath("runs", runId);
  const { summary } = await source.get(path);
  const element = h("div", { class: "page" });
  const payloads = new Map();
  const update = async ({ params }) => {
    const configuration = params.get("c") ?? summary.configurations[0];
    if (!payloads.has(configuration))
      payloads.set(configuration, await source.get(`${path}/rubrics`, { configuration }));
    const payload = payloads.get(configuration);
    draw(element, { runId, payload, rubrics: addMeans(payload), params, configuration, configurations: summary.configurations });
  };
  await update(address);
  return {
    title: "Rubrics",
    trail: [{ text: summary.name, href: makeLink(["runs", runId]) }, { text: "rubrics" }],
    element,
    update,
  };
}

function draw(element, { runId, payload, rubrics, params, configuration, configurations }) {
  if (!rubrics.length || !payload.sessions.length) {
    replaceContent(
      element,
      emptyState(
        "This run has no rubric scores.",
        "Score sessions with rubrics to see them here:",
        h("pre", { class: "command" }, "proctor sessions evaluate-batch --help"),
        "h1",
      ),
    );
    return;
  }
  const order = sortSessions(payload, rubrics, params.get("sort") ?? "total", params.has("desc"));
  const limit = Number(params.get("limit") ?? PAGE_SIZE);
  replaceContent(
    element,
    h("div", { class: "lead" }, h("h1", null, keepTogether(describeLowest(payload, rubrics)))),
    renderMeans(rubrics),
    h(
      "div",
      { class: "filters" },
      configurations.length > 1 && select("Configuration", configurations, configuration, (c) => updateParams({ c })),
      select(
        "Sort",
        [["total", "lowest total first"], ...rubrics.map((rubric) => [rubric.id, `lowest ${rubric.name} first`])],
        params.get("sort") ?? "total",
        (sort) => updateParams({ sort: sort === "total" ? "" : sort }),
      ),
      h(
        "span",
        { class: "quiet" },
        `A stronger colour is higher; hatched cells have no score.${payload.left_out ? ` ${formatCount(payload.left_out, "further session")} not shown.` : ""}${payload.epochs > 1 ? " Only the first epoch is shown." : ""}`,
      ),
    ),
    h(
      "div",
      { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Rubric scores" },
      renderHeat({ runId, payload, rubrics, configuration }, order.slice(0, limit)),
    ),
    order.length > limit &&
      button(`Show ${formatInteger(Math.min(PAGE_SIZE, order.length - limit))} more`, () =>
        updateParams({ limit: limit + PAGE_SIZE }, { replace: true }),
      ),
  );
}

function sortSessions(payload, rubrics, key, descending) {
  const column = rubrics.findIndex((rubric) => rubric.id === key);
  const value = (row) => (column >= 0 ? payload.scores[row][column] : payload.totals[row]);
  const rows = payload.sessions.map((_, row) => row);
  const sign = descending ? -1 : 1;
  return rows.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (!isNumber(x)) return isNumber(y) ? 1 : 0;
    return isNumber(y) ? sign * (x - y) : -1;
  });
}

/** Add the mean of the known scores to each rubric. */
function addMeans(payload) {
  return payload.rubrics.map((rubric, column) => {
    const known = payload.scores.map((row) => row[column]).filter(isNumber);
    const mean = known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
    const scale = rubric.scale ?? payload.scale ?? [0, 1];
    return { ...rubric, scale, mean, n: known.length, missing: payload.scores.length - known.length };
  });
}

function describeInterval({ interval, n }) {
  if (interval) return `${interval.map((bound) => formatFixed(bound, 2)).join(" to ")}`;
  return n < 2 ? "fewer than 2 scores" : "no spread";
}

function describeLowest(payload, rubrics) {
  const sessions = formatCount(payload.sessions.length, "session");
  const scored = rubrics.filter(({ n }) => n > 0);
  if (!scored.length) return `${sessions}, and no rubric has a score.`;
  const share = ({ mean, scale: [low, high] }) => (mean - low) / (high - low);
  const [lowest] = [...scored].sort((a, b) => share(a) - share(b));
  const range = lowest.interval ? `95% ${describeInterval(lowest)}` : `no interval: ${describeInterval(lowest)}`;
  const missing = rubrics.reduce((sum, rubric) => sum + rubric.missing, 0);
  const rest = missing ? `; ${formatCount(missing, "score")} missing` : "";
  return `${sessions}: ${lowest.name} has the lowest mean, ${formatFixed(lowest.mean, 2)} of ${formatPlain(lowest.scale[1])} (${range}, n = ${formatInteger(lowest.n)})${rest}.`;
}

/** Draw the mean of every rubric with its interval. */
function renderMeans(rubrics) {
  const drawRow = (rubric) => ({
    label: rubric.name,
    metric: { value: rubric.mean, interval: rubric.interval },
    domain: rubric.scale,
    tip: `${rubric.name}: ${isNumber(rubric.mean) ? formatFixed(rubric.mean, 2) : "no score"}, 95% ${describeInterval(rubric)}, n = ${rubric.n}`,
    cells: [
      h("strong", null, isNumber(rubric.mean) ? `${formatFixed(rubric.mean, 2)} of ${formatPlain(rubric.scale[1])}` : "–"),
      rubric.interval ? describeInterval(rubric) : h("span", { class: "quiet" }, describeInterval(rubric)),
      formatInteger(rubric.n),
      h("span", { class: rubric.missing ? "missing" : "" }, rubric.missing ? `${formatInteger(rubric.missing)} missing` : ""),
    ],
  });
  const scales = [...new Set(rubrics.map(({ scale }) => String(scale)))];
  const rows = scales.flatMap((scale) => {
    const group = rubrics.filter((rubric) => String(rubric.scale) === scale);
    return [...group.map(drawRow), { axis: { domain: group[0].scale, format: formatPlain } }];
  });
  return h(
    "div",
    { class: "rubric-means" },
    intervalTable({
      caption: "Means of the rubrics with 95% intervals",
      headings: ["Rubric", "Value", "95% interval", "n", "Not counted"],
      rows,
    }),
  );
}

function renderHeat({ runId, payload, rubrics, configuration }, order) {
  return h(
    "table",
    { class: "heat" },
    h("caption", { class: "visually-hidden" }, "Scores by session and rubric"),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("th", { scope: "col" }, "Session"),
        rubrics.map((rubric) =>
          h(
            "th",
            { scope: "col", "data-tip": rubric.weight ? `weight ${formatPlain(rubric.weight)}` : null },
            rubric.name,
          ),
        ),
        h("th", { scope: "col", class: "number" }, "Total"),
      ),
    ),
    h(
      "tbody",
      null,
      order.map((row) =>
        h(
          "tr",
          null,
          h(
            "th",
            { scope: "row" },
            h(
              "a",
              { href: makeLink(["runs", runId], { sample: payload.sessions[row], c: configuration }), dir: "auto" },
              showId(payload.sessions[row]),
            ),
          ),
          rubrics.map((rubric, column) =>
            h(
              "td",
              null,
              heatCell(
                payload.scores[row][column],
                rubric.scale,
                `${showId(payload.sessions[row])}, ${rubric.name}`,
              ),
            ),
          ),
          h("td", { class: "number" }, isNumber(payload.totals[row]) ? formatFixed(payload.totals[row], 2) : "–"),
        ),
      ),
    ),
  );
}

function heatCell(value, [low, high], name) {
  if (!isNumber(value))
    return h("span", { class: "heat-cell missing", "data-tip": `${name}: no score` }, h("span", null, "none"));
  const share = Math.min(1, Math.max(0, (value - low) / (high - low)));
  const cell = h(
    "span",
    {
      class: share > 0.55 ? "heat-cell strong-cell" : "heat-cell",
      "data-tip": `${name}: ${formatPlain(value)} of ${formatPlain(high)}`,
    },
    formatPlain(value),
  );
  cell.style.setProperty("--share", `${Math.round(8 + share * 92)}%`);
  return cell;
}
