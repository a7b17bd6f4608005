// The judges of a run: how often evaluators agree, and the results on which a judge and another evaluator disagree.

import { makeLink } from "./address.js";
import { emptyState, errorState, h, keepTogether, loadingState, outcomeMark, replaceContent, section } from "./dom.js";
import { DASH, evaluatorLabel, formatCount, formatFixed, formatInteger, formatInterval, formatPercent, showId } from "./format.js";
import { joinPath, source } from "./source.js";

const PAGE_SIZE = 300;

/** Show the judges of a run. */
export async function renderJudgesPage(address) {
  const runId = address.segments[1];
  const path = joinPath("runs", runId);
  const [{ summary }, payload] = await Promise.all([source.get(path), source.get(`${path}/judges`)]);
  const trail = [{ text: summary.name, href: makeLink(["runs", runId]) }, { text: "judges" }];
  const names = Object.keys(payload.judges ?? {});
  const cards = h("div");
  const ready = () => loadCards(cards, runId);
  if (!names.length && !payload.pairs?.length)
    return {
      title: "Judges",
      trail,
      ready,
      element: h(
        "div",
        { class: "page" },
        emptyState(
          "This run has no judges.",
          "Evaluators such as llm_judge ask a model for a verdict. Their disagreements appear here.",
          null,
          "h1",
        ),
        cards,
      ),
    };
  const element = h(
    "div",
    { class: "page" },
    h("div", { class: "lead" }, h("h1", null, keepTogether(describeJudges(payload, names, summary.evaluators)))),
    names.length > 0 &&
      h(
        "ul",
        { class: "sentences" },
        names.map((name) => h("li", null, h("strong", null, evaluatorLabel(name)), ` asks ${payload.judges[name].join(", ")}`)),
      ),
    cards,
    payload.pairs?.length > 0 && section("Agreement", renderPairs(payload.pairs, names)),
    section("Disagreements", renderDisagreements(runId, payload)),
  );
  return { title: "Judges", trail, element, ready };
}

/** Load the cards of the judges of a run into an element, or that of one evaluator. */
export async function loadCards(element, runId, evaluator) {
  if (!source.has(`${joinPath("runs", runId)}/cards`)) {
    const note = "This file has no cards of judges. A file that proctor report writes has them.";
    replaceContent(element, h("p", { class: "quiet" }, note));
    return;
  }
  replaceContent(element, loadingState("Loading cards…"));
  try {
    const payload = await source.get(`${joinPath("runs", runId)}/cards`);
    const cards = payload.cards.filter((card) => evaluator === undefined || card.evaluator === evaluator);
    const empty = h("p", { class: "quiet" }, "No evaluator of this run asks a model or has labels.");
    const all = h("p", null, h("a", { href: makeLink(["label", runId]) }, "Label outputs of this run"));
    const list = h("div", { class: "card-list" }, cards.map((card) => renderCard(runId, card)));
    const canLabel = evaluator === undefined && source.home === "server";
    replaceContent(element, section("Cards", cards.length ? list : [empty, canLabel && all]));
  } catch (error) {
    replaceContent(element, errorState(error, () => loadCards(element, runId, evaluator)));
  }
}

