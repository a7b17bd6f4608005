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
    : Math.round(number).toLocaleString("en");
}

/** True for a number that can be shown. */
export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** Format a number with up to four digits. */
export function formatPlain(number) {
  if (!isNumber(number)) return DASH;
  const size = Math.abs(number);
  if (size >= 1000) return size < 1e15 ? Math.round(number).toLocaleString("en") : number.toPrecision(4);
  return size !== 0 && size < 0.0001 ? number.toPrecision(2) : String(Number(number.toPrecision(4)));
}

/** Format a fraction as a percentage. */
export function formatPercent(number) {
  return isNumber(number) ? `${(100 * number).toFixed(1)}%` : DASH;
}

/** Format a score from 0 to 1. */
export function formatScore(number) {
  return isNumber(number) ? number.toFixed(2) : DASH;
}

/** Format a cost in US dollars. */
export function formatCost(number) {
  if (!isNumber(number)) return DASH;
  if (number === 0) return "$0";
  const size = Math.abs(number);
  if (size >= 1) return `$${number.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  const digits = Math.min(10, Math.max(2, 1 - Math.floor(Math.log10(size))));
  return `$${number.toFixed(digits)}`;
}

/** Format a duration in milliseconds. */
export function formatMilliseconds(number) {
  if (!isNumber(number)) return DASH;
  if (number < 10) return `${Number(number.toPrecision(2))} ms`;
  if (number < 1000) return `${Math.round(number)} ms`;
  return number < 10_000 ? `${(number / 1000).toFixed(2)} s` : formatSeconds(number / 1000);
}

/** Format a duration in seconds. */
export function formatSeconds(seconds) {
  if (!isNumber(seconds)) return DASH;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Format a value of a metric or delta by its kind and unit. */
export function formatValue(value, { kind = "number", unit = "" } = {}) {
  if (!isNumber(value)) return DASH;
  if (kind === "rate") return formatPercent(value);
  if (unit === "ms") return formatMilliseconds(value);
  if (unit === "USD") return formatCost(value);
  if (kind === "count") return formatInteger(value);
  if (kind === "score" || (kind === "mean" && !unit)) return value.toFixed(3);
  return unit ? `${formatPlain(value)} ${unit}` : formatPlain(value);
}

/** Format an interval without repeating its unit. */
export function formatInterval(interval, metric) {
  if (!interval) return "";
  const [low, high] = interval.map((bound) => formatValue(bound, metric));
  if (metric?.kind === "rate") return `${low.slice(0, -1)}–${high}`;
  return interval[0] < 0 ? `${dropUnit(low, high)} to ${high}` : `${dropUnit(low, high)}–${high}`;
}

/** Drop the unit of the lower bound if the upper bound has the same: 409–466 ms, but 900 ms–1.20 s. */
function dropUnit(low, high) {
  const unit = low.slice(low.indexOf(" "));
  return low.includes(" ") && high.endsWith(unit) ? low.slice(0, -unit.length) : low;
}

/** Format a difference with its sign; differences of rates are in points. */
export function formatChange(value, { kind = "number", unit = "" } = {}) {
  if (!isNumber(value)) return DASH;
  const size = Math.abs(value);
  let text = formatValue(size, { kind, unit });
  if (kind === "rate") text = (100 * size).toFixed(1);
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
  return p < 0.0001 ? "<0.0001" : String(Number(p.toPrecision(2)));
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

/** Turn any value into a single line of limited length. */
export function toLine(value, limit = 300) {
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

/** Return a readable name for a metric. */
export function metricLabel(name) {
  const words = { pass_rate: "pass rate", strict_pass_rate: "strict pass rate", mean_score: "mean score" };
  return (
    words[name] ??
    name
      .replace(/^field\./, "")
      .replace(/\.mean$/, "")
      .replace(/_/g, " ")
      .replace(/\./g, " · ")
      .replace(/^latency ms/, "latency")
  );
}

/** Split the answer of a comparison: the claim, the first sentence with its figures, and the remaining sentences. */
export function splitAnswer({ answer = "", a = "", b = "" }) {
  const cut = answer.search(/\. (?=(?:Also|Better|Worse|Different|No relevant|Not enough|Not comparable)\b[^.]*:)/);
  const first = cut < 0 ? answer : answer.slice(0, cut + 1);
  const names = Math.max(answer.indexOf(a) + a.length, answer.indexOf(b) + b.length);
  const colon = first.indexOf(": ", names);
  return { claim: colon < 0 ? first : `${first.slice(0, colon)}.`, first, rest: cut < 0 ? "" : answer.slice(cut + 2) };
}
