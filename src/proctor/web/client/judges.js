// The judges of a run: what they cost, how well they agree with people, and where they disagree.

import { makeLink } from "./address.js";
import { emptyState, foldout, h, section } from "./dom.js";
import { describeMetric, formatCost, formatCount, formatInteger, formatInterval, formatPercent, formatScore, isNumber, toText } from "./format.js";
import { intervalTable } from "./plots.js";
import { definitionList } from "./sample.js";
import { joinPath, source } from "./source.js";

const PAGE_SIZE = 200;

/** Show the judges of a run. */
export async function renderJudgesPage(address) {
  const runId = address.segments[1];
  const { judges = [], disagreements = [] } = await source.get(`${joinPath("runs", runId)}/judges`);
  const trail = [{ text: runId, href: makeLink(["runs", runId]) }, { text: "judges" }];
  if (!judges.length && !disagreements.length) return { title: "Judges", trail, element: h("div", { class: "page" }, emptyState("This run has no judges.", "Evaluators such as llm_judge ask a model for a verdict. Their exchange and their disagreements appear here.")) };
  const element = h("div", { class: "page" },
    h("div", { class: "lead" }, h("h1", null, describeJudges(judges, disagreements))),
    renderAgreement(judges),
    judges.length > 0 && section("Judges", h("div", { class: "card-list" }, judges.map(renderJudge))),
    section("Disagreements", renderDisagreements(runId, disagreements)));
  return { title: "Judges", trail, element };
}

function describeJudges(judges, disagreements) {
  const failed = judges.reduce((sum, judge) => sum + (judge.failed ?? 0), 0);
  const calls = judges.reduce((sum, judge) => sum + (judge.calls ?? 0), 0);
  const spent = calls ? ` ${formatCount(calls, "call")}, ${formatInteger(failed)} failed.` : "";
  return `${formatCount(judges.length, "judge")}, ${formatCount(disagreements.length, "result")} on which evaluators disagree.${spent}`;
}

function renderAgreement(judges) {
  const known = judges.filter((judge) => isNumber(judge.agreement?.value));
  if (!known.length) return null;
  const rows = known.flatMap((judge) => {
    const { agreement } = judge;
    const metric = { kind: "rate", ...agreement };
    const remarks = [isNumber(agreement.chance) && `chance ${formatPercent(agreement.chance)}`, isNumber(agreement.people) && `people among themselves ${formatPercent(agreement.people)}`].filter(Boolean).join(", ");
    return [{ label: judge.name, metric, domain: [0, 1], reference: agreement.chance, band: isNumber(agreement.people) ? [agreement.people - 0.004, agreement.people + 0.004] : null, tip: `${describeMetric(metric)}; ${remarks}`, cells: [h("strong", null, formatPercent(agreement.value)), formatInterval(agreement.interval, metric), formatInteger(agreement.n), remarks] }];
  });
  return section("Agreement with people", intervalTable({ caption: "Agreement of judges with people", headings: ["Judge", "Agreement", "95% interval", "n", "Compared with"], optional: ["n", "Compared with"], rows, axis: { domain: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], format: (tick) => formatPercent(tick).replace(".0", "") } }), known.map((judge) => renderConfusion(judge)));
}

function renderConfusion({ name, agreement }) {
  const table = agreement.confusion;
  if (!table) return null;
  const cell = (value) => h("td", { class: "number" }, formatInteger(value));
  return h("table", { class: "data confusion" }, h("caption", null, `${name}: verdicts of the judge and of people`),
    h("thead", null, h("tr", null, h("td"), h("th", { scope: "col" }, "people pass"), h("th", { scope: "col" }, "people fail"))),
    h("tbody", null, h("tr", null, h("th", { scope: "row" }, "judge passes"), cell(table.both_pass), cell(table.judge_only)), h("tr", null, h("th", { scope: "row" }, "judge fails"), cell(table.person_only), cell(table.both_fail))));
}

function renderJudge(judge) {
  if (typeof judge === "string") return h("div", { class: "card" }, h("h2", null, judge));
  const known = [["model", judge.model], ["evaluators", judge.evaluators?.join(", ")], ["calls", isNumber(judge.calls) && formatInteger(judge.calls)], ["failed", isNumber(judge.failed) && formatInteger(judge.failed)], ["from the cache", isNumber(judge.cached) && formatInteger(judge.cached)], ["tokens", isNumber(judge.tokens) && formatInteger(judge.tokens)], ["cost", isNumber(judge.cost) && formatCost(judge.cost)]];
  const used = new Set(["name", "model", "evaluators", "calls", "failed", "cached", "tokens", "cost", "agreement"]);
  const rest = Object.fromEntries(Object.entries(judge).filter(([key]) => !used.has(key)));
  return h("div", { class: "card" }, h("h2", { dir: "auto" }, judge.name ?? judge.model), definitionList(known.filter(([, value]) => value)), Object.keys(rest).length > 0 && foldout("details", h("pre", { class: "json" }, toText(rest))));
}

function renderDisagreements(runId, disagreements) {
  if (!disagreements.length) return h("p", { class: "quiet" }, "No result has verdicts that contradict each other.");
  const names = [...new Set(disagreements.flatMap((one) => Object.keys(one.scores)))];
  const spread = (one) => { const values = Object.values(one.scores).filter(isNumber); return Math.max(...values) - Math.min(...values); };
  const rows = [...disagreements].sort((a, b) => spread(b) - spread(a)).slice(0, PAGE_SIZE).map((one) => h("tr", null,
    h("th", { scope: "row", class: "sample-id" }, h("a", { href: makeLink(["runs", runId], { sample: one.sample_id, c: one.configuration, epoch: one.epoch ? String(one.epoch) : "" }), dir: "auto" }, one.sample_id)),
    h("td", { dir: "auto" }, one.configuration), names.map((name) => h("td", { class: "number" }, isNumber(one.scores[name]) ? formatScore(one.scores[name]) : "")), h("td", { class: "number" }, h("strong", null, formatScore(spread(one))))));
  return h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Disagreements" }, h("table", { class: "data" }, h("thead", null, h("tr", null, h("th", { scope: "col" }, "Sample"), h("th", { scope: "col" }, "Configuration"), names.map((name) => h("th", { scope: "col", class: "number" }, name)), h("th", { scope: "col", class: "number" }, "Spread"))), h("tbody", null, rows)));
}
