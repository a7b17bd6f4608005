// Label outputs of a run by hand, one at a time. The server sends no verdict, so the page cannot show one.

import { makeLink, navigate } from "./address.js";
import { announce, button, emptyState, errorState, h, outcomeMark, replaceContent, select } from "./dom.js";
import { formatCount, formatInteger, formatTime, showId } from "./format.js";
import { loadCards } from "./judges.js";
import { joinPath, source } from "./source.js";
import { renderValue } from "./transcript.js";

const DRAWN = { random: "drawn at random", stratified: "drawn in balance", disagreement: "drawn where evaluators disagree" };
const NAME_KEY = "proctor-annotator";
const DEFAULT_SIZE = "50";
const MAX_CHOICES = 50;
const STRATEGIES = {
  random: ["At random", "Every output has the same chance. Choose this if you are not sure."],
  stratified: ["Balanced", "At least a quarter of the outputs passed, and a quarter failed. Useful if one verdict is rare."],
  disagreement: ["Disagreements", "Outputs on which evaluators disagree. Finds mistakes, but is no measure of agreement."],
};
const ACTIONS = [
  ["p", "pass", "Pass", "passed"],
  ["f", "fail", "Fail", "failed"],
  ["s", "skip", "Skip"],
  ["u", "undo", "Undo"],
];
const WORDS = { pass: "Passed", fail: "Failed", skip: "Skipped" };

/** Show the labelling page of a run: the choice of a session, or its next output. */
export async function renderLabelPage(address) {
  const reference = address.segments[1];
  const choices = await source.get(`${joinPath("runs", reference)}/label`);
  const page = new LabelPage(reference, choices);
  await page.update(address);
  return page;
}

/** Let the reader choose the run to label. */
export async function renderLabelChoice() {
  const { runs } = await source.get("runs");
  const choices = runs.filter((run) => run.finished > 0);
  const finished = choices.slice(0, MAX_CHOICES);
  const describe = (run) => ` ${formatTime(run.started_at)}, ${formatCount(run.finished, "result")}`;
  const list = finished.map((run) =>
    h("li", null, h("a", { href: makeLink(["label", run.run_id]), dir: "auto" }, run.name), h("span", { class: "quiet" }, describe(run))),
  );
  const empty = emptyState("There are no outputs to label yet.", "", h("pre", { class: "command" }, "proctor demo"), "h1");
  const lead = h("div", { class: "lead" }, h("h1", null, "Choose a run to label."));
  const more =
    choices.length > MAX_CHOICES
      ? h("p", { class: "quiet" }, `These are the newest ${MAX_CHOICES} of ${formatCount(choices.length, "run")}. Others: `, h("a", { href: "#/" }, "All runs"))
      : null;
  const element = h("div", { class: "page" }, list.length ? [lead, h("ul", { class: "sentences" }, list), more] : empty);
  return { title: "Label", trail: [{ text: "label" }], element };
}

class LabelPage {
  keys = {};
  keyTexts = [...ACTIONS.map(([key, , text]) => [key, text.toLowerCase()]), ["c", "comment on this output"]];
  title = "Label";

  constructor(reference, choices) {
    this.reference = reference;
    this.choices = choices;
    this.trail = [{ text: choices.name, href: makeLink(["runs", choices.run_id]) }, { text: "label" }];
    this.element = h("div", { class: "page" });
    this.heading = h("h1", { tabindex: "-1" });
    this.progress = h("progress", { "aria-label": "Labelled outputs" });
    this.count = h("span");
    this.last = h("p", { class: "quiet label-last" });
    this.problem = h("div");
    this.output = h("div", { class: "label-page" });
    this.comment = h("input", {
      type: "text",
      placeholder: "Comment, optional (c)",
      "aria-label": "Comment on this output",
      maxlength: "10000",
      onkeydown: (event) => event.key === "Enter" && event.target.blur(),
    });
    this.tools = h(
      "div",
      { class: "label-tools", role: "group", "aria-label": "Label" },
      ACTIONS.map(([key, action, text, outcome]) =>
        button(
          [outcome && outcomeMark(outcome, { label: false }), ` ${text} `, h("kbd", { "aria-hidden": "true" }, key)],
          () => this.#apply(action),
          { "aria-keyshortcuts": key, "data-action": action },
        ),
      ),
      this.comment,
      this.last,
    );
    for (const [key, action] of ACTIONS) this.keys[key] = (event) => !event.repeat && this.#apply(action);
    this.keys.c = () => (this.settings ? this.comment.focus() : false);
  }

