"""Score sessions with rubrics, and learn rubrics from known scores."""
