import { emptyState } from "./dom.js";
export async function renderEvaluatorsPage() { return { title: "Evaluators", element: emptyState("todo") }; }
