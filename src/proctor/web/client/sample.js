// The panel of one sample: outcome and reasons, diff, transcript, the judge's exchange, metadata, raw JSON.

import { updateParams } from "./address.js";
import { diffWords } from "./diff.js";
import {
  append,
  breakName,
  button,
  errorState,
  foldout,
  h,
  loadingState,
  outcomeMark,
  quotation,
  replaceContent,
  select,
} from "./dom.js";
import { copyText, markdownCell } from "./export.js";
import {
  evaluatorLabel,
  formatCost,
  formatCount,
  formatInteger,
  formatMilliseconds,
  formatScore,
  formatTime,
  isNumber,
  shortenNames,
  showId,
  toText,
} from "./format.js";
import { flash } from "./gridtools.js";
import { readFilters } from "./grid.js";
import { renderTimeline, renderTranscript, renderValue } from "./transcript.js";

/** The panel beside a grid; it follows the parameters sample, c (configuration), epoch and against. */
export class SamplePanel {
  constructor(grid) {
    this.grid = grid;
    this.element = h("aside", { class: "panel", hidden: true, "aria-label": "Sample", tabindex: "-1" });
    this.payload = null;
  }

  /** Show the sample of an address, or hide the panel. */
  async update(params) {
    const id = params.get("sample");
    const wasOpen = !this.element.hidden;
    this.params = params;
    this.element.hidden = !id;
    document.body.classList.toggle("with-panel", Boolean(id));
    if (!id) {
      this.payload = null;
      return;
    }
    if (this.payload?.sample.id !== id) await this.#load(id);
    if (this.params === params && this.payload) this.#render();
    if (!wasOpen) this.element.focus({ preventScroll: true });
  }

  async #load(id) {
    this.payload = null;
    const timer = setTimeout(() => replaceContent(this.element, this.#head(id), loadingState()), 150);
    try {
      const payload = await this.grid.loader.loadSample(id);
      if (this.params.get("sample") === id) this.payload = payload;
    } catch (error) {
      if (this.params.get("sample") === id)
        replaceContent(
          this.element,
          this.#head(id),
          errorState(error, () => this.update(this.params)),
        );
    } finally {
      clearTimeout(timer);
    }
  }

  /** Read a sample again, for a run in progress. */
  reload() {
    this.payload = null;
    if (this.params?.get("sample")) this.update(this.params);
  }

  close() {
    updateParams({ sample: "", c: "", epoch: "", against: "" });
  }

  /** Show the next or previous configuration. */
  changeConfiguration(step) {
    const names = this.#configurations();
    const at = names.indexOf(this.#current()?.configuration);
    const next = names[at + step];
    if (next !== undefined) updateParams({ c: next, epoch: "" }, { replace: true });
  }

  #configurations() {
    const present = new Set((this.payload?.results ?? []).map((result) => result.configuration));
    return this.grid.model.configurations.filter((name) => present.has(name));
  }

  #current() {
    const { results } = this.payload;
    const wanted = this.params.get("c");
    const epoch = this.params.get("epoch");
    const configuration = results.some((result) => result.configuration === wanted)
      ? wanted
      : this.#defaultConfiguration();
    const own = results.filter((result) => result.configuration === configuration);
    return (
      own.find((result) => String(result.epoch + 1) === epoch) ??
      own.find((result) => this.#matchesFilters(result)) ??
      own.find((result) => result.outcome !== "passed") ??
      own[0]
    );
  }

  // The epoch to show is one that the filters are about, as in a cell of the table of passes.
  #matchesFilters(result) {
    const { outcomes, byConfiguration, evaluator, range, error } = readFilters(this.params);
    const score = result.scores?.[evaluator];
    const outcome = evaluator ? (score ? scoreOutcome(score) : null) : result.outcome;
    const wanted = byConfiguration[result.configuration]?.replace("most:", "");
    const isRanged = range?.configuration === result.configuration;
    if (!wanted && !outcomes.length && !isRanged && !error) return false;
    if (error && result.error?.kind !== error) return false;
    if (wanted === "notpassed" ? ["passed", "skipped"].includes(outcome) : wanted && wanted !== outcome) return false;
    if (outcomes.length && !wanted && !outcomes.includes(outcome)) return false;
    if (!isRanged) return true;
    const isLatency = this.grid.model.isLatency(range.column);
    const value = isLatency ? result.latency_ms : result.scores?.[range.column]?.value;
    return value >= range.low && value <= range.high;
  }

