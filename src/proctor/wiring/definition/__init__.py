"""`define`: select fields of a result, evaluate them, and store the runs."""
