// Distributions of scores and latencies, with links to the samples behind each bar.

import { button, h } from "./dom.js";
import {
  describeCounts,
  evaluatorLabel,
  formatInteger,
  formatMilliseconds,
  isNumber,
  shortenNames,
} from "./format.js";
import { histogram } from "./plots.js";

/** Draw the scores of an evaluator in each configuration, with what they count. */
export function evaluatorBlock(evaluator, names, open) {
  const threshold = evaluator.parameters?.threshold;
  const short = shortenNames(names, 30);
  const plots = names
    .filter((name) => evaluator.histogram?.[name])
    .map((name) => {
      const { edges, counts } = evaluator.histogram[name];
      const total = evaluator.counts?.[name] ?? {};
      const words = describeCounts({ ...total, error: total.error ?? total.errors });
      const failed = total.failed ?? 0;
      return h(
        "div",
        { class: "multiple-row" },
        h(
          "div",
          { class: "multiple-name" },
          h("bdi", { "data-tip": name }, short[names.indexOf(name)]),
          h("span", { class: "quiet" }, ` ${words}`),
          failed > 0 &&
            button("failures", () => open({ evaluator: evaluator.name, [`o.${name}`]: "failed" }), {
              class: "link",
              "aria-label": `Failures of ${name} by ${evaluator.name}`,
            }),
        ),
        histogram({
          caption: `Scores of ${evaluator.name} in ${name}`,
          edges,
          counts,
          threshold: isNumber(threshold) && threshold > 0 && threshold < 1 ? threshold : undefined,
          height: 44,
          onBar: (low, high, last) =>
            open({ evaluator: evaluator.name, range: [evaluator.name, name, low, high, last ? 1 : 0].join("~") }),
        }),
      );
    });
  const judge = evaluator.judges?.length
    ? `judged by ${evaluator.judges.join(", ")}`
    : nameFunction(evaluator);
  return h(
    "div",
    { class: "multiple" },
    h("h3", null, h("bdi", null, evaluatorLabel(evaluator.name)), h("span", { class: "quiet" }, judge && ` ${judge}`)),
    plots,
  );
}

/** Name what an evaluator uses, unless its own name says it. */
function nameFunction({ name, uses }) {
  return uses === name || uses.endsWith(`:${name}`) ? "" : uses.replace(/^__main__:/, "");
}

/** Draw the latency of the target in each configuration; the same results as in its mean. */
export function latencyBlock({ latency, metrics }, names, open) {
  const shown = names.filter((name) => latency[name]?.counts?.length);
  const short = shortenNames(names, 30);
  return h(
    "div",
    { class: "multiple" },
    h("h3", null, "Target latency", h("span", { class: "quiet" }, " per result, without errors")),
    shown.map((name) => {
      const { edges, counts } = latency[name];
      const total = counts.reduce((sum, count) => sum + count, 0);
      const left = (metrics[name]?.["latency_ms.mean"]?.n ?? total) - total;
      const ratio = edges.length > 2 ? (edges[1] - edges[0]) / (edges[2] - edges[1]) : 1;
      return h(
        "div",
        { class: "multiple-row" },
        h(
          "div",
          { class: "multiple-name" },
          h("bdi", { "data-tip": name }, short[names.indexOf(name)]),
          h("span", { class: "quiet" }, ` n = ${formatInteger(total)}${left > 0 ? `, ${formatInteger(left)} of 0 ms not shown` : ""}`),
        ),
        histogram({
          caption: `Target latency of ${name}`,
          edges,
          counts,
          format: formatMilliseconds,
          logarithmic: ratio < 0.99,
          height: 44,
          onBar: (low, high, last) => open({ range: ["latency_ms", name, low, high, last ? 1 : 0].join("~") }),
        }),
      );
    }),
  );
}
