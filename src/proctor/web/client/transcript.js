// A session as a readable transcript: messages, folded tool calls, nested sub-agents, images, and a time line.

import { foldout, h, isSafeImage, outcomeMark, quotation, svg } from "./dom.js";
import { formatCost, formatCount, formatInteger, formatMilliseconds, isImage, isNumber, toLine, toText } from "./format.js";
import { dataTable } from "./plots.js";

const MAX_EVENTS = 400;
const MAX_DEPTH = 6;

/** Render the events of a session. */
export function renderTranscript(events, depth = 0) {
  if (!events.length) return h("p", { class: "quiet" }, "The session has no events.");
  const shown = events.slice(0, MAX_EVENTS);
  const answered = new Set(
    events
      .filter((event) => event.type === "tool_call")
      .map((event) => event.call_id)
      .filter(Boolean),
  );
  const list = h(
    "ol",
    { class: "transcript" },
    shown.map((event) => renderEvent(event, answered, depth)),
  );
  if (events.length > shown.length) {
    const rest = h(
      "li",
      null,
      h(
        "button",
        {
          type: "button",
          class: "link",
          onclick: () => {
            rest.replaceWith(
              ...events
                .slice(MAX_EVENTS)
                .map((event) => renderEvent(event, answered, depth))
                .filter(Boolean),
            );
          },
        },
        `Show ${formatCount(events.length - shown.length, "more event")}`,
      ),
    );
    list.append(rest);
  }
  return list;
}

/** Draw the model calls and tool calls of a session as spans. */
export function renderTimeline(events) {
  const spans = events.flatMap((event) => {
    if (event.type === "tool_call" && isNumber(event.duration_ms))
      return [
        {
          kind: event.error ? "tool failed" : "tool",
          duration: event.duration_ms,
          text: `${event.name}, ${formatMilliseconds(event.duration_ms)}`,
        },
      ];
    if (event.type === "model_call" && isNumber(event.latency_ms))
      return [{ kind: "model", duration: event.latency_ms, text: describeModelCall(event) }];
    return [];
  });
  const total = spans.reduce((sum, span) => sum + span.duration, 0);
  const figure = spans.length > 1 ? timeline(spans) : null;
  if (!figure) return null;
  const tools = spans.filter((span) => span.kind.startsWith("tool")).length;
  const caption = `${formatCount(spans.length - tools, "model call")} and ${formatCount(tools, "tool call")}, ${formatMilliseconds(total)} in order`;
  figure.append(
    h(
      "figcaption",
      { class: "quiet" },
      h("span", { class: "key model" }),
      "model ",
      h("span", { class: "key tool" }),
      "tool ",
      spans.some((span) => span.kind === "tool failed") && [h("span", { class: "key failed" }), "failed tool "],
      `· ${caption}`,
    ),
  );
  return figure;
}

function describeModelCall(event) {
  const usage = event.usage ?? {};
  const parts = [event.model, isNumber(event.latency_ms) && formatMilliseconds(event.latency_ms)];
  if (isNumber(usage.input_tokens) || isNumber(usage.output_tokens))
    parts.push(`${formatInteger(usage.input_tokens ?? 0)} + ${formatInteger(usage.output_tokens ?? 0)} tokens`);
  if (isNumber(usage.cost)) parts.push(formatCost(usage.cost));
  if (event.finish_reason && event.finish_reason !== "stop") parts.push(`ended: ${event.finish_reason}`);
  if (event.details?.cached) parts.push("from the cache");
  return parts.filter(Boolean).join(", ");
}

function renderEvent(event, answered, depth) {
  switch (event.type) {
    case "message":
      return renderMessage(event, answered);
    case "tool_call":
      return h("li", { class: "event tool" }, renderToolCall(event, depth));
    case "model_call":
      return h(
        "li",
        { class: "event model-call quiet" },
        describeModelCall(event),
        event.details?.error && h("span", { class: "problem" }, ` ${toLine(event.details.error)}`),
      );
    default:
      return renderCustom(event, depth);
  }
}

function renderMessage(event, answered) {
  const requested = (event.tool_calls ?? []).filter((call) => !answered.has(call.call_id));
  const name = event.name ? ` (${event.name})` : "";
  const parts = renderContent(event.content);
  if (!parts.length && !requested.length) return null;
  const folded = event.role === "system";
  const body = [parts, requested.map((call) => renderToolCall(call, 0))];
  return h(
    "li",
    { class: `event message ${event.role}` },
    folded
      ? foldout(
          [
            h("span", { class: "role" }, `${event.role}${name}`),
            h("span", { class: "quiet" }, ` ${toLine(event.content, 80)}`),
          ],
          body,
        )
      : [h("div", { class: "role" }, `${event.role}${name}`), body],
  );
}

