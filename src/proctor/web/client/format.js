// Format numbers, times and values as texts, in the same way as the command line.

export const DASH = "–";

/** Format a number with the singular or plural of a noun. */
export function formatCount(number, noun, plural) {
  return `${formatInteger(number)} ${number === 1 ? noun : (plural ?? `${noun}s`)}`;
}

/** Format an integer with separators of thousands. */
export function formatInteger(number) {
  return number === null || number === undefined || Number.isNaN(number)
    ? DASH
    : groupDigits(formatFixed(number, 0));
}

/** Write a number with a fixed number of decimals; exact ties go to the even digit, as in Python. */
export function formatFixed(number, digits) {
  const text = number.toFixed(digits);
  // A tie has exactly one binary digit more than decimals: its decimal expansion then ends with 5 at that place.
  if (Math.abs(number * 2 ** (digits + 1)) % 2 !== 1) return text;
  const lower = number.toFixed(digits + 1).replace(/\.?5$/, "");
  return "02468".includes(lower.at(-1)) ? lower : text;
}

/** Write a number of less than 10^digits with a number of significant digits, without zeros at the end. */
function formatSignificant(number, digits) {
  const exponent = number === 0 ? 0 : Number(number.toExponential().split("e")[1]);
  const decimals = digits - 1 - exponent;
  return String(Number(decimals >= 0 && decimals <= 90 ? formatFixed(number, decimals) : number.toPrecision(digits)));
}

function groupDigits(text) {
  return text.replace(/\d+/, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ","));
}

/** True for a number that can be shown. */
export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** Format a number with up to four digits. */
export function formatPlain(number) {
  if (!isNumber(number)) return DASH;
  const size = Math.abs(number);
  if (size >= 1000) return size < 1e15 ? formatInteger(number) : number.toPrecision(4);
  return size !== 0 && size < 0.0001 ? number.toPrecision(2) : formatSignificant(number, 4);
}

/** Format a fraction as a percentage; only an exact 1 is 100.0% and only an exact 0 is 0.0%. */
export function formatPercent(number) {
  if (!isNumber(number)) return DASH;
  const text = `${formatFixed(100 * number, 1)}%`;
  if (text === "100.0%" && number < 1) return ">99.9%";
  return text === "0.0%" && number > 0 ? "<0.1%" : text;
}

/** Format a score from 0 to 1. */
export function formatScore(number) {
  return isNumber(number) ? formatFixed(number, 2) : DASH;
}

/** Format a cost in US dollars. */
export function formatCost(number) {
  if (!isNumber(number)) return DASH;
  if (number === 0) return "$0";
  const size = Math.abs(number);
  if (size >= 1) return `$${groupDigits(formatFixed(number, 2))}`;
  const digits = Math.min(10, Math.max(2, 1 - Math.floor(Math.log10(size))));
  return `$${formatFixed(number, digits)}`;
}

/** Format a duration in milliseconds. */
export function formatMilliseconds(number) {
  if (!isNumber(number)) return DASH;
  if (number < 10) return `${formatSignificant(number, 2)} ms`;
  if (number < 1000) return `${formatFixed(number, 0)} ms`;
  return number < 10_000 ? `${formatFixed(number / 1000, 2)} s` : formatSeconds(number / 1000);
}

