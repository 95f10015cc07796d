"""Digests of the code a cell ran, and the commit beside it."""

import subprocess

import pytest

from unpaired.bench import provenance
from unpaired.bench.methods import method_file
from unpaired.bench.provenance import cell_digest, import_closure, is_stale, repository_state

TREE = {
    "__init__.py": "from unpaired.maths import double\n",
    "maths.py": '"""Doubling."""\n\n\ndef double(x):\n    return 2 * x\n',
    "face/__init__.py": (
        "from unpaired.face.one import first\nfrom unpaired.face.two import second\n"
    ),
    "face/one.py": "def first():\n    from unpaired.maths import double\n    return double(1)\n",
    "face/two.py": "second = 2\n",
    "method.py": "import numpy\nfrom unpaired.face import first\n\n\nclass Method:\n    pass\n",
    "task.py": "import unpaired.method\nLIMIT = 3\n",
}
CACHED = (provenance.source_digest, provenance._imports, provenance._tree, provenance._syntax)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package in the place of ours; ``change`` edits a file and forgets what was read."""
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def forget():
        for function in CACHED:
            function.cache_clear()

    monkeypatch.setattr(provenance, "SOURCE", tmp_path)
    forget()

    def digest(name=None, old="", new=""):
        if name is not None:
            path = tmp_path / name
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
        forget()
        return provenance.source_digest(
            "unpaired.method", tmp_path / "method.py", ("unpaired.task",)
        )

    yield digest
    forget()


def test_imports_are_followed_to_where_a_name_lives(package, tmp_path):
    found = import_closure(tmp_path / "method.py")
    assert found == {"unpaired.face.one", "unpaired.maths"}
    assert import_closure(tmp_path / "method.py") == found  # asked twice, answered alike


@pytest.mark.parametrize(
    ("file", "old", "new", "is_other"),
    [
        ("maths.py", "2 * x", "3 * x", True),
        ("method.py", "pass", "n = 1", True),
        ("face/one.py", "double(1)", "double(2)", True),
        ("task.py", "LIMIT = 3", "LIMIT = 4", True),
        ("face/two.py", "second = 2", "second = 3", False),  # nothing of it is used
        ("maths.py", "Doubling.", "Twice as much.", False),
        ("maths.py", "return 2 * x", "return 2  *  x  # two of them", False),
    ],
)
def test_only_code_that_runs_changes_a_digest(package, file, old, new, is_other):
    before = package()
    assert (package(file, old, new) != before) is is_other


def test_a_method_has_one_digest_a_task_and_none_when_nobody_has_it(place):
    digests = {cell_digest(task, "cca") for task in ("ucl", "matching", "retrieval")}
    assert len(digests) == 3
    assert cell_digest("ucl", "cca") == cell_digest("ucl", "CCA") != cell_digest("ucl", "kcca")
    assert cell_digest("ucl", "no-such-method") is None
    assert cell_digest("ucl", "no_such_module:Method") is None
    own = cell_digest("ucl", "toy_method:Ridge")
    file = place / "toy_method.py"
    file.write_text(file.read_text().replace("strength=1e-3", "strength=1e-2"))
    for function in CACHED:
        function.cache_clear()
    assert own is not None
    assert cell_digest("ucl", "toy_method:Ridge") not in (own, None)


def test_the_closure_of_a_real_method_is_what_it_needs_and_no_more():
    found = import_closure(method_file("cca")[1])
    assert {"unpaired.baselines.closed_form", "unpaired.math.eigen"} <= found
    assert not {name for name in found if name.startswith(("unpaired.bench", "unpaired.report"))}
    assert "unpaired.baselines.towers" not in found


def test_stale_is_what_has_no_digest_or_another():
    key = {"task": "matching", "method": {"name": "cca", "params": {}}}
    today = cell_digest("matching", "cca")
    assert not is_stale({"key": key, "digest": today})
    assert is_stale({"key": key, "digest": "0" * 64})
    assert is_stale({"key": key, "digest": None})
    assert is_stale({"key": key})
    gone = {"task": "matching", "method": {"name": "gone", "params": {}}}
    assert is_stale({"key": gone, "digest": today})


def git(folder, *arguments):
    names = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    command = ["git", *names, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_commit_and_whether_files_differ_from_it(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("a = 1\n")
    assert repository_state(package) == provenance.Code(None, None)
    git(tmp_path, "init", "-q")
    assert repository_state(package) == provenance.Code(None, None)  # not tracked: not ours
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "results.txt").write_text("outside of the package")
    assert repository_state(package) == provenance.Code(commit, False)
    (package / "__init__.py").write_text("a = 2\n")
    assert repository_state(package) == provenance.Code(commit, True)
    git(tmp_path, "checkout", "-q", ".")
    (package / "new.py").write_text("")
    assert repository_state(package) == provenance.Code(commit, True)
