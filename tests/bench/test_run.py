"""Running: finished cells are skipped, damaged ones done again, failures told."""

import json

import pytest

from unpaired.bench import run as module
from unpaired.bench.cells import is_finished, read_cell, read_folder, write_cell
from unpaired.bench.config import read_config
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

    def go(text=CONFIG, **options):
        lines = []
        config = read_config(write_config(text))
        summary = run_bench(
            config, place / "out", data_root=str(captions_folder), tell=lines.append, **options
        )
        return summary, lines

    return go


def test_every_cell_is_one_file_with_all_that_is_needed(bench, place):
    summary, lines = bench()
    assert (summary.n_run, summary.n_skipped, summary.failures) == (4, 0, ())
    files = sorted((place / "out" / "cells").iterdir())
    assert len(files) == 4
    record = json.loads(files[0].read_text())
    assert record["key"]["seed"] in (0, 1)
    assert record["key"]["method"] == {"name": "toy_method:Ridge", "params": {}}
    assert record["heading"]["title"] == "Toy"
    assert {"fit", "score", "load", "total"} <= set(record["seconds"])
    assert {"python", "numpy", "torch", "unpaired"} <= set(record["versions"])
    assert record["metrics"]["x->y R@1"] > 0.5
    assert lines[0].startswith("data: x (60, 6), y (180, 5)")
    assert lines[-1].startswith("[4/4] sup 100% Ridge seed 1: x->y R@1 ")


def test_finished_cells_are_skipped_and_damaged_ones_done_again(bench, place):
    bench()
    files = sorted((place / "out" / "cells").iterdir())
    before = {path: path.read_bytes() for path in files}
    files[0].write_text(files[0].read_text()[:100])  # cut off
    files[1].write_text("{}")
    record = json.loads(files[2].read_text())
    files[2].write_text(json.dumps({**record, "finished": False}))
    summary, lines = bench()
    assert (summary.n_run, summary.n_skipped) == (3, 1)
    assert lines[0] == "1 of 4 cells are finished and skipped"
    assert files[3].read_bytes() == before[files[3]]
    again = {path: json.loads(path.read_text())["metrics"] for path in files}
    assert again == {path: json.loads(text)["metrics"] for path, text in before.items()}
    assert bench()[0].n_run == 0
    more = bench(CONFIG.replace("[0, 1]", "[0, 1, 2]"))[0]
    assert (more.n_run, more.n_skipped) == (2, 4)


def test_a_failing_cell_is_told_and_tried_again(bench, place):
    text = CONFIG.replace("toy_method:Ridge", "toy_method:Fussy")
    summary, lines = bench(text)
    assert (summary.n_run, len(summary.failures)) == (2, 2)
    assert "seed 1 is not liked" in summary.failures[0]
    assert any("FAILED, ZeroDivisionError: seed 1 is not liked (toy_method.py:" in x for x in lines)
    assert len(list((place / "out" / "cells").iterdir())) == 2
    assert bench(text)[0].n_skipped == 2


def test_processes_give_the_same_figures(bench, place):
    bench(n_jobs=2)
    found = {r["key"]["row"] + str(r["key"]["seed"]): r["metrics"] for r in _records(place)}
    for path in (place / "out" / "cells").iterdir():
        path.unlink()
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
    assert not (place / "out" / "cells").exists()


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
    record = {"finished": True, "key": {}, "heading": {}, "label": "", "metrics": {"a": 1.0}}
    record["metrics"] |= {"b": float("nan"), "c": float("inf")}
    write_cell(tmp_path / "cells" / "x.json", record)
    assert read_cell(tmp_path / "cells" / "x.json")["metrics"] == {"a": 1.0}
    (tmp_path / "cells" / "bad.json").write_text("[")
    records, damaged = read_folder(tmp_path)
    assert len(records) == 1
    assert [path.name for path in damaged] == ["bad.json"]
    with pytest.raises(DataError, match="There is no folder"):
        read_folder(tmp_path / "none")


def test_a_cell_of_another_key_is_not_taken_for_this_one(bench, place, write_config):
    bench()
    cell = next(iter(read_config(write_config(CONFIG)).cells()))
    assert is_finished(place / "out", cell)
    path = place / "out" / "cells" / cell.file_name
    record = json.loads(path.read_text())
    record["key"]["seed"] = 99
    path.write_text(json.dumps(record))
    assert not is_finished(place / "out", cell)


def _records(place):
    return read_folder(place / "out")[0]
