from pathlib import Path

import pytest

from unpaired.bench.cells import identity
from unpaired.bench.config import parse_config, read_config, select
from unpaired.bench.tables import read_published
from unpaired.errors import DataError, InputError

ROOT = Path(__file__).parents[2]
GOOD = {
    "task": "retrieval",
    "rows": ["0%", "20%", "100%"],
    "seeds": [0, 1],
    "data": {"source": "captions-npz"},
    "methods": [{"name": "dmae"}, {"name": "cca", "label": "CCA", "settings": ["sup"]}],
}


def test_cells_that_make_no_sense_are_left_out():
    cells = [(c.setting, c.row, c.method.label) for c in parse_config(GOOD).cells() if not c.seed]
    assert cells == [
        ("semi", "0%", "dmae"),
        ("sup", "20%", "dmae"),
        ("sup", "20%", "CCA"),
        ("semi", "20%", "dmae"),
        ("sup", "100%", "dmae"),
        ("sup", "100%", "CCA"),
    ]
    fraction = parse_config({**GOOD, "rows": ["0.5%"]})
    assert {cell.setting for cell in fraction.cells()} == {"sup", "semi"}


def test_a_slow_method_can_be_kept_to_some_rows_and_seeds():
    slow = {"name": "dmae", "label": "slow", "rows": ["20%"], "seeds": [1]}
    cells = parse_config({**GOOD, "methods": [slow]}).cells()
    assert [(c.setting, c.row, c.seed) for c in cells] == [("sup", "20%", 1), ("semi", "20%", 1)]
    with pytest.raises(InputError, match="seeds of a method must be a list"):
        parse_config({**GOOD, "methods": [{**slow, "seeds": "all"}]})


def test_a_method_that_is_another_somewhere_has_no_cell_there():
    twin = {"name": "mcca", "label": "MCCA", "same": {"sup": "CCA"}}
    config = parse_config({**GOOD, "methods": [GOOD["methods"][1], twin]})
    cells = {(c.setting, c.method.label) for c in config.cells()}
    assert cells == {("sup", "CCA"), ("semi", "MCCA")}
    assert config.heading["same"] == [["sup", "MCCA", "CCA"]]


def test_zero_shot_rows_and_splits_do_not_mix():
    values = {
        **GOOD,
        "task": "ucl",
        "rows": ["0-50-10", "2 unseen"],
        "settings": ["inductive", "zero-shot"],
        "methods": ["dmae"],
        "seeds": [0],
    }
    cells = [(cell.setting, cell.row) for cell in parse_config(values).cells()]
    assert cells == [("inductive", "0-50-10"), ("zero-shot", "2 unseen")]


def test_the_identity_of_a_cell_depends_on_all_that_its_result_does():
    names = {identity(next(parse_config(GOOD).cells()).key)}
    for change in (
        {"data": {"source": "karpathy"}},
        {"options": {"disjoint": True}},
        {"seeds": [5]},
        {"methods": [{"name": "dmae", "params": {"n_latent": 3}}]},
        {"methods": [{"name": "dmae", "fit": {"start": "engine"}}]},
    ):
        names.add(identity(next(parse_config({**GOOD, **change}).cells()).key))
    assert len(names) == 6
    titled = next(parse_config({**GOOD, "title": "other", "note": "x"}).cells())
    assert identity(titled.key) in names  # what a table is called changes no result


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "retreival"}, 'Did you mean "retrieval"'),
        ({"shares": [0.1]}, 'Unknown field of config: "shares"'),
        ({"settings": ["transductive"]}, "Known: semi, sup"),
        ({"seeds": [-1]}, "whole numbers"),
        ({"seeds": []}, "whole numbers"),
        ({"rows": [0.2]}, "rows must be a list of texts"),
        ({"data": {}}, "a field source"),
        ({"methods": []}, "at least one table"),
        ({"methods": [{"label": "x"}]}, "must have a name"),
        ({"methods": [{"name": "x", "kwargs": {}}]}, "field of a method"),
        ({"methods": [{"name": "x", "same": {"sup": "y"}}]}, 'Unknown label of a method .* "y"'),
    ],
)
def test_mistakes_are_told(change, message):
    with pytest.raises(InputError, match=message):
        parse_config({**GOOD, **change})


