import { emptyState } from "./dom.js";
export async function renderJudgesPage() { return { title: "Judges", element: emptyState("todo") }; }
