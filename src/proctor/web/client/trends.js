import { emptyState } from "./dom.js";
export async function renderTrendsPage() { return { title: "Trends", element: emptyState("todo") }; }
