"""The engine that every entry point uses: plan a run, run and score its trials, finish the report."""