/** Show how far a judge agrees with people, and the pass rate that their labels correct. */
function renderCard(runId, { evaluator, state, reason, fix, n, labels, agreement, rate, worth }) {
  const rated = ({ value, interval }, size) =>
    `${formatPercent(value)} (${interval ? `95% ${formatInterval(interval, { kind: "rate" })}` : "no interval"}, ${size})`;
  const kappa = agreement?.kappa_interval?.map((bound) => formatFixed(bound, 2)).join(" to ");
  const count = (size) => `n = ${formatInteger(size)}`;
  const facts = [
    agreement?.share && `agreement ${rated(agreement.share, count(agreement.share.n))}`,
    kappa && `kappa ${formatFixed(agreement.kappa, 2)} (95% ${kappa}, ${count(agreement.n)})`,
    rate && `raw pass rate ${rated(rate.raw, count(rate.raw.n))}`,
    rate && `${rate.helps ? "corrected" : "labels alone"} ${rated(rate, `${count(rate.n)} of ${formatInteger(rate.total)}`)}`,
  ].filter(Boolean);
  return h(
    "div",
    { class: "card" },
    h("h3", null, h("bdi", null, evaluator || "overall verdict"), " ", h("span", { class: "tag static" }, state === "none" ? "no card" : `card ${state}`)),
    h("p", { class: "prose" }, worth),
    labels && h("p", { class: "quiet" }, `Labels: ${labels}`),
    facts.length > 0 && h("p", { class: "quiet" }, facts.join(" · ")),
    reason && n > 0 && h("p", { class: "prose" }, `This card ${state === "cannot tell" ? state : `is ${state}`}: ${reason}.`),
    fix && h("p", null, h("strong", null, "Fix: "), markCommand(fix)),
    source.home === "server" &&
      h(
        "p",
        null,
        h("a", { href: makeLink(["label", runId], { evaluator }) }, `Label outputs for ${evaluator || "the overall verdict"}`),
      ),
  );
}

/** Set the command inside a sentence as code. */
export function markCommand(text) {
  // The option --mistakes has no value: the next word belongs to the sentence.
  const command = text.match(
    /\bproctor(?: [a-z]+(?!\S))+(?: \S*\d\S*)?(?: --(?:mistakes(?!\S)|[\w-]+ (?:'[^']*'|[^\s'])+))*/,
  )?.[0];
  if (!command) return text;
  const at = text.indexOf(command);
  return [text.slice(0, at), h("code", null, keepTogether(command)), text.slice(at + command.length)];
}

function describeJudges({ count, share }, names, evaluators) {
  if (!names.length) return "No evaluator of this run asks a judge.";
  const others = evaluators.filter((name) => !names.includes(name));
  const quoted = names.map((name) => `“${name}”`).join(names.length === 2 ? " and " : ", ");
  const judges = names.length === 1 ? `the judge ${quoted}` : `the judges ${quoted}`;
  let sides = names.length === 1 ? `${judges} and another evaluator` : `one of ${judges} and another evaluator`;
  if (names.length + others.length === 2) sides = others.length ? `${judges} and “${others[0]}”` : judges;
  if (!share.n) return `No result has verdicts of two evaluators to compare: ${sides}.`;
  return `On ${formatInteger(count)} of ${formatCount(share.n, "result")} with both verdicts (${describeShare(count, share)}), ${sides} contradict each other.`;
}

/** Write a share with its interval, or why it has none. */
function describeShare(count, { n, interval, note }) {
  const range = interval ? `95% ${formatInterval(interval, { kind: "rate" })}` : `no interval: ${note || "too few results"}`;
  return `${formatPercent(count / n)}, ${range}`;
}

/** A bar of three parts: both give the same verdict, only the first passes it, only the second passes it. */
function agreementBar({ a, b, n, agree, only_a_passed: onlyA, only_b_passed: onlyB }) {
  const part = (count, name, text) => {
    const element = h("span", {
      class: `share ${name}`,
      "data-tip": `${text}: ${formatInteger(count)} of ${formatInteger(n)}`,
    });
    element.style.width = `${(100 * count) / n}%`;
    return element;
  };
  return h(
    "span",
    { class: "shares", "aria-hidden": "true" },
    n > 0 && [
      part(agree, "agree", "same verdict"),
      part(onlyA, "first", `only ${a} passes it`),
      part(onlyB, "second", `only ${b} passes it`),
    ],
  );
}

