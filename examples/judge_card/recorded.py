from proctor import Score


def helpful(output, expected, *, model="recorded:judge"):
    """A recorded judge: its verdict is stored with the sample, so that the example runs without a model."""
    return Score(float(expected == "pass"), expected == "pass")
