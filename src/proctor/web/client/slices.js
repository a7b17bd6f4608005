// Metrics by a metadata key, as interval dots.

import { button, errorState, h, loadingState, replaceContent } from "./dom.js";
import { describeMetric, formatCount, formatInteger, formatInterval, formatPercent, formatValue } from "./format.js";
import { intervalTable } from "./plots.js";
import { joinPath, source } from "./source.js";

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

function drawSlices({ key, configurations, slices, notes = [] }, open, wanted) {
  const names = (wanted ?? configurations).filter((name) => configurations.includes(name));
  const rows = slices.flatMap(({ value, n, metrics }) => [
    { heading: h("bdi", null, value ?? `no ${key}`), note: formatCount(n, "sample") },
    ...names.map((name) => {
      const metric = metrics[name];
      const label = button(name, () => open({ [`m.${key}`]: value, [`o.${name}`]: "notpassed" }), { class: "link plain", "aria-label": `${name}, ${key} ${value}: show the samples that did not pass` });
      return { label, metric, domain: [0, 1], tip: `${key} ${value}, ${name}: ${describeMetric(metric ?? {})}`, cells: [h("strong", null, formatValue(metric?.value, metric)), formatInterval(metric?.interval, metric) || "", formatInteger(metric?.n ?? 0)] };
    }),
  ]);
  return [
    notes.length > 0 && h("ul", { class: "notes" }, notes.map((text) => h("li", { dir: "auto" }, text))),
    intervalTable({ caption: `Pass rate by ${key}`, headings: ["Configuration", "Pass rate", "95% interval", "n"], optional: ["n"], rows, axis: { domain: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], format: (tick) => formatPercent(tick).replace(".0", "") } }),
  ];
}
