// Metrics by a metadata key, as interval dots.

import { button, errorState, h, loadingState, replaceContent } from "./dom.js";
import { describeMetric, formatCount, formatPercent, nameMetrics, shortenNames } from "./format.js";
import { metricCells } from "./metrics.js";
import { intervalTable } from "./plots.js";
import { joinPath, source } from "./source.js";

const MAX_SLICES = 40;

/** List the metadata keys that make readable slices; all tags together are one key. */
export function listSliceKeys(keys) {
  const names = keys
    .filter(({ key, values }) => key.startsWith("tags.") || (values > 1 && values <= MAX_SLICES))
    .map(({ key }) => (key.startsWith("tags.") ? "tags" : key));
  return [...new Set(names)];
}

/** Load and draw the slices of a run by a key. */
export async function renderSlices(holder, runId, key, open, configurations) {
  replaceContent(holder, loadingState());
  try {
    const payload = await source.get(`${joinPath("runs", runId)}/slices`, { by: key });
    replaceContent(holder, drawSlices(payload, open, configurations));
  } catch (error) {
    replaceContent(holder, errorState(error));
    if (!(error.status >= 0)) throw error;
  }
}

function drawSlices({ key, slices = [], total, notes = [], binned, overlapping }, open, wanted) {
  const known = [...new Set(slices.flatMap((slice) => Object.keys(slice.metrics ?? {})))];
  const names = (wanted ?? known).filter((name) => known.includes(name));
  const short = shortenNames(names, 28);
  const rateOf = (table) => (table && "pass_rate" in table ? table.pass_rate : table);
  const filterOf = (value) => (key === "tags" ? { [`m.tags.${value}`]: "yes" } : { [`m.${key}`]: value });
  const rows = slices.flatMap(({ value, n, metrics = {} }) => [
    { heading: h("bdi", null, value), note: formatCount(n, "sample") },
    ...names.map((name, index) => {
      const metric = rateOf(metrics[name]);
      const reference = total?.[name]?.value;
      const label = binned
        ? short[index]
        : button(short[index], () => open({ ...filterOf(value), [`o.${name}`]: "notpassed" }), {
            class: "link plain",
            "aria-label": `${name}, ${key} ${value}: show the samples that did not pass`,
          });
      return {
        label,
        metric,
        domain: [0, 1],
        reference,
        tip: `${key} ${value}, ${name}: ${describeMetric(metric ?? {})}`,
        ...metricCells("pass_rate", metric),
      };
    }),
  ]);
  return [
    h(
      "p",
      { class: "quiet" },
      `The dashed line is the pass rate of all samples.${overlapping ? " A sample can be in several slices." : ""} With many slices, some lie apart by chance.`,
    ),
    notes.length > 0 &&
      h(
        "ul",
        { class: "notes" },
        notes.map((text) => h("li", { dir: "auto" }, nameMetrics(text, { pass_rate: "rate", strict_pass_rate: "rate" }))),
      ),
    intervalTable({
      caption: `Pass rate by ${key}`,
      headings: ["Configuration", "Pass rate", "95% interval", "n", "Not counted"],
      rows,
      axis: { domain: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], format: (tick) => formatPercent(tick).replace(".0", "") },
    }),
  ];
}
