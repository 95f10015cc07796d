"""Running: finished cells are skipped, damaged ones done again, failures told."""

import json
import subprocess
import sys

import pytest

from unpaired.bench import provenance, reach
from unpaired.bench import run as module
from unpaired.bench.cells import append_cell, cells_file, read_cells, read_folder, rewrite_cells
from unpaired.bench.config import read_config, select
from unpaired.bench.provenance import cell_digest, repository_state
from unpaired.bench.run import run_bench
from unpaired.errors import DataError, InputError

CONFIG = """
    title = "Toy"
    task = "retrieval"
    rows = ["0%", "50%", "100%"]
    settings = ["sup"]
    seeds = [0, 1]
    [data]
    source = "captions-npz"
    folder = "flickr"
    [[methods]]
    name = "toy_method:Ridge"
    label = "Ridge"
"""


@pytest.fixture
def bench(write_config, captions_folder, place):
    """A function that runs a configuration, and returns the summary and what was told."""

    def go(text=CONFIG, methods=None, seeds=None, **options):
        lines = []
        config = select(read_config(write_config(text)), methods, seeds)
        summary = run_bench(
            config, place / "out", data_root=str(captions_folder), tell=lines.append, **options
        )
        return summary, lines

    return go


def test_every_cell_is_one_line_with_all_that_is_needed(bench, place):
    summary, lines = bench()
    assert (summary.n_run, summary.n_skipped, summary.failures) == (4, 0, ())
    assert [path.name for path in (place / "out").iterdir()] == ["cells.jsonl"]
    written = cells_file(place / "out").read_text().splitlines()
    assert len(written) == 4
    record = json.loads(written[0])
    assert record["key"]["seed"] in (0, 1)
    assert record["key"]["method"] == {"name": "toy_method:Ridge", "params": {}}
    assert record["heading"]["title"] == "Toy"
    assert {"fit", "score", "load", "total"} <= set(record["seconds"])
    assert {"python", "numpy", "torch", "unpaired"} <= set(record["versions"])
    assert record["metrics"]["x->y R@1"] > 0.5
    assert record["digest"] == cell_digest("retrieval", {"name": "toy_method:Ridge"})
    code = repository_state()
    assert (record["commit"], record["dirty"]) == (code.commit, code.dirty)
    assert lines[0].startswith("data: x (60, 6), y (180, 5)")
    assert lines[-1].startswith("[4/4] sup 100% Ridge seed 1: x->y R@1 ")


def test_finished_cells_are_skipped_and_damaged_ones_done_again(bench, place):
    bench()
    file = cells_file(place / "out")
    lines = file.read_text().splitlines()
    before = {key: record["metrics"] for key, record in read_cells(file)[0].items()}
    lines[1], lines[2] = "{}", json.dumps({**json.loads(lines[2]), "format": 1})
    file.write_text("\n".join([*lines[:3], lines[3][:100]]))  # the last one is cut off
    summary, told = bench()
    assert (summary.n_run, summary.n_skipped) == (3, 1)
    assert told[0] == "1 of 4 cells are finished and skipped"
    found, damaged = read_cells(file)
    assert {key: record["metrics"] for key, record in found.items()} == before
    assert damaged == [2, 3, 4]
    assert file.read_text().splitlines()[0] == lines[0]
    assert bench()[0].n_run == 0
    more = bench(CONFIG.replace("[0, 1]", "[0, 1, 2]"))[0]
    assert (more.n_run, more.n_skipped) == (2, 4)
    rewrite_cells(file)
    assert read_cells(file)[1] == []
    assert len(read_cells(file)[0]) == 6


def test_only_stale_cells_are_redone(bench, place):
    bench(CONFIG.replace("[0, 1]", "[0]"))
    file = cells_file(place / "out")
    first = _records(place)
    assert [record["key"]["row"] for record in first] == ["50%", "100%"]

    def aged(record):
        return (
            {**record, "digest": None, "metrics": {}} if record["key"]["row"] == "50%" else record
        )

    rewrite_cells(file, aged)
    told = bench()[1]  # the two cells of seed 1 that are absent; the stale one stays
    assert told[0] == "2 of 4 cells are finished and skipped"
    assert told[1].startswith("1 of them are stale")
    assert [r["metrics"] == {} for r in _records(place)] == [True, False, False, False]
    summary, told = bench(redo_stale=True)
    assert (summary.n_run, summary.n_skipped) == (1, 3)
    assert told[0] == "3 of 4 cells are not stale and skipped"
    assert len(file.read_text().splitlines()) == 4  # the line it supersedes is gone
    again = _records(place)
    assert [r["metrics"] for r in again[:2]] == [r["metrics"] for r in first]
    assert bench(redo_stale=True)[0].n_run == 0


def test_a_method_that_was_changed_makes_its_cells_stale(bench, place):
    bench()
    own = place / "toy_method.py"
    own.write_text(own.read_text().replace("strength=1e-3", "strength=1e-2"))
    provenance.source_digest.cache_clear()
    reach.read_module.cache_clear()
    assert bench(redo_stale=True)[0].n_run == 4


def test_finished_cells_take_the_names_of_the_configuration(bench, place):
    bench()
    text = CONFIG.replace('"Toy"', '"Renamed"').replace('label = "Ridge"', 'label = "Ridge map"')
    assert bench(text)[0].n_run == 0
    assert {(r["heading"]["title"], r["label"]) for r in _records(place)} == {
        ("Renamed", "Ridge map")
    }


