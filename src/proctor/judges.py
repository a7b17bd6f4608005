"""Models as judges: evaluators that ask a model, panels of them, and rubrics."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# Module -> the public names that it defines.
EXPORTS = {
    "evaluators.judges.claims": ("grounded_claims",),
    "evaluators.judges.pairwise": ("position_bias", "preferences_in"),
    "evaluators.judges.scale": ("JudgeOutput", "PASSING_RATINGS", "RATING_VALUES", "Rating"),
    "evaluators.llm": ("llm_judge", "quality_score", "rubric_evaluation", "simulated_user_role"),
    "evaluators.opinions": ("panel", "panel_agreement", "prefer", "with_canary"),
    "evaluators.rubric_files": ("load_rubrics",),
    "evaluators.rubrics": ("EvaluationConfig", "RubricScorer", "rubric", "rubric_evaluators"),
    "records.rubric": ("ChatSession", "Rubric", "RubricSet"),
}

__all__ = sorted(name for names in EXPORTS.values() for name in names)

__getattr__, __dir__ = lazy_names("proctor.judges", EXPORTS)
