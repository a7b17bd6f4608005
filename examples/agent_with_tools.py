"""Evaluate an agent with tools: the main loop calls a model, runs its tool calls, and records the session.

Run: python agent_with_tools.py
The model is a function here; write an address such as "openai:gpt-4o-mini" for a real one.
"""

from proctor import (
    MainLoop,
    MarkdownSection,
    ModelRequest,
    ModelResponse,
    Prompt,
    PromptTemplate,
    Session,
    ToolCall,
    evaluate,
    exact_match,
    tool,
    tool_called,
)

CAPITALS = {"France": "Paris", "Italy": "Rome"}


@tool
def look_up(country: str) -> str:
    """Find the capital of a country."""
    return CAPITALS[country]


def model(request: ModelRequest) -> ModelResponse:
    """Call the tool first, then answer with its result."""
    last = request.messages[-1]
    if last.role == "tool":
        return ModelResponse(str(last.content))
    country = "France" if "France" in str(last.content) else "Italy"
    return ModelResponse("", tool_calls=(ToolCall("look_up", {"country": country}, call_id="1"),))


class CapitalLoop(MainLoop[str, str]):
    template = PromptTemplate[str](
        ns="qa", key="capital", sections=[MarkdownSection("Question", "Capital of $country?", key="q")]
    )

    def initialize(self, request):
        return Prompt(self.template).bind(country=request), Session()


dataset = [{"id": name, "input": name, "expected": city} for name, city in CAPITALS.items()]
report = evaluate(CapitalLoop(model=model, tools=[look_up]), dataset, [exact_match, tool_called("look_up")])
print(f"{report.pass_rate:.0%} of {report.total} passed")
print([type(event).__name__ for event in report.results[0].trial.session])

# Output:
# 100% of 2 passed
# ['Message', 'Message', 'ModelCall', 'ToolCall', 'Message', 'Message', 'ModelCall']
