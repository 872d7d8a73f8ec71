"""The table of accepted fields in the docs is what is accepted."""

import re
from pathlib import Path

from compdiffuser.data.fields import WANTED

DOCS = Path(__file__).parents[2] / "docs" / "data.md"


def test_the_docs_name_every_field_and_no_other():
    section = DOCS.read_text().partition("### Accepted fields")[2].partition("\n\nA planner")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    named = re.findall(r"`([^`]+)`", " ".join(cell for row in rows for cell in row))
    assert sorted(named) == sorted(WANTED)
