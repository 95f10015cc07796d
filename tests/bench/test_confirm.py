"""Stale cells are confirmed by one of their method, or stay stale."""

from unpaired.bench.cells import cells_file, read_cells, rewrite_cells
from unpaired.bench.config import parse_config
from unpaired.bench.confirm import confirm_stale
from unpaired.bench.provenance import is_stale
from unpaired.bench.run import run_bench

CONFIG = {
    "task": "matching",
    "rows": ["10%", "20%"],
    "settings": ["sup"],
    "seeds": [0],
    "data": {"source": "rotated-clusters", "rows": 60},
    "methods": ["cca", "ridge"],
}


def aged(file, change=lambda record: record):
    """Make all cells stale, and the first row's the quicker one."""

    def older(record):
        quick = record["key"]["row"] == "10%"
        record = {**record, "digest": "0" * 64, "seconds": {"total": 1.0 if quick else 2.0}}
        return change(record)

    rewrite_cells(file, older)


def test_the_same_figures_confirm_a_method_and_others_do_not(tmp_path):
    config, file = parse_config(CONFIG), cells_file(tmp_path)
    run_bench(config, tmp_path)
    fresh = read_cells(file)[0]

    def wrong_ridge(record):
        if record["key"]["method"]["name"] != "ridge":
            return record
        return {**record, "metrics": {**record["metrics"], "foscttm": 0.123}}

    aged(file, wrong_ridge)
    told = []
    assert confirm_stale(config, tmp_path, tell=told.append) == 2
    assert told[0] == "sup 10% cca seed 0: the same, 2 cells confirmed"
    assert told[1] == "sup 10% ridge seed 0: other figures, 1 cells stay stale"
    found = read_cells(file)[0]
    for key, record in found.items():
        name, row = record["key"]["method"]["name"], record["key"]["row"]
        assert is_stale(record) == (name == "ridge" and row == "20%")
        assert ("confirmed" in record) == (name == "cca")
        if name == "cca" or row == "10%":
            assert record["metrics"] == fresh[key]["metrics"]
    assert found.keys() == fresh.keys()
    assert confirm_stale(config, tmp_path) == 0  # still other figures


def test_the_cell_with_the_fewest_pairs_confirms_those_of_its_setting(tmp_path):
    rows = {"settings": ["sup", "semi"], "methods": ["match", "cca"]}
    config, file = parse_config({**CONFIG, **rows}), cells_file(tmp_path)
    run_bench(config, tmp_path)

    def slower(record):
        few = record["key"]["row"] == "10%"
        return {**record, "seconds": {"total": 2.0 if few else 1.0}}

    aged(file, slower)
    told = []
    n_cells = len(read_cells(file)[0])
    assert confirm_stale(config, tmp_path, tell=told.append) == n_cells
    said = {line.split(" seed")[0] for line in told}
    assert said <= {f"{s} 10% {m}" for s in ("sup", "semi") for m in ("match", "cca")}
    assert len(said) == len(told) == n_cells / 2


def test_cells_without_pairs_are_confirmed_apart(tmp_path):
    rows = {"rows": ["0%", "10%"], "settings": ["semi"], "methods": ["ks"]}
    config, file = parse_config({**CONFIG, **rows}), cells_file(tmp_path)
    run_bench(config, tmp_path)
    aged(file)
    told = []
    assert confirm_stale(config, tmp_path, tell=told.append) == 2
    assert [line.endswith("the same, 1 cells confirmed") for line in told] == [True, True]
