// The catalogue of evaluators.

import { updateParams } from "./address.js";
import { emptyState, foldout, h, replaceContent } from "./dom.js";
import { containsWords, formatCount, toText } from "./format.js";
import { source } from "./source.js";

/** Show all evaluators with their parameters. */
export async function renderEvaluatorsPage(address) {
  const { evaluators } = await source.get("evaluators");
  const list = h("div", { class: "card-list" });
  const search = h("input", {
    type: "search",
    placeholder: "Search evaluators  /",
    "aria-label": "Search evaluators",
    value: address.params.get("text") ?? "",
    oninput: (event) => updateParams({ text: event.target.value.trim() }, { replace: true }),
  });
  const title = h("h1");
  const update = ({ params }) => {
    const needle = params.get("text") ?? "";
    const shown = evaluators.filter(
      (one) =>
        containsWords(JSON.stringify([one.name, one.category, one.summary, one.card]), needle),
    );
    title.textContent = needle
      ? `${shown.length} of ${formatCount(evaluators.length, "evaluator")}.`
      : `${formatCount(evaluators.length, "evaluator")} can judge an output.`;
    const groups = Map.groupBy(shown, (one) => one.category ?? "");
    const content = [...groups]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([category, members]) =>
        h(
          "section",
          { class: "card-list", "aria-label": category || "evaluators" },
          category && h("h2", { class: "category" }, category === "llm" ? "LLM" : category.replaceAll("_", " ")),
          members.map(renderEvaluator),
        ),
      );
    replaceContent(
      list,
      shown.length
        ? content
        : emptyState("No evaluator matches.", "", h("a", { href: "#/evaluators" }, "Show all evaluators")),
    );
  };
  update(address);
  return {
    title: "Evaluators",
    trail: [{ text: "evaluators" }],
    element: h(
      "div",
      { class: "page" },
      h("div", { class: "lead" }, title),
      h("div", { class: "filters" }, search),
      list,
    ),
    update,
    keys: { "/": () => search.focus() },
  };
}

function renderEvaluator({ name, summary, parameters = [], card }) {
  const rows = parameters.map((parameter) => (typeof parameter === "string" ? { name: parameter } : parameter));
  return h(
    "article",
    { class: "card evaluator", id: `evaluator-${name}` },
    h("h3", null, h("code", null, name)),
    h("p", { class: "prose" }, markCode(summary)),
    rows.length > 0 &&
      foldout(
        formatCount(rows.length, "parameter"),
        h(
          "table",
          { class: "data" },
          h(
            "tbody",
            null,
            rows.map((parameter) =>
              h(
                "tr",
                null,
                h("th", { scope: "row" }, h("code", null, parameter.name)),
                h("td", { class: "quiet" }, toText(parameter.type ?? parameter.kind ?? "")),
                h(
                  "td",
                  null,
                  "default" in parameter
                    ? `default ${JSON.stringify(parameter.default)}`
                    : parameter.required
                      ? "required"
                      : "",
                ),
                h("td", null, markCode(parameter.description ?? parameter.help ?? "")),
              ),
            ),
          ),
        ),
      ),
    card && renderCard(card),
  );
}

/** Set what stands between backticks as code. */
function markCode(text = "") {
  return text.split(/`([^`]+)`/).map((part, index) => (index % 2 ? h("code", null, part) : part));
}

function renderCard(card) {
  if (typeof card === "string") return foldout("card", h("p", { class: "prose" }, card));
  return foldout(
    "card",
    h(
      "dl",
      { class: "definitions" },
      Object.entries(card).map(([key, value]) => [h("dt", null, key), h("dd", null, toText(value))]),
    ),
  );
}
