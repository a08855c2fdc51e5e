"""The table of faults in the documents and the sentences in the code are the same, in both languages."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MODULES = [ROOT / "slurmk8s" / "pod" / f"kubernetes_{name}.py" for name in ("pull", "start", "words", "refusals")]
MODULES.append(ROOT / "slurmk8s" / "agent" / "ending.py")  # for its one sentence about memory
FAULTS = ("PersonFault", "ClusterFault", "NodeFault", "QuotaFull", "SlurmK8sError")


def patterns() -> set[str]:
    """Every sentence of the code as a pattern: what is filled in may be anything."""
    found = set()
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FAULTS:
                found.add(pattern(node.args[0]))
            elif isinstance(node, ast.FunctionDef) and node.name == "out_of_memory":
                found |= {pattern(each.value) for each in node.body if isinstance(each, ast.Return) and each.value}
    return found


def pattern(sentence: ast.expr) -> str:
    parts = sentence.values if isinstance(sentence, ast.JoinedStr) else [sentence]
    texts = [re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in parts]
    return "".join(texts).removesuffix(r"\.")


def sentences(page: str, other: str) -> list[str]:
    """What the person sees, row by row; `other` stands between two sentences of one row."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    cells = [row[1] for row in rows if len(row) == 4 and row[3] != "Slurm" and not row[1].startswith("(")]
    return [sentence for cell in cells for sentence in cell.split(other)]


ENGLISH = sentences("faults.md", " or: ")


@pytest.mark.parametrize("sentence", ENGLISH)
def test_every_sentence_of_the_table_is_the_codes(sentence: str) -> None:
    assert any(re.match(each, sentence) for each in patterns())


@pytest.mark.parametrize("each", sorted(patterns()))
def test_every_sentence_of_the_code_is_in_the_table(each: str) -> None:
    assert any(re.match(each, sentence) for sentence in ENGLISH)


def test_both_languages_have_the_same_sentences() -> None:
    assert sentences("ko/faults.md", " 또는 ") == ENGLISH
