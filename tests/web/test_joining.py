"""The page's modules, joined into one script."""

import re

import pytest

from compdiffuser.web.joining import joined

FILES = {
    "main.js": 'import * as a from "./a.js";\nimport { b } from "./b.js";\nconst shared = b(a);\n',
    "a.js": 'import { b } from "./b.js";\nexport class A {}\nexport const shared = b;\n',
    "b.js": "export async function b(own) {}\nconst hidden = 1;\n",
}


def test_each_module_comes_once_after_what_it_imports_in_a_scope_of_its_own():
    script = joined("main.js", FILES.__getitem__)
    assert re.findall(r"^const (\$\w+) =", script, re.MULTILINE) == ["$b", "$a", "$main"]
    assert "const a = $a;\nconst { b } = $b;\n" in script
    assert re.findall(r"return (\{.*\});", script) == ["{ b }", "{ A, shared }", "{  }"]
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("export default 1;\n", "a.js cannot be joined with others: 'export default 1;'"),
        ('import "./b.js";\n', "a.js cannot be joined with others"),
        ('import { main } from "./main.js";\n', "modules import each other: main.js > a.js > main.js"),
    ],
)
def test_what_cannot_be_joined_is_refused(text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        joined("main.js", {**FILES, "a.js": text}.__getitem__)