  // Without a choice, the configuration to look at is the first that the filters are about, or that did not pass.
  #defaultConfiguration() {
    const { results } = this.payload;
    const matching = results.find((result) => this.#matchesFilters(result));
    return (matching ?? results.find((result) => result.outcome !== "passed") ?? results[0])?.configuration;
  }

  #render() {
    const { sample, results } = this.payload;
    const current = this.#current();
    const scroll = this.element.scrollTop;
    const same = this.shownId === sample.id;
    this.shownId = sample.id;
    replaceContent(this.element, this.#head(sample.id));
    const content = h("div", { class: "panel-content" });
    if (!current)
      append(content, [textSection("Input", sample.input), hasExpected(sample) && textSection("Expected", sample.expected), h("p", { class: "quiet" }, "This sample has no results yet.")]);
    else {
      append(content, [
        this.#configurationTabs(results, current),
        outcomeSection(current),
        textSection("Input", sample.input),
        hasExpected(sample) && textSection("Expected", sample.expected),
        this.#outputSection(sample, results, current),
        sessionSection(current),
        judgeSection(current),
        numbersSection(current),
        metadataSection(sample),
        rawSection(this.payload, current),
      ]);
    }
    this.element.append(content);
    this.element.scrollTop = same ? scroll : 0;
  }

  #head(id) {
    const step = (text, label, action, tip, more) =>
      button(text, action, { class: "icon", "aria-label": label, "data-tip": tip, ...more });
    return h(
      "header",
      { class: "panel-head" },
      h("h2", { class: "panel-title", dir: "auto" }, showId(id)),
      h(
        "div",
        { class: "panel-buttons" },
        step("↑", "Previous sample", () => this.grid.move(-1), "previous sample (k)"),
        step("↓", "Next sample", () => this.grid.move(1), "next sample (j)"),
        step(
          "Next failure",
          "Next sample that did not pass",
          () => this.grid.moveToFailure(1),
          "next sample that did not pass (n)",
          { "data-failures": "" },
        ),
        this.payload &&
          button("Copy", (event) => this.#copyMarkdown(event), {
            class: "icon",
            "aria-label": "Copy as Markdown",
            "data-tip": "copy as Markdown",
          }),
        step("Close", "Close the sample", () => this.close(), "close (Esc)"),
      ),
    );
  }

  async #copyMarkdown(event) {
    const target = event.currentTarget;
    await copyText(sampleToMarkdown(this.payload), "Sample");
    flash(target, "Copied");
  }

  #configurationTabs(results, current) {
    const names = this.#configurations();
    const epochs = results.filter((result) => result.configuration === current.configuration);
    if (names.length < 2 && epochs.length < 2) return null;
    const short = shortenNames(names, 24);
    const tabs = names.map((name, index) => {
      const own = results.filter((result) => result.configuration === name);
      const marks = own.slice(0, 8).map((result) => outcomeMark(result.outcome, { small: own.length > 1 }));
      return button([marks, " ", h("bdi", null, short[index])], () => updateParams({ c: name, epoch: "" }, { replace: true }), {
        class: "tab",
        "data-tip": short[index] === name ? null : name,
        "aria-label": short[index] === name ? null : name,
        "aria-pressed": String(name === current.configuration),
      });
    });
    const epochTabs =
      epochs.length > 1 &&
      h(
        "div",
        { class: "tabs epochs", role: "group", "aria-label": "Epoch" },
        h("span", { class: "quiet" }, "epoch "),
        epochs.map((result) =>
          button(
            [outcomeMark(result.outcome, { small: true }), ` ${result.epoch + 1}`],
            () => updateParams({ c: current.configuration, epoch: String(result.epoch + 1) }, { replace: true }),
            { class: "tab", "aria-pressed": String(result === current) },
          ),
        ),
      );
    return h(
      "div",
      null,
      names.length > 1 && h("div", { class: "tabs", role: "group", "aria-label": "Configuration" }, tabs),
      epochTabs,
    );
  }

  #outputSection(sample, results, current) {
    if (current.error) return h("section", null, h("h3", null, "Output"), errorBox(current.error));
    const others = this.#configurations().filter((name) => name !== current.configuration);
    const choices = [
      ...(hasExpected(sample) ? [["expected", "expected"]] : []),
      ...others.map((name) => [`c:${name}`, `output of ${name}`]),
      ["nothing", "nothing"],
    ];
    const wanted = this.params.get("against");
    const against = choices.some(([key]) => key === wanted) ? wanted : choices[0][0];
    const other = readOther(against, sample, results, current);
    const chooser =
      choices.length > 1 &&
      select("Difference from", choices, against, (value) => updateParams({ against: value }, { replace: true }));
    return h(
      "section",
      null,
      h("div", { class: "section-head" }, h("h3", null, "Output"), chooser),
      renderDifference(other, toText(current.output)),
    );
  }
}