def test_missing_fields_and_files_are_told(tmp_path):
    with pytest.raises(InputError, match="must have the field rows"):
        parse_config({name: value for name, value in GOOD.items() if name != "rows"})
    with pytest.raises(DataError, match="There is no configuration"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("task = ")
    with pytest.raises(DataError, match="must be TOML"):
        read_config(tmp_path / "bad.toml")


def test_methods_and_seeds_can_be_chosen():
    config = parse_config(GOOD)
    assert [m.label for m in select(config, "CCA", "3,4").methods] == ["CCA"]
    assert select(config, None, "3, 4").seeds == (3, 4)
    with pytest.raises(InputError, match="whole numbers with commas"):
        select(config, None, "a")


STARTS = {
    **GOOD,
    "methods": [
        {"name": "mcca", "label": "MCCA", "same": {"sup": "CCA"}},
        {"name": "mcca", "label": "MCCA, start of the engine"},
        {"name": "mcca", "label": "MCCA, random start,once"},
        {"name": "cca", "label": "CCA"},
    ],
}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("MCCA", [0]),
        ("MCCA, start of the engine", [1]),
        ("MCCA,start of the engine", [1]),
        ("CCA, MCCA, random start, once", [2, 3]),
        ("MCCA, random start, once,MCCA, start of the engine,", [1, 2]),
        ("MCCA, CCA", [0, 3]),
        ("MCCA, MCCA, start of the engine", [0, 1]),
        ("mcca", [0, 1, 2]),
    ],
)
def test_a_method_is_chosen_by_the_longest_label_that_fits_its_place(text, places):
    config = parse_config(STARTS)
    assert select(config, text, None).methods == tuple(config.methods[i] for i in places)


@pytest.mark.parametrize(
    ("text", "unknown", "guess"),
    [
        ("CAC", "CAC", "CCA"),
        ("CCA, start of the engine", "start of the engine", "MCCA, start of the engine"),
        ("MCCA, random start", "random start", "MCCA, random start, once"),
        (" ,", "", None),
    ],
)
def test_a_method_that_is_not_there_is_told_with_those_that_are(text, unknown, guess):
    with pytest.raises(InputError) as raised:
        select(parse_config(STARTS), text, None)
    meant = f' Did you mean "{guess}"?' if guess else ""
    assert str(raised.value) == (
        f'Unknown method of this configuration: "{unknown}".{meant} Known: "CCA", "MCCA", '
        '"MCCA, random start, once", "MCCA, start of the engine", "cca", "mcca".'
    )


def test_the_heading_tells_of_the_whole_configuration():
    config = parse_config(STARTS)
    assert config.heading["same"] == [["sup", "MCCA", "CCA"]]
    for methods in ("CCA", "MCCA", "MCCA, start of the engine"):
        assert select(config, methods, "7").heading == config.heading


CONFIGS = sorted((ROOT / "experiments").glob("*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_committed_configuration_is_right(path):
    config = read_config(path)
    assert list(config.cells())
    known = read_published()
    for name in config.published:
        assert set(known[name].metrics) <= set(config.columns)
        theirs = {entry[2] for entry in known[name].figures}
        assert theirs <= {method.label for method in config.methods}, "a published row is not run"
        rows = {entry[0] for entry in known[name].figures}
        assert rows <= set(config.rows)
    assert f"experiments/{path.name}" in path.read_text(), "the head tells the command"


def test_every_published_table_has_a_configuration():
    used = {name for path in CONFIGS for name in read_config(path).published}
    assert used == set(read_published())
