// Copy and download what the grid shows.

import { announce, outcomeName } from "./dom.js";
import { toText } from "./format.js";
import { choosePreview } from "./gridrow.js";

// Texts come in blocks from the server; beyond this number of rows a file has only numbers.
const MAX_TEXT_ROWS = 5_000;
const BLOCK = 200;
const FORMULA = /^[\s]*[=+\-@\t\r|%]/;

/** Quote a value for CSV; a text that a spreadsheet could run as a formula gets an apostrophe. */
export function csvCell(value) {
  if (value === null || value === undefined || (typeof value === "number" && Number.isNaN(value))) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Return the rows of a grid as CSV, one line per sample, configuration and epoch. */
export async function gridToCsv(view, onProgress) {
  const { model, loader } = view;
  const rows = view.visibleRows();
  const withTexts = rows.length <= MAX_TEXT_ROWS;
  await view.loadNumbers(model.numbers);
  const keys = await loadKeys(view);
  const head = [
    "sample_id",
    "configuration",
    "epoch",
    "outcome",
    "score",
    ...model.evaluators,
    "latency_ms",
    "tokens",
    "cost",
  ];
  const lines = [[...head, ...keys.map((key) => `metadata.${key}`), ...(withTexts ? ["input", "expected", "output", "error", "evaluator", "reason"] : [])]];
  for (let start = 0; start < rows.length; start += BLOCK) {
    const block = Array.from(rows.slice(start, start + BLOCK));
    if (withTexts) await loader.loadRows(block);
    for (const row of block) lines.push(...csvRows(view, row, withTexts ? loader.cached(row) : null, keys));
    onProgress?.(Math.min(1, (start + BLOCK) / rows.length));
  }
  return `\ufeff${lines.map((cells) => cells.map(csvCell).join(",")).join("\r\n")}\r\n`;
}

/** Load all metadata columns, and return their keys. */
async function loadKeys({ model, loader, keys }) {
  const missing = keys.filter(({ key }) => !model.metadata.has(key));
  await Promise.all(missing.map(async ({ key }) => model.addMetadata(await loader.loadMetadata(key))));
  return keys.map(({ key }) => key);
}

function csvRows(view, row, texts, keys) {
  const { model } = view;
  const lines = [];
  for (const column of view.shown) {
    for (let epoch = 0; epoch < model.epochs; epoch += 1) {
      const cell = model.cell(row, column) + epoch;
      if (model.outcomes[cell] === 255) continue;
      const marks = model.evaluators.map((name) => outcomeName(model.marksOf(name)[cell]).replace("waiting", ""));
      const numbers = ["latency", "tokens", "cost"].map((name) => roundNumber(model.columns[name]?.[cell]));
      const line = [
        model.ids[row],
        model.configurations[column],
        epoch + 1,
        outcomeName(model.outcomes[cell]),
        roundNumber(model.values[cell]),
        ...marks,
        ...numbers,
        ...keys.map((key) => model.metadataValue(key, row)),
      ];
      const text = texts?.cells.find((one) => one.cell === cell);
      if (texts) line.push(texts.input, texts.expected, text?.output, text?.error, text?.evaluator, text?.reason);
      lines.push(line);
    }
  }
  return lines;
}

function roundNumber(value) {
  return value === undefined || Number.isNaN(value) ? null : Number(value.toPrecision(7));
}

/** Escape a text for a cell of a Markdown table. */
export function markdownCell(value) {
  const text = toText(value).replace(/\s+/g, " ").trim().slice(0, 300);
  return text.replace(/[\\`*_{}[\]<>#|~&!:@]/g, (mark) =>
    mark === "&" ? "&amp;" : mark === "<" ? "&lt;" : mark === ">" ? "&gt;" : `\\${mark}`,
  );
}

/** Return a Markdown table. */
export function markdownTable(headings, rows) {
  const line = (cells) => `| ${cells.map(markdownCell).join(" | ")} |`;
  return [line(headings), `|${headings.map(() => " --- ").join("|")}|`, ...rows.map(line)].join("\n");
}

/** Return the first rows of a grid as a Markdown table. */
export async function gridToMarkdown(view, limit = 50) {
  const { model, loader } = view;
  const rows = Array.from(view.visibleRows().slice(0, limit));
  await loader.loadRows(rows);
  const names = view.shown.map((column) => model.configurations[column]);
  const table = rows.map((row) => {
    const texts = loader.cached(row);
    return [
      model.ids[row],
      texts?.input ?? "",
      ...view.shown.map((column) => {
        // The outcome is that of the epoch whose text is shown.
        const first = model.cell(row, column);
        const shown = texts && choosePreview(texts, first, view, model.configurations[column]);
        if (!shown) return outcomeName(view.states[row * model.width + column]);
        const epoch = model.epochs > 1 ? ` in epoch ${shown.cell - first + 1} of ${model.epochs}` : "";
        return `${outcomeName(view.marks[shown.cell])}${epoch}: ${shown.error ?? shown.output ?? ""}`;
      }),
    ];
  });
  const total = view.visibleRows().length;
  const notes = [
    total > rows.length && `${rows.length} of ${total} samples.`,
    view.evaluator && `Verdicts of ${markdownCell(view.evaluator)}.`,
  ].filter(Boolean);
  const note = notes.length ? `\n\n${notes.join(" ")}` : "";
  return markdownTable(["sample", "input", ...names], table) + note;
}

/** Return the first rows of a grid as JSON, with the start of their texts. */
export async function gridToJson(view, limit = 50) {
  const { model, loader } = view;
  const rows = Array.from(view.visibleRows().slice(0, limit));
  await loader.loadRows(rows);
  const samples = rows.map((row) => {
    const { sample_id: id, input, expected, cells = [] } = loader.cached(row) ?? { sample_id: model.ids[row] };
    const results = view.shown.map((column) => {
      const cell = cells.find((one) => one.cell === model.cell(row, column)) ?? {};
      const { output, error, evaluator, reason } = cell;
      const outcome = outcomeName(view.states[row * model.width + column]);
      return { configuration: model.configurations[column], outcome, output, error, evaluator, reason };
    });
    return { id, input, expected, results };
  });
  return JSON.stringify({ total: view.visibleRows().length, samples }, null, 2);
}

/** Copy a text and say so. */
export async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  announce(`${what} copied`);
}

/** Offer a text as a file. */
export function downloadText(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name.replace(/[^\w.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
