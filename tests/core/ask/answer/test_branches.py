"""What happens when …: the branch whose condition is named, in five languages, with the test that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from helix_tui.core.ask.index.index import RepositoryIndex
from tests.core.ask.sessions.solar import document, write

NOISE = "\n\n".join(f"def crane_{n}(harbour):\n    return harbour.crane({n})" for n in range(20)) + "\n"

CASES = {
    "python": (
        "harbour/berth.py",
        "def moor(ship, rope_length):\n"
        + "".join(f"    ship.step({n})\n" for n in range(40))
        + "    if rope_length <= 0:\n"
        + '        msg = f"no rope to moor with, got {rope_length}"\n'
        + "        raise ValueError(msg)\n"
        + "".join(f"    ship.tie({n})\n" for n in range(40)),
        "What happens when the length of the rope is zero?",
        "        raise ValueError(msg)",
        "tests/test_berth.py",
        'def test_rope_of_no_length_is_refused():\n    with raises(ValueError, match="no rope to moor with"):\n'
        "        moor(ship, 0)\n",
    ),
    "go": (
        "berth.go",
        'package harbour\n\nimport "errors"\n\nvar ErrAdrift = errors.New("the anchor was lost at sea")\n\n'
        "func (s *Ship) Pull() error {\n\tif s.chain == nil {\n\t\treturn ErrAdrift\n\t}\n\treturn nil\n}\n",
        "What happens when the anchor was lost?",
        "        return ErrAdrift",
        "berth_test.go",
        "package harbour\n\nfunc TestAnchorLost(t *testing.T) {\n\tif err := s.Pull(); err != ErrAdrift {\n"
        '\t\tt.Fatal("the lost anchor was not told")\n\t}\n}\n',
    ),
    "typescript": (
        "src/berth.ts",
        "export class Berth {\n  moor(ship: Ship): void {\n    if (this.ships.has(ship.id)) {\n"
        "      throw new RangeError(`The ship ${ship.id} is moored in this berth`);\n    }\n"
        "    this.ships.add(ship.id);\n  }\n}\n",
        "What happens when the same ship is moored twice?",
        "throw new RangeError(",
        "test/berth.test.ts",
        "test('a ship is moored twice', () => {\n  expect(() => berth.moor(ship)).toThrow(RangeError);\n});\n",
    ),
    "rust": (
        "src/berth.rs",
        "pub fn load(path: &Path) -> Result<Chart> {\n    match read(path) {\n"
        '        Err(e) if e.kind() == NotFound => bail!("no sea chart at {}", path),\n'
        "        other => other,\n    }\n}\n",
        "What happens when the sea chart is missing?",
        "bail!(",
        "tests/chart.rs",
        '#[test]\nfn missing_sea_chart() {\n    assert!(load(p).unwrap_err().contains("no sea chart at"));\n}\n',
    ),
    "java": (
        "src/main/java/Berth.java",
        "public class Berth {\n    public void setDepth(int depth) {\n        if (depth > maxDepth) {\n"
        '            throw new IllegalArgumentException("The depth of the berth exceeds the chart");\n        }\n'
        "        this.depth = depth;\n    }\n}\n",
        "What happens when the depth of a berth exceeds the limit?",
        "throw new IllegalArgumentException(",
        "src/test/java/BerthTest.java",
        "class BerthTest {\n    @Test\n    void testDepthOfBerthExceedsChart() {\n"
        "        assertThrows(IllegalArgumentException.class, () -> berth.setDepth(99));\n    }\n}\n",
    ),
}


@pytest.mark.parametrize("language", CASES)
def test_the_branch_that_a_question_names_is_quoted_with_its_test(tmp_path: Path, language: str) -> None:
    file, code, question, does, test, tested = CASES[language]
    files = {file: code, test: tested, "harbour/cranes.py": NOISE, "README.md": "# Harbour\n\nShips.\n"}
    root = write(tmp_path, files)
    found = document(root, question)
    assert found["answer"].startswith(f"`{file}:")
    assert does in found["answer"].partition("\nTests that")[0]
    assert found["tier"] != "not found"
    assert f"Tests that name it:\n- {test}:" in found["answer"]


def test_a_docstring_that_says_raises_is_no_branch(tmp_path: Path) -> None:
    code = (
        'def moor(rope):\n    """Moor a ship.\n\n    if the rope is torn raise RopeError at once\n    """\n'
        + "".join(f"    step({n})\n" for n in range(40))
        + "    if not rope.whole:\n        # the rope is torn\n        raise RopeError(rope)\n"
    )
    found = document(write(tmp_path, {"moor.py": code}), "What happens when the rope is torn?")
    assert "    raise RopeError(rope)" in found["answer"]


def test_the_test_of_a_branch_is_found_however_often_the_source_uses_its_name(tmp_path: Path) -> None:
    name, source, question, _, test_name, test = CASES["go"]
    # in files before the test's, in order of path
    often = "".join(f"func haul{n}() error {{\n\treturn ErrAdrift\n}}\n\n" for n in range(900))
    files = {name: source, test_name: test, "a/crane.go": f"package a\n\n{often}"}
    root = write(tmp_path / "root", files)
    assert f"{test_name}:" in document(root, question)["answer"]
    index = RepositoryIndex(root, tmp_path / "index.db", with_meaning=False)
    index.refresh()
    assert {use.file for use in index.uses("ErrAdrift", 60)} == {"a/crane.go"}
    assert {use.file for use in index.uses("ErrAdrift", 60, "test")} == {test_name}
