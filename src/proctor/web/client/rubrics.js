import { emptyState } from "./dom.js";
export async function renderRubricsPage() { return { title: "Rubrics", element: emptyState("todo") }; }