/** Format a duration in seconds. */
export function formatSeconds(seconds) {
  if (!isNumber(seconds)) return DASH;
  if (seconds < 1) return `${formatFixed(seconds * 1000, 0)} ms`;
  if (seconds < 59.5) return `${formatFixed(seconds, seconds < 10 ? 1 : 0)} s`;
  const rounded = Math.round(seconds);
  const minutes = Math.floor(rounded / 60);
  if (minutes < 60) return `${minutes} min ${rounded % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Format a value of a metric or delta by its kind and unit. */
export function formatValue(value, { kind = "number", unit = "" } = {}) {
  if (!isNumber(value)) return DASH;
  if (kind === "rate") return formatPercent(value);
  if (unit === "ms") return formatMilliseconds(value);
  if (unit === "USD") return formatCost(value);
  if (kind === "count") return formatInteger(value);
  if (kind === "score" || (["mean", "quantile"].includes(kind) && !unit)) return formatFixed(value, 3);
  return unit ? `${formatPlain(value)} ${unit}` : formatPlain(value);
}

/** Format an interval without repeating its unit. */
export function formatInterval(interval, metric) {
  if (!interval) return "";
  if (metric?.kind === "rate") return `${interval.map((bound) => formatFixed(100 * bound, 1)).join("–")}%`;
  const [low, high] = interval.map((bound) => formatValue(bound, metric));
  return interval[0] < 0 ? `${dropUnit(low, high)} to ${high}` : `${dropUnit(low, high)}–${high}`;
}

/** Drop the unit of the lower bound if the upper bound has the same: 409–466 ms, but 900 ms–1.20 s. */
export function dropUnit(low, high) {
  const unit = low.slice(low.indexOf(" "));
  return low.includes(" ") && high.endsWith(unit) ? low.slice(0, -unit.length) : low;
}

/** Format a difference with its sign; differences of rates are in points. */
export function formatChange(value, { kind = "number", unit = "" } = {}) {
  if (!isNumber(value)) return DASH;
  const size = Math.abs(value);
  let text = formatValue(size, { kind, unit });
  if (kind === "rate") text = formatFixed(100 * size, 1);
  if (!/[1-9]/.test(text)) return text;
  return `${value < 0 ? "−" : "+"}${text}`;
}

/** Format the interval of a difference. */
export function formatChanges(interval, metric) {
  if (!interval) return DASH;
  const [low, high] = interval.map((bound) => formatChange(bound, metric));
  return `${dropUnit(low, high)} to ${high}`;
}

/** Format a p-value. */
export function formatProbability(p) {
  if (!isNumber(p)) return DASH;
  return p < 0.0001 ? "<0.0001" : formatSignificant(p, 2);
}

/** Describe a metric in words: value, interval, n, and what is not counted. */
export function describeMetric(metric) {
  if (!metric || !isNumber(metric.value)) return metric?.note || "no value";
  const parts = [`${formatValue(metric.value, metric)}, n = ${formatInteger(metric.n)}`];
  parts.push(metric.interval ? `95% interval ${formatInterval(metric.interval, metric)}` : "no interval");
  const missing = describeMissing(metric);
  if (missing) parts.push(missing);
  return parts.join("; ") + (metric.note ? ` (${metric.note})` : "");
}

/** Say what a metric does not count. */
export function describeMissing({ errors = 0, skipped = 0 }) {
  const parts = [];
  if (errors) parts.push(formatCount(errors, "error"));
  if (skipped) parts.push(`${formatInteger(skipped)} skipped`);
  return parts.length ? `${parts.join(", ")} not counted` : "";
}

/** Format a time as a date and a time of day in the reader's time zone. */
export function formatTime(iso) {
  const date = new Date(iso);
  if (!iso || Number.isNaN(date.getTime())) return DASH;
  const pad = (number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

/** Format the time since a moment in one unit. */
export function formatAge(iso, now = Date.now()) {
  const seconds = (now - new Date(iso).getTime()) / 1000;
  if (!Number.isFinite(seconds)) return DASH;
  if (seconds < 60) return "just now";
  const units = [
    ["minute", 60],
    ["hour", 3600],
    ["day", 86_400],
    ["month", 2_629_800],
    ["year", 31_557_600],
  ];
  const [name, size] = units.filter(([, length]) => seconds >= length).at(-1);
  return `${formatCount(Math.floor(seconds / size), name)} ago`;
}

/** Turn any value into text: strings as they are, everything else as indented JSON. */
export function toText(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

// The types of the parts of a message that are images, as IMAGE_TYPES in reports/pages/samples.py.
const IMAGE_TYPES = ["image", "image_url", "input_image"];

/** True if a part of a message is an image. */
export function isImage(part) {
  return IMAGE_TYPES.includes(part?.type);
}

/** Write a list of content parts as their texts, with a word for each image; null for any other value. */
function joinParts(value) {
  const isPart = (part) => isImage(part) || typeof part?.text === "string";
  if (!Array.isArray(value) || !value.some(isImage) || !value.every(isPart)) return null;
  return value.map((part) => (isImage(part) ? "[image]" : part.text)).join(" ");
}

/** Turn any value into a single line of limited length. */
export function toLine(value, limit = 300) {
  value = joinParts(value) ?? value;
  const text = typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);
  const line = text
    .slice(0, limit * 2)
    .replace(/\s+/g, " ")
    .trim();
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}

/** Describe counts of outcomes in words, without zeros. */
export function describeCounts(counts) {
  const parts = ["passed", "failed", "error", "unscored", "skipped"]
    .filter((name) => counts?.[name])
    .map((name) => (name === "error" ? formatCount(counts.error, "error") : `${formatInteger(counts[name])} ${name}`));
  return parts.join(", ") || "no results";
}

/** Shorten an identifier for a narrow column. */
export function shorten(text, limit) {
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

const METRIC_NAMES = {
  pass_rate: "pass rate",
  strict_pass_rate: "strict pass rate",
  success_rate: "success rate",
  mean_score: "mean score",
  total_score: "total score",
  "latency_ms.mean": "mean target latency",
  "latency_ms.p50": "median target latency",
  "latency_ms.p95": "95th percentile of target latency",
  "latency_ms.max": "longest target latency",
  "tokens.mean": "tokens per result",
  "tokens.total": "tokens in total",
  "cost.mean": "cost per result",
  "cost.total": "cost in total",
  "judges.tokens": "tokens of judges",
  "judges.cost": "cost of judges",
};

/** Tell an evaluator apart from a measured quantity of the same name. */
export function evaluatorLabel(name) {
  return ["latency", "tokens", "cost"].includes(name) ? `${name} (evaluator)` : name;
}

/** Return a readable name for a metric; evaluators keep their names. */
export function metricLabel(name, kind = "") {
  if (METRIC_NAMES[name]) return METRIC_NAMES[name];
  const power = name.match(/^pass_(hat|at)_k\.(\d+)$/);
  if (power) return `pass${power[1] === "hat" ? "^" : "@"}${power[2]}`;
  const [, stem, last] = name.match(/^(.+)\.(pass_rate|mean|score|p\d+)$/) ?? [];
  if (!stem) return kind === "score" ? `${evaluatorLabel(name)} score` : name.replace(/_/g, " ");
  const words = { pass_rate: "pass rate", mean: "mean score", score: "score" }[last];
  return `${evaluatorLabel(stem.replace(/^field\./, ""))} ${words ?? `${last.slice(1)}th percentile`}`;
}

/** Put readable names of metrics, and signs, into a sentence; `metrics` maps their names to kinds. */
export function nameMetrics(text, metrics) {
  const names = Object.keys(metrics).sort((a, b) => b.length - a.length);
  for (const name of names) {
    const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    // A single word may also be a word of the sentence: it is a metric in lists only.
    const before = /[._]/.test(name) ? "(?<![\\w.@-])" : "(?<=[:,] )";
    const after = /[._]/.test(name) ? "(?![\\w@-]|\\.\\w)" : "(?=,|\\.(?:\\s|$)|$)";
    // The marks keep the parts of a name that has been replaced out of the next replacement.
    text = text.replace(new RegExp(before + escaped + after, "g"), `\u0001${names.indexOf(name)}\u0002`);
  }
  text = text.replace(/\u0001(\d+)\u0002/g, (_, index) => metricLabel(names[index], metrics[names[index]]));
  // As in the numbers of the pages; the command line writes a hyphen.
  return text.replace(/(?<=[\s(])-(?=\d)/g, "−");
}

/** True if a text contains all words of a query, in any case. */
export function containsWords(text, query) {
  const lower = text.toLowerCase();
  return splitWords(query).every((word) => lower.includes(word));
}

/** Split a query into words in lower case. */
export function splitWords(query) {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Write the invisible characters of an id that change the order or the lines of a text as escapes. */
export function showId(id) {
  return id.replace(
    /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    (mark) => `\\u${mark.codePointAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Leave out what all names have in common if they are too long for a narrow place. */
export function shortenNames(names, limit = 0) {
  const start = countCommon(names);
  const end = countCommon(names.map((name) => [...name].reverse().join("")));
  const shortest = Math.min(...names.map((name) => name.length));
  const isLong = names.some((name) => name.length > limit);
  if (!isLong || names.length < 2 || start + end < 4 || start + end >= shortest) return names;
  return names.map((name) => `${start ? "…" : ""}${name.slice(start, name.length - end)}${end ? "…" : ""}`);
}

// Count the first characters that all names have in common, up to the start of a word or number.
function countCommon(names) {
  let count = 0;
  while (names.every((name) => name[count] !== undefined && name[count] === names[0][count])) count += 1;
  while (count > 0 && /[\p{L}\p{N}.]/u.test(names[0][count - 1])) count -= 1;
  return count;
}

/** Split the answer of a comparison: the claim, the first sentence with its figures, and the remaining sentences. */
export function splitAnswer({ answer = "", a = "", b = "" }) {
  const cut = answer.search(/\. (?=(?:Also|Better|Worse|Different|No relevant|Not enough|Not comparable)\b[^.]*:)/);
  const first = cut < 0 ? answer : answer.slice(0, cut + 1);
  const names = Math.max(answer.indexOf(a) + a.length, answer.indexOf(b) + b.length);
  const colon = first.indexOf(": ", names);
  return { claim: colon < 0 ? first : `${first.slice(0, colon)}.`, first, rest: cut < 0 ? "" : answer.slice(cut + 2) };
}