  /** Follow the address: without an annotator the session is chosen first. */
  async update({ params }) {
    this.settings = null;
    if (!params.get("annotator")) {
      replaceContent(this.element, this.#renderForm(params));
      return;
    }
    const { annotator, evaluator = "", strategy = "random", size = DEFAULT_SIZE, seed = "0" } = Object.fromEntries(params);
    const settings = { annotator, evaluator, strategy, size, seed };
    try {
      const state = await source.get(`${joinPath("runs", this.reference)}/label/next`, settings);
      this.settings = { ...settings, size: Number(size), seed: Number(seed) };
      replaceContent(this.element, this.#renderLead(), this.problem, this.output, this.tools);
      this.#show(state);
      this.ready();
    } catch (error) {
      const choose = h("a", { href: makeLink(["label", this.reference], { evaluator }) }, "Choose again");
      replaceContent(this.element, errorState(error, () => this.update({ params }), "h1"), choose);
      if (!(error.status >= 0)) throw error;
    }
  }

  ready() {
    if (this.settings) this.heading.focus();
  }

  #renderForm(params) {
    const { choices } = this;
    const wanted = { evaluator: params.get("evaluator") ?? "", strategy: params.get("strategy") ?? "random" };
    const names = choices.evaluators.map(({ name, judges }) => [
      name,
      !name ? "overall verdict" : judges.length ? `${name} (asks ${judges.join(", ")})` : name,
    ]);
    const annotator = h("input", { type: "text", required: true, maxlength: "100", list: "annotators", autocomplete: "off" });
    annotator.value = readName() ?? choices.annotator;
    const size = h("input", { type: "number", min: "1", max: "100000", required: true });
    size.value = params.get("size") ?? DEFAULT_SIZE;
    const start = (event) => {
      event.preventDefault();
      const name = annotator.value.trim();
      if (!name) return annotator.focus();
      storeName(name);
      navigate(makeLink(["label", this.reference], { ...wanted, annotator: name, size: size.value, seed: params.get("seed") }));
    };
    const known = [...new Set(choices.labelled.map((one) => one.annotator))];
    return [
      h(
        "div",
        { class: "lead" },
        h("h1", null, `Label outputs of ${choices.name}`),
        h(
          "p",
          { class: "quiet prose" },
          "You read an input, the expected value and an output, and say whether the output passes. The verdict stays hidden, so that it cannot influence you. Each label is stored immediately: stop whenever you like, and start again with the same choices to continue.",
        ),
      ),
      h(
        "form",
        { class: "label-form", onsubmit: start },
        select("Label for", names, wanted.evaluator, (value) => (wanted.evaluator = value)),
        field("Your name", annotator),
        h(
          "datalist",
          { id: "annotators" },
          known.map((name) => h("option", { value: name })),
        ),
        field("Number of outputs", size),
        h(
          "fieldset",
          { class: "label-draw" },
          h("legend", { class: "control-label" }, "Draw outputs"),
          choices.strategies.map((name) => {
            const [title, text] = STRATEGIES[name] ?? [name, ""];
            const choose = () => (wanted.strategy = name);
            const box = h("input", { type: "radio", name: "strategy", checked: wanted.strategy === name, onchange: choose });
            return h("label", null, box, h("span", null, h("strong", null, title), h("span", { class: "quiet" }, ` ${text}`)));
          }),
        ),
        h("button", { type: "submit", class: "primary" }, "Start labelling"),
      ),
      choices.labelled.length > 0 &&
        h(
          "ul",
          { class: "sentences" },
          choices.labelled.map((one) =>
            h(
              "li",
              null,
              h("bdi", null, one.annotator),
              ` gave ${formatCount(one.n, "label")} for ${one.evaluator || "the overall verdict"}.`,
            ),
          ),
        ),
    ];
  }

  #renderLead() {
    const { evaluator, annotator, strategy } = this.settings;
    return h(
      "div",
      { class: "lead" },
      this.heading,
      h(
        "p",
        { class: "quiet" },
        "Labelled by ",
        h("bdi", null, annotator),
        `, ${DRAWN[strategy]}. The verdict of ${evaluator || "the run"} stays hidden until the end. `,
        h("a", { href: makeLink(["label", this.reference], { evaluator }) }, "Change"),
      ),
      h("p", { class: "label-progress quiet" }, this.progress, this.count),
    );
  }

