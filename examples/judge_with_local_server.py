"""Judge answers with a model behind HTTP; a scripted server on this machine stands in for it.

Run: python judge_with_local_server.py
For a real model write "openai:gpt-4o-mini", or the address of your server, in place of `model`.
"""

import json

from proctor import evaluate, llm_judge
from proctor.testing import ModelServer


def grade(request):
    """Answer as a judge would: Proctor asks servers for JSON with a reason and a rating."""
    polite = "Thank you" in request.text
    return json.dumps({"reason": "It is polite." if polite else "It is curt.", "rating": "good" if polite else "poor"})


answers = {"refund": "Thank you for asking. You have 30 days.", "hours": "Nine to five."}
dataset = [{"id": name, "input": f"A question about {name}"} for name in answers]

with ModelServer(grade) as server:
    model = f"{server.url}/v1#scripted"
    judge = llm_judge(model, "Is the answer polite?")
    report = evaluate(lambda question: answers[question.split()[-1]], dataset, judge)
    print(len(server.calls), "calls of the model")

for result in report.results:
    score = result.scores["llm_judge"]
    print(result.sample_id, score.value, score.passed, score.reason)

# Output:
# 2 calls of the model
# refund 0.75 True It is polite.
# hours 0.25 False It is curt.
