import { emptyState } from "./dom.js";
export async function renderComparePage() { return { title: "Compare", element: emptyState("todo") }; }
