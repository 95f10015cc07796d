"""Digests of the code a cell ran, and the commit beside it."""

import subprocess

import numpy as np
import pytest

from unpaired.bench import provenance, reach
from unpaired.bench.config import MethodSpec
from unpaired.bench.methods import PUBLISHED, make_method
from unpaired.bench.provenance import cell_digest, is_stale, repository_state

CACHED = (provenance.source_digest, reach.read_module)


def forget():
    for function in CACHED:
        function.cache_clear()


@pytest.fixture
def digest_after(package):
    """A function that edits a file of the small package and gives the digest of its method."""

    def digest(name=None, old="", new=""):
        if name is not None:
            path = package / name
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
        forget()
        place = ("unpaired.method", "Method")
        cut = frozenset({"unpaired.start"})
        return provenance.source_digest(place, package / "method.py", ("unpaired.task",), cut)

    yield digest
    forget()


@pytest.mark.parametrize(
    ("file", "old", "new", "is_other"),
    [
        ("maths.py", "FACTOR * x", "FACTOR + x", True),
        ("maths.py", "FACTOR = 2", "FACTOR = 3", True),
        ("method.py", "tool.used()", "2 * tool.used()", True),
        ("face/one.py", "double(1)", "double(2)", True),
        ("tool.py", "STEP = 1", "STEP = 2", True),
        ("task.py", "LIMIT = 3", "LIMIT = 4", True),
        ("method.py", "numpy.seterr()", "numpy.seterr(all='raise')", True),
        ("maths.py", "3 * x", "4 * x", False),  # nothing uses it
        ("face/two.py", "second = 2", "second = 3", False),  # only an annotation names it
        ("start.py", "return 5", "return 6", False),  # cut off
        ("method.py", "x is none", "x must be given", False),
        ("face/one.py", "    from unpaired.maths import double\n", "", True),
        ("maths.py", "Doubling.", "Twice as much.", False),
        ("maths.py", "return FACTOR * x", "return FACTOR  *  x  # two of them", False),
    ],
)
def test_only_code_that_runs_changes_a_digest(digest_after, file, old, new, is_other):
    before = digest_after()
    assert (digest_after(file, old, new) != before) is is_other


def test_a_method_has_one_digest_a_task_and_none_when_nobody_has_it(place):
    digests = {cell_digest(task, {"name": "cca"}) for task in ("ucl", "matching", "retrieval")}
    assert len(digests) == 3
    of = {name: cell_digest("ucl", {"name": name}) for name in ("cca", "CCA", "kcca")}
    assert of["cca"] == of["CCA"] != of["kcca"]
    assert cell_digest("ucl", {"name": "no-such-method"}) is None
    assert cell_digest("ucl", {"name": "no_such_module:Method"}) is None
    own = cell_digest("ucl", {"name": "toy_method:Ridge"})
    file = place / "toy_method.py"
    file.write_text(file.read_text().replace("strength=1e-3", "strength=1e-2"))
    forget()
    assert own is not None
    assert cell_digest("ucl", {"name": "toy_method:Ridge"}) not in (own, None)


ENGINE_CHANGED = [
    ({"name": "mcca"}, False),
    ({"name": "mcca", "params": {"seeds": "random"}}, False),
    ({"name": "mcca", "params": {"seeds": "engine"}}, True),
    ({"name": "published-dmae-smi"}, False),
    ({"name": "published-dmae-smi", "fit": {"start": "engine"}}, True),
    ({"name": "match"}, True),
    ({"name": "dmae"}, True),
]


@pytest.mark.parametrize(("method", "is_other"), ENGINE_CHANGED)
def test_the_engine_counts_where_a_method_is_ours_or_begins_there(method, is_other, monkeypatch):
    before = cell_digest("ucl", method)
    read = reach.read_module

    def changed(file):
        found = read(file)
        if file.name == "search.py" and file.parent.name == "alignment":
            bodies = {name: [*nodes, *nodes] for name, nodes in found.bodies.items()}
            return reach.Module(bodies, found.imported)
        return found

    monkeypatch.setattr(reach, "read_module", changed)
    provenance.source_digest.cache_clear()
    after = cell_digest("ucl", method)
    provenance.source_digest.cache_clear()
    assert (after != before) is is_other


@pytest.mark.parametrize("name", ["mcca", "deep-mcca", *PUBLISHED])
def test_what_is_said_not_to_ask_the_engine_runs_without_it(name, rng, monkeypatch):
    def absent(*args, **kwargs):
        raise AssertionError("the engine was asked")

    monkeypatch.setattr("unpaired.matching.match", absent)
    monkeypatch.setattr("unpaired.baselines.rematch.match", absent)
    x, y = rng.standard_normal((40, 6)), rng.standard_normal((40, 5))
    pairs = np.repeat(np.arange(12)[:, None], 2, axis=1)
    quick = {"n_rounds": 1, "n_epochs": 1}
    params = {"seeds": "random"} if "mcca" in name else quick
    make_method(MethodSpec(name, name, params), 0).fit(x, y)
    make_method(MethodSpec(name, name, {} if "mcca" in name else quick), 0).fit(x, y, pairs=pairs)


def test_stale_is_what_has_no_digest_or_another():
    key = {"task": "matching", "method": {"name": "cca", "params": {}}}
    today = cell_digest("matching", key["method"])
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