/** Render a value that people read: messages and images as in a transcript, everything else as a quotation. */
export function renderValue(value, label) {
  const isMessage = (part) => typeof part?.role === "string" && "content" in part && !part.tool_calls && !part.tool_call_id;
  const list = Array.isArray(value) && value.length > 0 ? value : [null];
  if (list.every(isMessage)) return renderTranscript(list.map((message) => ({ type: "message", ...message })));
  if (list.some((part) => readImage(part) !== null)) return h("div", { class: "parts" }, renderContent(list));
  return quotation(toText(value), { label });
}

/** Render a content: text, or a list of parts with texts and images. */
function renderContent(content) {
  if (content === null || content === undefined || content === "") return [];
  if (typeof content === "string") return [quotation(content)];
  if (!Array.isArray(content)) return [quotation(toText(content))];
  return content.map((part) => {
    if (typeof part === "string") return quotation(part);
    const address = readImage(part);
    if (address !== null) return renderImage(address);
    return quotation(typeof part?.text === "string" ? part.text : toText(part));
  });
}

function readImage(part) {
  if (!isImage(part)) return null;
  if (part.type !== "image") return String(part.image_url?.url ?? part.image_url ?? "");
  const origin = part.source ?? part;
  if (typeof origin.data === "string")
    return `data:${origin.media_type ?? origin.mime_type ?? "image/png"};base64,${origin.data}`;
  return String(origin.url ?? "");
}

function renderImage(address) {
  if (isSafeImage(address)) return h("img", { src: address, alt: "attached image", class: "attached" });
  const text = address.startsWith("data:")
    ? `an image that is not shown (${address.slice(5, 30)}…)`
    : `an image that is not loaded: ${address.slice(0, 300)}`;
  return h("p", { class: "quiet attached-text" }, text);
}

/** Write the arguments of a tool call as in Python: query="…", limit=3. */
export function writeArguments(values) {
  if (typeof values !== "object" || Array.isArray(values)) return toLine(values, 120);
  return toLine(
    Object.entries(values)
      .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
      .join(", "),
    120,
  );
}

function renderToolCall(call, depth) {
  const time = isNumber(call.duration_ms) ? formatMilliseconds(call.duration_ms) : "";
  const head = [
    call.error ? outcomeMark("failed", { label: false }) : null,
    h("span", { class: "tool-name" }, call.name),
    h(
      "span",
      { class: "tool-arguments", dir: "auto" },
      `(${writeArguments(call.arguments ?? {})})`,
    ),
    h("span", { class: "quiet" }, call.error ? ` error: ${toLine(call.error, 120)}` : "", time && ` ${time}`),
  ];
  const nested = depth < MAX_DEPTH ? readNested(call.result) : null;
  return foldout(
    head,
    [
      h("div", { class: "part-label" }, "arguments"),
      quotation(toText(call.arguments ?? {})),
      call.error && [h("div", { class: "part-label" }, "error"), quotation(toText(call.error))],
      call.result !== null &&
        call.result !== undefined && [
          h("div", { class: "part-label" }, "result"),
          nested ? renderTranscript(nested, depth + 1) : quotation(toText(call.result)),
        ],
    ],
    { class: "foldout tool-call" },
  );
}

function renderCustom(event, depth) {
  const data = event.data ?? event;
  const nested = depth < MAX_DEPTH ? readNested(data) : null;
  const name = [event.kind ?? event.type ?? "event", data?.name].filter((text) => typeof text === "string").join(": ");
  if (nested)
    return h(
      "li",
      { class: "event nested" },
      foldout(
        [h("span", { class: "role" }, name), h("span", { class: "quiet" }, ` ${formatCount(nested.length, "event")}`)],
        renderTranscript(nested, depth + 1),
      ),
    );
  return h(
    "li",
    { class: "event custom" },
    foldout(
      [h("span", { class: "role" }, name), h("span", { class: "quiet" }, ` ${toLine(data, 100)}`)],
      quotation(toText(data)),
    ),
  );
}

/** Return the events inside an object, if it holds a session of its own. */
function readNested(data) {
  const events = data?.events ?? data?.session?.events;
  const isSession =
    Array.isArray(events) &&
    events.length > 0 &&
    events.every((event) => event && typeof event === "object" && typeof event.type === "string");
  return isSession ? events : null;
}

/** The spans of a session in order: model calls and tool calls with their durations. */
function timeline(spans) {
  const total = spans.reduce((sum, span) => sum + span.duration, 0);
  if (!total) return null;
  let start = 0;
  const bars = spans.map((span) => {
    const x = (100 * start) / total;
    start += span.duration;
    return svg("rect", {
      class: `span ${span.kind}`,
      x: `${x}%`,
      width: `${Math.max(0.4, (100 * span.duration) / total)}%`,
      y: 2,
      height: 14,
      "data-tip": span.text,
    });
  });
  const rows = spans.map((span) => [span.text]);
  return h(
    "figure",
    { class: "timeline" },
    svg("svg", { width: "100%", height: 18, "aria-hidden": "true" }, bars),
    dataTable("Model calls and tool calls with their durations", ["Step"], rows),
  );
}
