"""The list of sabotages fits the code, and the script tells survivors from what was noticed."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def mutants():
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutants"]


@pytest.fixture
def project(tmp_path):
    """A package of one function, and tests of which one asserts nothing."""
    for name, text in {
        "src/unpaired/__init__.py": "",
        "src/unpaired/one.py": "def double(x):\n    return 2 * x\n",
        "tests/test_one.py": "from unpaired.one import double\n\n"
        "def test_it():\n    assert double(3) == 6\n",
        "tests/test_idle.py": "from unpaired.one import double\n\ndef test_it():\n    double(3)\n",
        "pyproject.toml": "[tool.pytest.ini_options]\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_every_entry_stands_once_in_the_code_and_names_tests_that_exist(mutants):
    found = mutants.read_list()
    assert mutants.misplaced(found) == []
    assert len({mutant.name for mutant in found}) == len(found) >= 45


def test_an_entry_that_does_not_fit_is_told(mutants, project):
    def of(old, new="3 * x", tests=("tests/test_one.py",), file="one.py"):
        return mutants.misplaced([mutants.Mutant("m", file, old, new, tests, "")], project)

    assert of("2 * x") == []
    assert of("5 * x") == ["m: its text stands 0 times in one.py"]
    assert of("x") == ["m: its text stands 2 times in one.py"]
    assert of("2 * x", file="two.py") == ["m: its text stands 0 times in two.py"]
    assert of("2 * x", new="2 * x") == ["m: it changes nothing"]
    assert of("2 * x", tests=("tests/test_two.py",)) == ["m: there is no tests/test_two.py"]


def test_survivors_are_found_in_a_copy_and_the_tree_stays_as_it_was(mutants, project, capsys):
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    noticed, idle = (
        mutants.Mutant(name, "one.py", "2 * x", "3 * x", (f"tests/test_{name}.py",), "")
        for name in ("one", "idle")
    )
    broken = mutants.Mutant("broken", "one.py", "2 * x", "2 *", ("tests/test_one.py",), "")
    assert mutants.survivors([noticed, idle, broken], project) == ["idle", "broken"]
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before
    told = capsys.readouterr().out
    assert "noticed" in told
    assert "SURVIVED" in told
    assert "COULD NOT BE RUN" in told


def test_tests_that_fail_as_it_is_end_the_run(mutants, project):
    (project / "tests" / "test_one.py").write_text("def test_it():\n    assert False\n")
    mutant = mutants.Mutant("m", "one.py", "2 * x", "3 * x", ("tests/test_one.py",), "")
    with pytest.raises(SystemExit, match="do not pass on the code as it is"):
        mutants.survivors([mutant], project)


def test_a_list_that_does_not_fit_ends_with_code_two(mutants, monkeypatch, capsys):
    wrong = mutants.Mutant("m", "types.py", "no such text", "", ("tests",), "")
    monkeypatch.setattr(mutants, "read_list", lambda: [wrong])
    assert mutants.main([]) == 2
    assert "m: its text stands 0 times in types.py" in capsys.readouterr().err
    assert mutants.main(["--list"]) == 0
    assert mutants.main(["nothing of that name"]) == 2


def test_a_survivor_ends_with_code_one(mutants, monkeypatch, capsys):
    entries = mutants.read_list()[:2]
    monkeypatch.setattr(mutants, "read_list", lambda: entries)
    monkeypatch.setattr(mutants, "survivors", lambda chosen, noticed: [chosen[0].name])
    assert mutants.main([]) == 1
    assert f"survived: {entries[0].name}" in capsys.readouterr().out
    monkeypatch.setattr(mutants, "survivors", lambda chosen, noticed: [])
    assert mutants.main([entries[1].name]) == 0
    assert "1 of 1 mutants noticed" in capsys.readouterr().out


def test_a_run_that_was_cut_off_goes_on_behind_what_was_noticed(
    mutants, monkeypatch, capsys, tmp_path
):
    entries = mutants.read_list()[:3]
    tried = []

    def survivors(chosen, noticed):
        tried.append([mutant.name for mutant in chosen])
        noticed(chosen[0].name)
        return [mutant.name for mutant in chosen[1:]]

    monkeypatch.setattr(mutants, "read_list", lambda: entries)
    monkeypatch.setattr(mutants, "survivors", survivors)
    done = ["--done", str(tmp_path / "done.txt")]
    names = [mutant.name for mutant in entries]
    assert [mutants.main(done) for _ in names] == [1, 1, 0]
    assert tried == [names, names[1:], names[2:]]
    assert mutants.main(done) == 0
    assert len(tried) == 3
    assert "all of them are in the file" in capsys.readouterr().out
