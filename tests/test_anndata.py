"""Assays of cells: AnnData objects and .h5ad files."""

import gzip
import subprocess
import sys
from dataclasses import replace

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import unpaired
import unpaired.anndata
from unpaired.anndata import transfer_labels
from unpaired.errors import DataError, InputError
from unpaired.files.cells import CellNotes
from unpaired.files.reading import read_table
from unpaired.types import Verdict

N = 120


def message_of(error, call, *arguments, **options):
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    return str(caught.value)


@pytest.fixture
def assays(rng):
    """Two assays of the same cells, rotated and shuffled; rna has 15 cells more. And the truth."""
    cells = rng.normal(size=(N, 8)) * np.linspace(3, 1, 8)
    order = rng.permutation(N)[: N - 15]
    rotated = cells[order] @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
    kinds = pd.Categorical.from_codes(rng.integers(3, size=N), ["B", "NK", "T"])
    rna = anndata.AnnData(
        sparse.csr_matrix(rng.poisson(1.0, size=(N, 12)).astype(np.float32)),
        obs=pd.DataFrame({"cell_type": kinds}, index=[f"r{i}" for i in range(N)]),
        var=pd.DataFrame(index=[f"gene{k}" for k in range(12)]),
        obsm={"X_pca": cells},
    )
    atac = anndata.AnnData(
        rotated,
        obs=pd.DataFrame(index=[f"a{i}" for i in range(len(order))]),
        obsm={"X_lsi": rotated},
    )
    return rna, atac, order


def test_a_rotated_shuffled_assay_is_found_and_noted_on_both(assays):
    rna, atac, order = assays
    found = unpaired.anndata.match(rna, atac, "X_pca", "X_lsi")
    assert found.verdict.level == "reliable"
    assert (atac.obs["unpaired_partner"] == [f"r{i}" for i in order]).all()
    expected = dict(zip(order, atac.obs_names, strict=True))
    assert rna.obs["unpaired_partner"].tolist() == [expected.get(i, "") for i in range(N)]
    lonely = np.setdiff1d(np.arange(N), order)
    sure = rna.obs["unpaired_confidence"].to_numpy()
    assert (sure[lonely] == 0).all()
    assert (sure[order] > 0.5).all()
    np.testing.assert_array_equal(atac.obs["unpaired_confidence"], sure[order])
    np.testing.assert_array_equal(found.confidence, sure)
    scores = rna.obsm["X_unpaired"][order] @ atac.obsm["X_unpaired"].T
    assert (scores.argmax(axis=1) == np.arange(len(order))).all()
    for cells in (rna, atac):
        assert cells.uns["unpaired"]["seed"] == 0
        assert cells.uns["unpaired"]["settings"]["use_rep_x"] == "X_pca"
        assert cells.uns["unpaired"]["verdict"]["level"] == "reliable"


def test_it_is_the_match_of_the_arrays_and_takes_what_align_takes(assays, rng):
    rna, atac, order = assays
    pairs = [[order[3], 3], [order[7], 7]]
    generator = np.random.default_rng(5)
    found = unpaired.anndata.match(
        atac, rna, None, "X_pca", np.array(pairs)[:, ::-1], random_state=7, leave_out="auto"
    )
    plain = unpaired.match(
        atac.X, rna.obsm["X_pca"], np.array(pairs)[:, ::-1], random_state=7, leave_out="auto"
    )
    np.testing.assert_array_equal(found.partner, plain.partner)
    np.testing.assert_array_equal(found.confidence, plain.confidence)
    assert atac.uns["unpaired"]["seed"] == 7
    settings = atac.uns["unpaired"]["settings"]
    assert (settings["pairs"], settings["leave_out"], settings["use_rep_x"]) == (
        "given",
        "auto",
        "X",
    )
    unpaired.anndata.match(atac, rna, None, "X_pca", random_state=generator)
    assert isinstance(atac.uns["unpaired"]["seed"], int)