def test_a_choice_of_methods_or_seeds_leaves_the_heading_whole(bench, place):
    twin = 'name = "toy_method:Ridge"\n    label = "Twin, of one start"\n'
    absent = '    [[methods]]\n    name = "no-such-method"\n    same = { sup = "Ridge" }\n'
    text = f'{CONFIG}    [[methods]]\n    {twin}    same = {{ sup = "Ridge" }}\n{absent}'
    bench(text, seeds="0")
    before = cells_file(place / "out").read_bytes()
    assert bench(text, methods="Ridge", seeds="0")[0].n_run == 0
    assert cells_file(place / "out").read_bytes() == before
    assert bench(text, methods="Ridge")[0].n_run == 2
    whole = [["sup", "Twin, of one start", "Ridge"], ["sup", "no-such-method", "Ridge"]]
    assert [record["heading"]["same"] for record in _records(place)] == [whole] * 4


def test_a_failing_cell_is_told_and_tried_again(bench, place):
    text = CONFIG.replace("toy_method:Ridge", "toy_method:Fussy")
    summary, lines = bench(text)
    assert (summary.n_run, len(summary.failures)) == (2, 2)
    assert "seed 1 is not liked" in summary.failures[0]
    assert any("FAILED, ZeroDivisionError: seed 1 is not liked (toy_method.py:" in x for x in lines)
    assert len(_records(place)) == 2
    assert bench(text)[0].n_skipped == 2


def test_processes_give_the_same_figures(bench, place):
    bench(n_jobs=2)
    found = {r["key"]["row"] + str(r["key"]["seed"]): r["metrics"] for r in _records(place)}
    cells_file(place / "out").unlink()
    bench()
    assert found == {r["key"]["row"] + str(r["key"]["seed"]): r["metrics"] for r in _records(place)}


def test_stopping_keeps_what_is_done(bench, place, monkeypatch):
    execute, count = module.execute, []

    def stop_at_third(*job):
        count.append(job)
        if len(count) == 3:
            raise KeyboardInterrupt
        return execute(*job)

    monkeypatch.setattr(module, "execute", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        bench()
    assert len(_records(place)) == 2
    monkeypatch.setattr(module, "execute", execute)
    assert bench()[0].n_skipped == 2


def test_methods_nobody_has_are_left_out(bench):
    extra = '\n    [[methods]]\n    name = "no-such-method"\n'
    summary, lines = bench(CONFIG + extra)
    assert summary.n_run == 4
    assert lines[0].startswith('left out no-such-method: Unknown method "no-such-method"')
    with pytest.raises(InputError, match="None of the configuration's methods"):
        bench(CONFIG.replace("toy_method:Ridge", "no-such-method"))


def test_absent_data_is_told_before_anything_runs(bench, place, monkeypatch):
    with pytest.raises(DataError, match="There is no file"):
        bench(CONFIG.replace('"flickr"', '"elsewhere"'))
    with pytest.raises(InputError, match='Unknown data source "caption-npz"'):
        bench(CONFIG.replace("captions-npz", "caption-npz"))
    assert not (place / "out").exists()


def test_the_data_folder_may_come_from_the_environment(
    write_config, captions_folder, place, monkeypatch
):
    config = read_config(write_config(CONFIG))
    monkeypatch.delenv("UNPAIRED_DATA", raising=False)
    with pytest.raises(InputError, match="Pass --data FOLDER or set the environment variable"):
        run_bench(config, place / "out")
    monkeypatch.setenv("UNPAIRED_DATA", str(captions_folder))
    assert run_bench(config, place / "other").n_run == 4


def test_numbers_that_are_not_finite_are_left_out(tmp_path):
    record = {"key": {}, "heading": {}, "label": "", "metrics": {"a": 1.0}}
    record["metrics"] |= {"b": float("nan"), "c": float("inf")}
    append_cell(tmp_path / "deeper" / "cells.jsonl", record)
    (tmp_path / "cells.jsonl").write_text("[\n")
    records, damaged = read_folder(tmp_path)
    assert [found["metrics"] for found in records] == [{"a": 1.0}]
    assert damaged == [f"{tmp_path / 'cells.jsonl'}:1"]
    with pytest.raises(DataError, match="There is no folder"):
        read_folder(tmp_path / "none")


def test_several_processes_may_append_to_one_file(tmp_path):
    script = (
        "import sys; from pathlib import Path; from unpaired.bench.cells import append_cell\n"
        "for i in range(40):\n"
        "    key = {'who': sys.argv[2], 'i': i, 'filler': 'x' * 20000}\n"
        "    record = {'key': key, 'heading': {}, 'label': '', 'metrics': {}}\n"
        "    append_cell(Path(sys.argv[1]), record)"
    )
    file = tmp_path / "cells.jsonl"
    crowd = [subprocess.Popen([sys.executable, "-c", script, str(file), who]) for who in "abc"]
    assert [process.wait(timeout=120) for process in crowd] == [0, 0, 0]
    records, damaged = read_cells(file)
    assert (len(records), damaged) == (120, [])


def _records(place):
    return read_folder(place / "out")[0]