function readOther(against, sample, results, current) {
  if (against === "expected") return { name: "expected", text: toText(sample.expected) };
  if (!against.startsWith("c:")) return null;
  const name = against.slice(2);
  const own = results.filter((result) => result.configuration === name);
  const result = own.find((one) => one.epoch === current.epoch) ?? own[0];
  return { name, text: result?.error ? `${result.error.kind}: ${result.error.message}` : toText(result?.output) };
}

/** Show a text with its difference from another one, or both side by side if they have little in common. */
export function renderDifference(other, text) {
  if (!other) return quotation(text, { label: "output" });
  if (other.text === text)
    return [h("p", { class: "quiet" }, `The same as ${other.name}.`), quotation(text, { label: "output" })];
  const parts = diffWords(other.text, text);
  const same = parts
    ? parts.filter((part) => part.kind === "same").reduce((sum, part) => sum + part.text.trim().length, 0)
    : 0;
  // The expected value has a section of its own.
  if (!parts || same < 0.25 * Math.min(other.text.length, text.length))
    return other.name === "expected" ? quotation(text, { label: "output" }) : renderSideBySide(other, text);
  const content = parts.map(({ kind, text: words }) =>
    kind === "same" ? words : h(kind === "added" ? "ins" : "del", { "aria-label": `${kind}: ${words}` }, words),
  );
  const key = h(
    "p",
    { class: "quiet diff-key" },
    h("del", null, `− ${other.name} only`),
    " ",
    h("ins", null, "+ this output only"),
  );
  return [
    quotation(other.text.length > text.length ? other.text : text, { content, label: `difference from ${other.name}` }),
    key,
  ];
}

function renderSideBySide(other, text) {
  return h(
    "div",
    { class: "side-by-side" },
    h(
      "div",
      null,
      h("div", { class: "part-label removed" }, `− ${other.name}`),
      quotation(other.text, { label: other.name, kind: "removed" }),
    ),
    h(
      "div",
      null,
      h("div", { class: "part-label added" }, "+ output"),
      quotation(text, { label: "output", kind: "added" }),
    ),
  );
}

function hasExpected(sample) {
  return sample.expected !== null && sample.expected !== undefined;
}

function textSection(title, value) {
  return h("section", null, h("h3", null, title), renderValue(value, title.toLowerCase()));
}

function scoreOutcome(score) {
  if (score.status === "error") return "unscored";
  if (score.status === "skipped" || score.passed === null) return "skipped";
  return score.passed ? "passed" : "failed";
}

function outcomeSection(result) {
  const order = { failed: 0, unscored: 1, skipped: 2, passed: 3 };
  const scores = Object.entries(result.scores ?? {}).sort(
    (a, b) => order[scoreOutcome(a[1])] - order[scoreOutcome(b[1])],
  );
  const failed = scores.filter(([, score]) => scoreOutcome(score) === "failed").length;
  const value = isNumber(result.value) ? `, score ${formatScore(result.value)}` : "";
  const why = failed
    ? `: ${failed} of ${formatCount(scores.length, "evaluator")} failed it`
    : result.outcome === "error"
      ? ": the target raised an error"
      : "";
  const rows = scores.map(([name, score]) =>
    h(
      "tr",
      null,
      h("td", { class: "mark-cell" }, outcomeMark(scoreOutcome(score))),
      h("th", { scope: "row" }, breakName(evaluatorLabel(name))),
      h("td", { class: "number" }, isNumber(score.value) ? formatScore(score.value) : ""),
      h(
        "td",
        { class: "reason-cell", dir: "auto" },
        score.reason || h("span", { class: "quiet" }, scoreOutcome(score)),
        hasKeys(score.details) && foldout("details", h("pre", { class: "json" }, toText(score.details))),
      ),
    ),
  );
  return h(
    "section",
    null,
    h(
      "p",
      { class: "verdict" },
      outcomeMark(result.outcome, { label: false }),
      " ",
      h("strong", null, result.outcome),
      value,
      why,
      result.cached && h("span", { class: "quiet" }, " · output from the cache"),
    ),
    rows.length > 0 &&
      h(
        "table",
        { class: "scores" },
        h("caption", { class: "visually-hidden" }, "Scores with reasons"),
        h("tbody", null, rows),
      ),
  );
}