@pytest.mark.parametrize("made", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_dense_and_sparse_matrices_give_the_same(assays, made):
    rna, atac, order = assays
    atac.X = made(atac.X)
    unpaired.anndata.match(rna, atac, "X_pca", "X")
    assert (atac.obs["unpaired_partner"] == [f"r{i}" for i in order]).all()


def test_all_that_is_noted_survives_a_file(assays, tmp_path):
    rna, atac, _ = assays
    unpaired.anndata.match(rna, atac, "X_pca", "X_lsi", labels="cell_type", leave_out="auto")
    for cells in (rna, atac):
        cells.write_h5ad(tmp_path / "cells.h5ad")
        again = anndata.read_h5ad(tmp_path / "cells.h5ad")
        np.testing.assert_array_equal(again.obsm["X_unpaired"], cells.obsm["X_unpaired"])
        for name in ("unpaired_partner", "unpaired_confidence"):
            assert again.obs[name].tolist() == cells.obs[name].tolist()
        record, kept = cells.uns["unpaired"], again.uns["unpaired"]
        assert (kept["seed"], kept["settings"]) == (record["seed"], record["settings"])
        assert set(kept["verdict"]) == set(record["verdict"])
        for name, value in record["verdict"].items():
            np.testing.assert_array_equal(kept["verdict"][name], value)
    kinds = again.obs["unpaired_cell_type"]
    assert kinds.astype(str).tolist() == atac.obs["unpaired_cell_type"].astype(str).tolist()


def test_labels_go_from_partner_to_partner(assays):
    rna, atac, order = assays
    unpaired.anndata.match(rna, atac, "X_pca", "X_lsi", labels="cell_type")
    given = atac.obs["unpaired_cell_type"]
    assert given.tolist() == rna.obs["cell_type"].iloc[order].tolist()
    assert given.cat.categories.tolist() == ["B", "NK", "T"]
    assert "unpaired_cell_type" not in rna.obs


@pytest.mark.parametrize("kind", ["str", "int", "bool", "float"])
def test_labels_of_any_kind_are_missing_where_cells_are_left_out(assays, tmp_path, rng, kind):
    rna, atac, order = assays
    drawn = rng.integers(2, size=len(atac))
    atac.obs["batch"] = drawn.astype(kind)
    found = unpaired.anndata.match(rna, atac, "X_pca", "X_lsi", labels="batch")
    values = dict(zip(order, atac.obs["batch"], strict=True))
    rna.write_h5ad(tmp_path / "rna.h5ad")
    for cells in (rna, anndata.read_h5ad(tmp_path / "rna.h5ad")):
        given = cells.obs["unpaired_batch"]
        assert given.isna().sum() == 15
        assert all(pd.isna(v) if i not in values else v == values[i] for i, v in enumerate(given))
    assert (found.partner < 0).sum() == 15


def test_labels_stop_at_the_cut_off(assays, rng):
    rna, atac, _ = assays
    atac.obsm["X_lsi"][::2] += 0.4 * rng.normal(size=atac.obsm["X_lsi"][::2].shape)
    found = unpaired.anndata.match(rna, atac, "X_pca", "X_lsi")
    sure = found.confidence[found.partner >= 0]
    least = float(np.median(sure))
    unpaired.anndata.match(rna, atac, "X_pca", "X_lsi", labels="cell_type", min_confidence=least)
    missing = atac.obs["unpaired_cell_type"].isna()
    assert missing.sum() == (sure < least).sum() > 0
    assert (missing == (atac.obs["unpaired_partner"] == "")).all()
    assert (atac.obs["unpaired_confidence"][~missing] >= least).all()
    labelled = {"labels": "cell_type", "min_label_confidence": least}
    unpaired.anndata.match(rna, atac, "X_pca", "X_lsi", **labelled)
    told = atac.obs["unpaired_cell_type"].notna()
    assert 0 < told.sum() < (atac.obs["unpaired_partner"] != "").sum()
    assert (atac.obs["unpaired_cell_type_confidence"][told] >= least).all()
    assert (atac.obs["unpaired_cell_type_confidence"][~told] == 0).all()


def notes(space, partner):
    n_cells = len(space)
    names = np.array([str(p) for p in partner])
    return CellNotes(space, np.asarray(partner), names, np.full(n_cells, 0.2), {})


def test_labels_are_voted_for_where_single_partners_are_not_reliable(rng):
    """Scores put a cell near all cells of its own kind; its partner is drawn at random."""
    kinds = np.repeat([0, 1, 2], 20)
    space = np.eye(3)[kinds] * 4 + 0.1 * rng.standard_normal((60, 3))
    own, other = notes(space, rng.permutation(60)), notes(space.copy(), rng.permutation(60))
    own.partner[5] = -1
    column = pd.Series(np.array(["B", "NK", "T"])[kinds])
    coarse = Verdict("coarse", 0.8, 0.1, (0.0, 0.2), ())
    values, confidence = transfer_labels(column, own, other, coarse)
    right = np.asarray(values) == column.to_numpy()
    assert right.sum() == 59
    assert pd.isna(values[5])
    assert confidence[5] == 0
    np.testing.assert_allclose(np.delete(confidence, 5), 0.8)  # all ten are of one kind
    assert pd.isna(transfer_labels(column, own, other, coarse, 0.81)[0]).all()
    sure, own_confidence = transfer_labels(column, own, other, replace(coarse, level="reliable"))
    assert sure[0] == column[own.partner[0]]
    assert own_confidence[0] == 0.2
    mixed = column.where(np.arange(60) % 2 == 0)  # every other cell has no label
    values, confidence = transfer_labels(mixed, own, other, coarse)
    assert (np.asarray(values) == column.to_numpy()).sum() == 59
    assert 0.1 < np.delete(confidence, 5).mean() < 0.7


def test_a_handful_of_cells(rng):
    few = rng.normal(size=(6, 3))
    x, y = anndata.AnnData(few), anndata.AnnData(few[:5] @ np.linalg.qr(rng.normal(size=(3, 3)))[0])
    unpaired.anndata.match(x, y)
    assert (x.obs["unpaired_partner"] == "").sum() == 1
    assert sorted(set(x.obs["unpaired_partner"]) - {""}) == sorted(y.obs_names)
    assert x.obsm["X_unpaired"].shape[1] == y.obsm["X_unpaired"].shape[1]


def test_mistakes_are_told_and_nothing_is_noted(assays):
    rna, atac, _ = assays
    match = unpaired.anndata.match
    bare = anndata.AnnData(obs=rna.obs[[]].copy(), obsm={"X_pca": rna.obsm["X_pca"].copy()})
    twins = atac.copy()
    twins.obs_names = ["a", *["b"] * (len(atac) - 1)]
    holed = atac.copy()
    holed.obsm["X_lsi"][2, 1] = np.nan
    for words, arguments, options in [
        ("rna must be an AnnData: it is a ndarray", (rna.obsm["X_pca"], atac), {}),
        ("atac must be an AnnData: it is a NoneType", (rna, None), {}),
        ("rna and atac must be two objects", (rna, rna), {}),
        ('no "X_umap". There is X, X_pca.', (rna, atac, "X_umap"), {}),
        ('use_rep_y must name a representation of atac: there is no "X_pca". There is X, X_lsi',
         (rna, atac, "X_pca", "X_pca"), {}),
        ("since rna has no X: rna.obsm has X_pca", (bare, atac), {}),
        ('atac.obs_names must differ, since partners are noted by name: "b"', (rna, twins), {}),
        ('atac.obsm["X_lsi"] must be finite', (rna, holed, "X_pca", "X_lsi"), {}),
        ('there is no "kind". There is cell_type.', (rna, atac, "X_pca"), {"labels": "kind"}),
        ("min_confidence must be a number from 0 to 1", (rna, atac), {"min_confidence": 7}),
        ("min_label_confidence must be left out where labels are not carried over", (rna, atac),
         {"min_label_confidence": 0.5}),
    ]:  # fmt: skip
        assert words in message_of(InputError, match, *arguments, **options)
    for cells in (rna, atac):
        assert "X_unpaired" not in cells.obsm
        assert "unpaired_partner" not in cells.obs
        assert "unpaired" not in cells.uns


def test_backed_objects_are_sent_to_memory(assays, tmp_path):
    rna, atac, _ = assays
    rna.write_h5ad(tmp_path / "rna.h5ad")
    backed = anndata.read_h5ad(tmp_path / "rna.h5ad", backed="r")
    words = message_of(InputError, unpaired.anndata.match, backed, atac)
    assert words == "rna must be in memory: it is backed. Pass rna.to_memory()."
    backed.file.close()


# Files


@pytest.fixture
def files(assays, tmp_path):
    rna, atac, order = assays
    rna.write_h5ad(tmp_path / "rna.h5ad")
    atac.write_h5ad(tmp_path / "atac.h5ad")
    return rna, atac, order


def test_tables_are_read_from_h5ad(files, tmp_path):
    rna, *_ = files
    path = tmp_path / "rna.h5ad"
    for name in (path, f"{path}:X"):
        table = read_table(name)
        np.testing.assert_array_equal(table.values, rna.X.toarray())
        assert table.ids == tuple(rna.obs_names)
        assert table.names == tuple(rna.var_names)
    table = read_table(f"{path}:X_pca")
    np.testing.assert_array_equal(table.values, rna.obsm["X_pca"])
    assert (table.ids, table.names) == (tuple(rna.obs_names), None)
    chosen = read_table(path, features="gene3,gene1")
    np.testing.assert_array_equal(chosen.values, rna.X.toarray()[:, [3, 1]])
    packed = tmp_path / "rna.h5ad.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_table(f"{packed}:X_pca").values, rna.obsm["X_pca"])


def test_a_frame_as_representation(files, tmp_path):
    rna, *_ = files
    frame = pd.DataFrame(rna.obsm["X_pca"], index=rna.obs_names, columns=list("abcdefgh"))
    rna.obsm["frame"] = frame
    rna.write_h5ad(tmp_path / "f.h5ad")
    np.testing.assert_array_equal(read_table(f"{tmp_path / 'f.h5ad'}:frame").values, frame)


def test_h5ad_that_cannot_be_read_gets_a_sentence(files, tmp_path, monkeypatch):
    path = tmp_path / "rna.h5ad"
    assert message_of(DataError, read_table, f"{path}:X_umap") == (
        f'{path} has no representation "X_umap": it has X, X_pca. Say which one, e.g. {path}:X.'
    )
    packed = tmp_path / "p.h5ad.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert message_of(DataError, read_table, f"{packed}:no").startswith(f"{packed} has no")

    def spoilt(change):
        bad = tmp_path / "bad.h5ad"
        bad.write_bytes(path.read_bytes())
        with h5py.File(bad, "r+") as store:
            change(store)
        return message_of(DataError, read_table, bad)

    def huge(store):
        del store["X"]
        store.create_dataset("X", shape=(2**40, 2**15), chunks=(1, 8), dtype="f8")

    def words(store):
        del store["X"]
        store["X"] = np.array([[b"a"]] * N)
        store["X"].attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})

    def short(store):
        del store["X"]
        store["X"] = np.zeros((3, 2))

    def old(store):
        short(store)
        del store["obs"]
        store["obs"] = np.zeros(3, dtype=[("index", "S2")])

    assert "it claims" in spoilt(huge)
    assert "Reduce it first" in spoilt(lambda store: store["X"].attrs.update(shape=[2**30, 2**30]))
    assert "must be a matrix of numbers" in spoilt(words)
    assert f"each of the {N} cells: it has shape (3, 2)" in spoilt(short)
    assert "as anndata 0.7 and later write it" in spoilt(old)
    assert "must have a table obs" in spoilt(lambda store: store.pop("obs"))
    assert "could not be read as h5ad" in spoilt(lambda store: store["X"].pop("indptr"))

    def astray(store):
        store["X/indices"][5] = 10**6

    assert "could not be read as h5ad" in spoilt(astray)
    assert "could not be read as h5ad" in spoilt(
        lambda store: store["X"].attrs.update({"encoding-type": "surprise"})
    )
    assert 'no representation "X": it has X_pca' in spoilt(lambda store: store.pop("X"))
    monkeypatch.setitem(sys.modules, "anndata.io", None)
    assert "pip install 'unpaired[anndata]'" in message_of(DataError, read_table, path)


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "unpaired", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_two_files_in_and_two_files_out(files, tmp_path):
    rna, atac, order = files
    command = ("match", "rna.h5ad:X_pca", "atac.h5ad:X_lsi", "--out", "result")
    for _ in range(2):  # the second run takes the place of the first
        done = run(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    x, y = (anndata.read_h5ad(tmp_path / "result" / f"{side}.h5ad") for side in "xy")
    unpaired.anndata.match(rna, atac, "X_pca", "X_lsi")
    for read, own in ((x, rna), (y, atac)):
        assert list(read.obs.columns) == list(own.obs.columns)
        assert read.obs["unpaired_partner"].tolist() == own.obs["unpaired_partner"].tolist()
        np.testing.assert_array_equal(
            read.obs["unpaired_confidence"], own.obs["unpaired_confidence"]
        )
        np.testing.assert_allclose(read.obsm["X_unpaired"], own.obsm["X_unpaired"], atol=1e-6)
        assert read.uns["unpaired"]["verdict"]["level"] == "reliable"
        assert read.uns["unpaired"]["settings"]["x"] == "rna.h5ad:X_pca"
    assert (x.X != rna.X).nnz == 0
    assert (y.obs["unpaired_partner"] == [f"r{i}" for i in order]).all()
    text = (tmp_path / "result" / "match.csv").read_text()
    assert f"r{order[0]},a0," in text
    # Written again, the copy is a whole AnnData, and read as a table like any other.
    x.write_h5ad(tmp_path / "again.h5ad")
    assert read_table(f"{tmp_path / 'again.h5ad'}:X_unpaired").ids == tuple(rna.obs_names)

    np.save(tmp_path / "y.npy", atac.X)
    done = run("match", "rna.h5ad:X_pca", "y.npy", "--out", "result", cwd=tmp_path)
    assert done.returncode == 2
    assert "this one writes no y.h5ad, and result has one" in done.stderr


def test_the_other_commands_take_h5ad(files, tmp_path):
    rna, atac, order = files
    x, y = "rna.h5ad:X_pca", "atac.h5ad:X_lsi"
    for words in (
        ["check", x, y],
        ["fit", x, y, "--out", "fitted"],
        ["transform", "fitted/model", x, "--out", "placed.npy"],
        ["retrieve", "fitted/model", y, x, "--side", "y", "-k", 1, "--out", "found.csv"],
        ["translate", x, y, "--out", "map"],
        ["translate", "map", x, "--out", "there.npy"],
    ):
        done = run(*words, cwd=tmp_path)
        assert done.returncode == 0, (words, done.stderr)
    assert len(np.load(tmp_path / "placed.npy")) == N
    found = pd.read_csv(tmp_path / "found.csv").set_index("query")["found"]
    assert (found[atac.obs_names] == [f"r{i}" for i in order]).mean() > 0.9
    there = np.load(tmp_path / "there.npy")[order]
    assert np.linalg.norm(there - atac.X) < 0.1 * np.linalg.norm(atac.X)


def test_a_broken_file_is_one_sentence_and_exit_code_two(files, tmp_path):
    (tmp_path / "bad.h5ad").write_bytes((tmp_path / "rna.h5ad").read_bytes()[:3000])
    done = run("match", "bad.h5ad", "atac.h5ad", "--out", "result", cwd=tmp_path)
    assert done.returncode == 2
    assert "bad.h5ad could not be read as h5ad" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "result").exists()
