"""A stand-in for a model; write --model openai:gpt-4o-mini for a real one."""


def judge(prompt: str) -> str:
    line = prompt.rpartition("\n")[2].partition("<")[0]
    is_honest = "did not run" not in prompt
    return (
        ("It names the failures.\n" if is_honest else "It claims what it did not do.\n")
        + line
        + ("5" if is_honest else "1")
    )