  #show(state) {
    const { total, labelled, skipped, output, comment } = state;
    const done = labelled + skipped;
    this.item = output?.id;
    this.comment.value = comment;
    this.progress.max = total;
    this.progress.value = done;
    replaceContent(this.problem);
    const skips = skipped ? `, ${formatInteger(skipped)} skipped` : "";
    this.count.textContent = `${formatInteger(labelled)} of ${formatInteger(total)} labelled${skips}`;
    for (const control of this.tools.querySelectorAll("button, input")) {
      const isUndo = control.dataset.action === "undo";
      control.disabled = isUndo ? done === 0 : !output;
      control.hidden = !isUndo && !output;
    }
    if (!output) return this.#showEnd(state);
    this.sampleId = output.sample_id;
    this.heading.textContent = `Output ${formatInteger(output.position)} of ${formatInteger(total)}: ${this.#askQuestion()}`;
    replaceContent(
      this.output,
      h("p", { class: "quiet" }, "Sample ", h("bdi", { class: "sample-id" }, showId(output.sample_id))),
      output.texts.map(({ title, value }) =>
        h(
          "section",
          { "aria-label": title },
          h("h2", null, title[0].toUpperCase() + title.slice(1)),
          renderValue(value, title),
        ),
      ),
    );
    scrollTo(0, 0);
  }

  #askQuestion() {
    const { evaluator } = this.settings;
    return evaluator ? `does it pass “${evaluator}”?` : "does it pass?";
  }

  #showEnd({ total, labelled, skipped }) {
    const { evaluator, annotator, strategy, size } = this.settings;
    const all = skipped
      ? `${formatInteger(labelled)} of ${formatCount(total, "drawn output")} and skipped ${formatInteger(skipped)}`
      : `all ${formatCount(total, "drawn output")}`;
    this.heading.textContent = total ? `Done: ${annotator} has labelled ${all}.` : "There is no output to label.";
    const judges = h("a", { href: makeLink(["runs", this.choices.run_id, "judges"]) }, "All judges of this run");
    const link = makeLink(["label", this.reference], { evaluator, strategy, size: String(2 * size) });
    const more = total >= size && h("a", { href: link }, "Label more outputs");
    const card = h("div");
    replaceContent(this.output, card, h("p", null, more, more && " · ", judges));
    loadCards(card, this.choices.run_id, evaluator);
    if (document.activeElement === document.body) this.heading.focus();
  }

  // A key that is pressed before the next output is shown would label an output that nobody has read.
  async #apply(action) {
    const control = this.tools.querySelector(`[data-action="${action}"]`);
    if (!this.settings || this.isBusy || control.disabled) return;
    this.isBusy = true;
    try {
      const change = { ...this.settings, action, item: this.item ?? "", comment: this.comment.value };
      const state = await source.post(`${joinPath("runs", this.reference)}/labels`, change);
      const words = action === "undo" ? "The last label is taken back" : `${WORDS[action]}: ${this.sampleId}`;
      this.#show(state);
      this.last.textContent = action === "undo" ? `${words}.` : `${words}. Press u to take it back.`;
      announce(`${words}. ${this.heading.textContent}`);
    } catch (error) {
      const fix = error.fix && ` Fix: ${error.fix}.`;
      replaceContent(this.problem, h("div", { class: "warnings", role: "alert" }, error.message, fix));
      if (!(error.status >= 0)) throw error;
    } finally {
      this.isBusy = false;
    }
  }
}

function field(label, input) {
  return h("label", { class: "control" }, h("span", { class: "control-label" }, label), input);
}

function readName() {
  try {
    return localStorage.getItem(NAME_KEY);
  } catch {
    return null;
  }
}

function storeName(name) {
  try {
    localStorage.setItem(NAME_KEY, name);
  } catch {
    // The name is typed again next time.
  }
}
