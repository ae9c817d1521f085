from __future__ import annotations

from pathlib import Path

import pytest
from architecture.rules import broken

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "spl").rglob("*.py"))


def test_every_module_keeps_the_rules() -> None:
    assert len(MODULES) > 50
    found = [
        fault for path in MODULES for fault in broken(path.relative_to(ROOT).as_posix(), path.read_text())
    ]
    assert found == []


CANARIES = {
    "a long module": ("spl/folds/a.py", "x = 1\n" * 500, "500 lines"),
    "a long function": ("spl/folds/a.py", "def f():\n" + "    x = 1\n" * 60, "f: 61 lines"),
    "many parameters": ("spl/folds/a.py", "def f(a, b, c, d, *, e, g, h): ...\n", "7 parameters"),
    "many options": ("spl/cli/commands/a.py", f"def f({', '.join('abcdefghijk')}): ...\n", "11 parameters"),
    "a name that says nothing": ("spl/utils/a.py", "", "utils says nothing"),
    "a module that says nothing": ("spl/store/helpers.py", "", "helpers says nothing"),
    "the environment": ("spl/kernel/a.py", "import os\nx = os.environ['A']\n", "reads the environment"),
    "the environment by name": ("spl/kernel/a.py", "from os import getenv\n", "reads the environment"),
    "a process": ("spl/kernel/a.py", "import subprocess\n", "starts processes"),
    "a process in the harness": (
        "spl/harness/a.py",
        "def f():\n    from subprocess import run\n",
        "starts processes",
    ),
    "a fork": ("spl/store/a.py", "import os\nos.fork()\n", "starts processes"),
}


@pytest.mark.parametrize("name", CANARIES)
def test_each_rule_bites_on(name: str) -> None:
    path, text, expected = CANARIES[name]
    assert [expected in fault for fault in broken(path, text)] == [True]


def test_a_method_may_have_self_beside_six_parameters() -> None:
    assert broken("spl/folds/a.py", "class A:\n    def f(self, a, b, c, d, e, g):\n        return a\n") == []
