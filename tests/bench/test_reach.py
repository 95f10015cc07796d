"""What a definition needs, read from the source of a small package."""

from unpaired.bench import reach
from unpaired.bench.methods import method_file
from unpaired.bench.reach import ALL, reached


def follow(package, cut=()):
    start = ("unpaired.method", "Method")
    found = reached(start, package / "method.py", frozenset(cut))
    return {".".join(part) for part in found if part[1]}


def test_names_are_followed_to_where_they_live_and_nothing_else(package):
    needed = {
        "unpaired.method.Method",
        "unpaired.face.one.first",
        "unpaired.maths.double",
        "unpaired.maths.FACTOR",
        "unpaired.tool.used",
        "unpaired.tool.STEP",
        "unpaired.start.begin",
    }
    assert follow(package) == needed
    assert follow(package, {"unpaired.face.one"}) == {
        name for name in needed if not name.startswith(("unpaired.face", "unpaired.maths"))
    }


def test_statements_at_the_top_count_and_a_module_handed_on_counts_whole(package):
    found = reached(("unpaired.method", "Method"), package / "method.py")
    assert "seterr" in found["unpaired.method", ""]
    (package / "method.py").write_text(
        "import unpaired.tool as tool\n\n\nclass Method:\n    helper = tool\n"
    )
    reach.read_module.cache_clear()
    assert {"unpaired.tool.used", "unpaired.tool.idle"} <= follow(package)
    every = reached(("unpaired.tool", ALL), package / "tool.py")
    assert set(every) == {("unpaired.tool", name) for name in ("", "STEP", "used", "idle")}


def test_of_a_real_method_no_file_and_no_engine_is_reached_that_it_does_not_use():
    module, file = method_file("cca")
    rooms = {part[0].split(".")[1] for part in reached((module, "CCA"), file) if "." in part[0]}
    assert {"baselines", "math"} <= rooms
    assert not rooms & {"alignment", "bench", "matching", "report", "trust", "views"}
    module, file = method_file("mcca")
    whole = {part[0] for part in reached((module, "MCCA"), file)}
    without = {
        part[0] for part in reached((module, "MCCA"), file, frozenset({"unpaired.matching"}))
    }
    assert {"unpaired.matching", "unpaired.alignment.search"} <= whole - without