function renderPairs(pairs, judges) {
  const isJudged = (pair) => judges.includes(pair.a) || judges.includes(pair.b);
  const sorted = [...pairs].sort((a, b) => isJudged(b) - isJudged(a) || a.agree / (a.n || 1) - b.agree / (b.n || 1));
  const rows = sorted
    .slice(0, PAGE_SIZE)
    .map((pair) =>
      h(
        "tr",
        null,
        h("th", { scope: "row" }, evaluatorLabel(pair.a), h("span", { class: "quiet" }, " and "), evaluatorLabel(pair.b)),
        h("td", { class: "shares-cell" }, agreementBar(pair)),
        h(
          "td",
          { class: "number", "data-label": "Same verdict" },
          pair.n ? h("strong", null, formatPercent(pair.agree / pair.n)) : "",
          ` ${formatInteger(pair.agree)} of ${formatInteger(pair.n)}`,
        ),
        h(
          "td",
          { class: "number nowrap", "data-label": "95% interval" },
          pair.interval
            ? formatInterval(pair.interval, { kind: "rate" })
            : h("span", { "data-tip": pair.note || "no result has two verdicts" }, DASH),
        ),
        h("td", { class: "number", "data-label": "Samples" }, formatInteger(pair.samples)),
        h("td", { class: "number", "data-label": `Only ${pair.a} passes` }, formatInteger(pair.only_a_passed)),
        h("td", { class: "number", "data-label": `Only ${pair.b} passes` }, formatInteger(pair.only_b_passed)),
      ),
    );
  return h(
    "div",
    { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Table of agreement" },
    h(
      "table",
      { class: "data stacked" },
      h("caption", { class: "visually-hidden" }, "How often two evaluators give the same verdict"),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { scope: "col" }, "Evaluators"),
          h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "Plot")),
          h("th", { scope: "col", class: "number" }, "Same verdict"),
          h("th", { scope: "col", class: "number" }, "95% interval"),
          h("th", { scope: "col", class: "number" }, "Samples"),
          h("th", { scope: "col", class: "number" }, h("span", { class: "key first" }), "Only the first passes"),
          h("th", { scope: "col", class: "number" }, h("span", { class: "key second" }), "Only the second passes"),
        ),
      ),
      h("tbody", null, rows),
    ),
    h(
      "p",
      { class: "quiet" },
      "Counted over results with two verdicts. Intervals treat all results of a sample (configurations, epochs) as one cluster. Evaluators that check different things may well differ.",
    ),
  );
}

function renderDisagreements(runId, { disagreements, count, epochs }) {
  if (!disagreements.length)
    return h(
      "p",
      { class: "quiet" },
      "No result has verdicts of a judge and of another evaluator that contradict each other.",
    );
  const names = [...new Set(disagreements.flatMap((one) => Object.keys(one.verdicts)))];
  const rows = disagreements.slice(0, PAGE_SIZE).map((one) =>
    h(
      "tr",
      null,
      h(
        "th",
        { scope: "row", class: "sample-id" },
        h(
          "a",
          {
            href: makeLink(["runs", runId], {
              sample: one.sample_id,
              c: one.configuration,
              epoch: epochs > 1 ? String(one.epoch + 1) : "",
            }),
            dir: "auto",
          },
          showId(one.sample_id),
        ),
      ),
      h("td", { dir: "auto" }, one.configuration),
      epochs > 1 && h("td", { class: "number", "data-label": "Epoch" }, String(one.epoch + 1)),
      names.map((name) =>
        h(
          "td",
          { class: "verdict-mark", "data-label": evaluatorLabel(name) },
          one.verdicts[name] ? [outcomeMark(one.verdicts[name], { label: false }), ` ${one.verdicts[name]}`] : "",
        ),
      ),
    ),
  );
  const shown =
    rows.length < (count ?? rows.length)
      ? h("p", { class: "quiet" }, `The first ${formatInteger(rows.length)} of ${formatInteger(count)}.`)
      : null;
  return [
    shown,
    h(
      "div",
      { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Table of disagreements" },
      h(
        "table",
        { class: "data stacked" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { scope: "col" }, "Sample"),
            h("th", { scope: "col" }, "Configuration"),
            epochs > 1 && h("th", { scope: "col", class: "number" }, "Epoch"),
            names.map((name) => h("th", { scope: "col" }, evaluatorLabel(name))),
          ),
        ),
        h("tbody", null, rows),
      ),
    ),
  ];
}
