# Written by tools/generate.py from EXPORTS in proctor.judges.
from proctor.evaluators.judges.claims import grounded_claims as grounded_claims
from proctor.evaluators.judges.pairwise import position_bias as position_bias
from proctor.evaluators.judges.pairwise import preferences_in as preferences_in
from proctor.evaluators.judges.scale import JudgeOutput as JudgeOutput
from proctor.evaluators.judges.scale import PASSING_RATINGS as PASSING_RATINGS
from proctor.evaluators.judges.scale import RATING_VALUES as RATING_VALUES
from proctor.evaluators.judges.scale import Rating as Rating
from proctor.evaluators.llm import llm_judge as llm_judge
from proctor.evaluators.llm import quality_score as quality_score
from proctor.evaluators.llm import rubric_evaluation as rubric_evaluation
from proctor.evaluators.llm import simulated_user_role as simulated_user_role
from proctor.evaluators.opinions import panel as panel
from proctor.evaluators.opinions import panel_agreement as panel_agreement
from proctor.evaluators.opinions import prefer as prefer
from proctor.evaluators.opinions import with_canary as with_canary
from proctor.evaluators.rubric_files import load_rubrics as load_rubrics
from proctor.evaluators.rubrics import EvaluationConfig as EvaluationConfig
from proctor.evaluators.rubrics import RubricScorer as RubricScorer
from proctor.evaluators.rubrics import rubric as rubric
from proctor.evaluators.rubrics import rubric_evaluators as rubric_evaluators
from proctor.records.rubric import ChatSession as ChatSession
from proctor.records.rubric import Rubric as Rubric
from proctor.records.rubric import RubricSet as RubricSet

__all__ = [
    "ChatSession",
    "EvaluationConfig",
    "JudgeOutput",
    "PASSING_RATINGS",
    "RATING_VALUES",
    "Rating",
    "Rubric",
    "RubricScorer",
    "RubricSet",
    "grounded_claims",
    "llm_judge",
    "load_rubrics",
    "panel",
    "panel_agreement",
    "position_bias",
    "prefer",
    "preferences_in",
    "quality_score",
    "rubric",
    "rubric_evaluation",
    "rubric_evaluators",
    "simulated_user_role",
    "with_canary",
]
EXPORTS: dict[str, tuple[str, ...]]
