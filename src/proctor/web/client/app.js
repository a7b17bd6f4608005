// The page frame: header, theme, keys, and the page that belongs to the address.

import { makeLink, onNavigate, parseAddress, suggestSegments } from "./address.js";
import { renderComparePage } from "./compare.js";
import { append, button, emptyState, errorState, h, installTooltips, loadingState, replaceContent } from "./dom.js";
import { renderEvaluatorsPage } from "./evaluators.js";
import { renderJudgesPage } from "./judges.js";
import { installKeys, setKeys, showKeys } from "./keys.js";
import { renderLabelChoice, renderLabelPage } from "./label.js";
import { renderRubricsPage } from "./rubrics.js";
import { renderRunPage } from "./run.js";
import { renderRunsPage } from "./runs.js";
import { source } from "./source.js";
import { renderTrendsPage } from "./trends.js";

const THEME_KEY = "proctor-theme";
const LOADING_DELAY = 150;
// A report in one file has no other runs, and cannot store labels.
const SERVER_PAGES = ["label", "trends", "evaluators"];

const main = h("main", { id: "main", tabindex: "-1" });
const trail = h("nav", { class: "trail", "aria-label": "Place" });
const themeButton = button("Dark", toggleTheme, { class: "icon" });
let page = null;
let pagePath = null;
let request = 0;

const ROUTES = [
  [(segments) => segments.length === 0 || (segments[0] === "runs" && segments.length === 1), renderRunsPage],
  [(segments) => segments[0] === "runs" && segments.length === 2, renderRunPage],
  [(segments) => segments[0] === "runs" && segments[2] === "rubrics", renderRubricsPage],
  [(segments) => segments[0] === "runs" && segments[2] === "judges", renderJudgesPage],
  [(segments) => source.home === "file" && SERVER_PAGES.includes(segments[0]), renderServerPage],
  [(segments) => segments[0] === "label" && segments.length === 2, renderLabelPage],
  [(segments) => segments[0] === "label" && segments.length === 1, renderLabelChoice],
  [(segments) => segments[0] === "compare", renderComparePage],
  [(segments) => segments[0] === "trends", renderTrendsPage],
  [(segments) => segments[0] === "evaluators", renderEvaluatorsPage],
];

function buildFrame() {
  const links = [
    ["Runs", ["runs"]],
    ["Compare", ["compare"]],
    ["Trends", ["trends"]],
    ["Evaluators", ["evaluators"]],
  ];
  const shown = source.home === "file" ? [] : links;
  const header = h(
    "header",
    { class: "top" },
    h("a", { class: "brand", href: "#/" }, "Proctor"),
    trail,
    h(
      "nav",
      { class: "pages", "aria-label": "Pages" },
      shown.map(([text, segments]) => h("a", { href: makeLink(segments), "data-page": segments[0] }, text)),
    ),
    h(
      "div",
      { class: "top-buttons" },
      themeButton,
      button("?", showKeys, { class: "icon", "aria-label": "Keys", "data-tip": "keys (?)" }),
    ),
  );
  const skip = h(
    "a",
    {
      class: "skip",
      href: "#main",
      onclick: (event) => {
        event.preventDefault();
        main.focus();
      },
    },
    "Skip to the content",
  );
  append(document.body, [
    skip,
    header,
    main,
    h("div", { id: "announcer", class: "visually-hidden", role: "status", "aria-live": "polite" }),
  ]);
}

function readTheme() {
  try {
    return localStorage.getItem(THEME_KEY);
  } catch {
    return null;
  }
}

function isDark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", `Use the ${isDark() ? "light" : "dark"} theme`);
}

function toggleTheme() {
  const theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem(THEME_KEY, theme);
  } catch {
    // A report opened from disk may have no storage.
  }
  applyTheme(theme);
}

/** Show the page of the address; a page that is already open only receives the new parameters. */
async function showPage() {
  const address = parseAddress();
  const path = JSON.stringify([
    address.segments,
    address.segments[0] === "compare" ? [address.params.get("a"), address.params.get("b")] : null,
  ]);
  if (page && path === pagePath && page.update) {
    page.update(address);
    return;
  }
  const current = (request += 1);
  pagePath = path;
  leavePage();
  const timer = setTimeout(() => replaceContent(main, loadingState()), LOADING_DELAY);
  try {
    const next = await findPage(address)(address);
    if (current !== request) return next.destroy?.();
    page = next;
    replaceContent(main, next.element);
    setTitle(next.title, next.trail ?? []);
    setKeys(next.keys, next.keyTexts);
    next.ready?.();
  } catch (error) {
    if (current === request) showError(error);
  } finally {
    clearTimeout(timer);
  }
}

function leavePage() {
  page?.destroy?.();
  page = null;
  setKeys({});
  document.body.classList.remove("with-panel");
  for (const link of document.querySelectorAll("[data-page]")) {
    const isCurrent = link.dataset.page === (parseAddress().segments[0] ?? "runs");
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (scrollY) scrollTo(0, 0);
}

function findPage({ segments }) {
  const route = ROUTES.find(([matches]) => matches(segments));
  return route
    ? route[1]
    : renderUnknownPage;
}

/** Say that there is no such page, and link the one that was probably meant. */
async function renderUnknownPage({ segments, params }) {
  const { runs } = await source.get("runs").catch(() => ({ runs: [] }));
  const meant = suggestSegments(segments, runs.map((run) => run.run_id));
  const link = meant && h("p", null, "Did you mean ", h("a", { href: makeLink(meant, params) }, makeLink(meant)), "?");
  const action = h("div", null, link, h("p", null, h("a", { href: "#/" }, "All runs")));
  return { title: "Unknown page", element: emptyState("There is no such page.", "", action, "h1") };
}

/** Say which command shows a page that needs the history. */
async function renderServerPage({ segments }) {
  const { runs } = await source.get("runs");
  const isLabel = segments[0] === "label";
  const title = isLabel ? "Outputs cannot be labelled in this file." : "This page is not part of a report in one file.";
  const text = isLabel
    ? "Labels are stored in the history. Open the run in the viewer, and choose Label:"
    : "It reads the history. Open it in the viewer:";
  const command = ["proctor view", isLabel && runs.length === 1 && runs[0].run_id, "--open"].filter(Boolean).join(" ");
  const action = h("div", null, h("pre", { class: "command" }, command), h("p", null, h("a", { href: "#/" }, "Back to the report")));
  return { title: "Viewer", element: emptyState(title, text, action, "h1") };
}

function showError(error) {
  setTitle("Error", []);
  const retry = () => {
    pagePath = null;
    showPage();
  };
  const state = errorState(error, retry, "h1");
  state.append(h("a", { href: "#/" }, source.home === "file" ? "Back to the report" : "All runs"));
  replaceContent(main, state);
  if (!(error.status >= 0)) throw error;
}

function setTitle(title, steps) {
  document.title = title ? `${title} – Proctor` : "Proctor";
  replaceContent(
    trail,
    steps.map((step) => [
      h("span", { class: "separator", "aria-hidden": "true" }, "›"),
      step.href
        ? h("a", { href: step.href, dir: "auto" }, step.text)
        : h("span", { dir: "auto", "aria-current": "page" }, step.text),
    ]),
  );
}

async function start() {
  buildFrame();
  applyTheme(readTheme());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => applyTheme());
  installTooltips();
  installKeys({ "?": showKeys, t: toggleTheme });
  onNavigate(showPage);
  await showPage();
}

start();