function hasKeys(value) {
  return Boolean(value) && typeof value === "object" && Object.keys(value).length > 0;
}

function errorBox(error) {
  return h(
    "div",
    { class: "error-box" },
    h(
      "p",
      null,
      outcomeMark("error", { label: false }),
      " ",
      h("strong", null, error.kind),
      ": ",
      h("span", { dir: "auto" }, error.message),
    ),
    error.traceback && foldout("traceback", h("pre", { class: "json" }, error.traceback)),
  );
}

function sessionSection(result) {
  const events = result.session?.events;
  if (!events?.length) return null;
  return h("section", null, h("h3", null, "Transcript"), renderTimeline(events), renderTranscript(events));
}

function judgeSection(result) {
  const judged = Object.entries(result.judging ?? {}).filter(([, session]) => session?.events?.length);
  if (!judged.length) return null;
  return h(
    "section",
    null,
    h("h3", null, "Judge"),
    judged.map(([name, session]) =>
      foldout(
        [
          h("span", { class: "role" }, name),
          h("span", { class: "quiet" }, " what the judge was asked, and its answer"),
        ],
        renderTranscript(session.events),
      ),
    ),
  );
}

function numbersSection(result) {
  const usage = result.usage ?? {};
  const entries = [
    ["target latency", isNumber(result.latency_ms) && formatMilliseconds(result.latency_ms)],
    ["input tokens", isNumber(usage.input_tokens) && formatInteger(usage.input_tokens)],
    ["output tokens", isNumber(usage.output_tokens) && formatInteger(usage.output_tokens)],
    ["cached tokens", isNumber(usage.cached_tokens) && formatInteger(usage.cached_tokens)],
    ["cost", isNumber(usage.cost) && formatCost(usage.cost)],
    ["attempts", result.attempts > 1 && formatInteger(result.attempts)],
    ["started", result.started_at && formatTime(result.started_at)],
    ["worker", result.delivery?.worker],
  ].filter(([, value]) => value);
  if (!entries.length) return null;
  return h("section", null, h("h3", null, "Numbers"), definitionList(entries));
}

/** Show names and values in two columns. */
export function definitionList(entries) {
  return h(
    "dl",
    { class: "definitions" },
    entries.map(([name, value]) => [h("dt", null, name), h("dd", { dir: "auto" }, value)]),
  );
}

function metadataSection(sample) {
  const entries = Object.entries(sample.metadata ?? {});
  if (!entries.length) return null;
  return h(
    "section",
    null,
    h("h3", null, "Metadata"),
    definitionList(entries.map(([name, value]) => [name, toText(value)])),
  );
}

function rawSection(payload, current) {
  const raw = current.raw ?? current;
  const content = h("div");
  const details = foldout("Raw JSON", content, {
    ontoggle: () => {
      if (!details.open || content.childNodes.length) return;
      const text = JSON.stringify({ sample: payload.sample, result: raw }, null, 2);
      const copy = button(
        "Copy JSON",
        async (event) => {
          const target = event.currentTarget;
          await copyText(text, "JSON");
          flash(target, "Copied");
        },
        { class: "quiet-button" },
      );
      append(content, [copy, h("pre", { class: "json" }, text.slice(0, 400_000))]);
    },
  });
  return h("section", null, details);
}

/** Return a sample as Markdown, for an issue or a pull request. */
export function sampleToMarkdown({ sample, results }) {
  const fence = (text) => {
    const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
    const ticks = "`".repeat(longest + 1);
    return `${ticks}text\n${text}\n${ticks}`;
  };
  const lines = [`### Sample ${markdownCell(sample.id)}`, "", "Input:", "", fence(toText(sample.input))];
  if (hasExpected(sample))
    lines.push("", "Expected:", "", fence(toText(sample.expected)));
  for (const result of results) {
    const epoch = results.some((other) => other.epoch > 0) ? `, epoch ${result.epoch + 1}` : "";
    lines.push(
      "",
      `**${markdownCell(result.configuration)}**${epoch}: ${result.outcome}${isNumber(result.value) ? `, score ${formatScore(result.value)}` : ""}`,
      "",
      fence(result.error ? `${result.error.kind}: ${result.error.message}` : toText(result.output)),
    );
    for (const [name, score] of Object.entries(result.scores ?? {})) {
      if (scoreOutcome(score) !== "passed")
        lines.push(
          `- ${markdownCell(name)}: ${scoreOutcome(score)}${score.reason ? `, ${markdownCell(score.reason)}` : ""}`,
        );
    }
  }
  return lines.join("\n");
}
