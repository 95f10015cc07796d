"""Translations: what is known to be linear is found, by rows that never were partners."""

from __future__ import annotations

import numpy as np
import pytest

import unpaired
from unpaired.errors import DataError, InputError
from unpaired.spaces import translation as module
from unpaired.spaces.onnx_export import write_onnx
from unpaired.spaces.translation import Translation, learn_translations


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def cosines(left, right):
    return (unit(left) * unit(right)).sum(1)


def rotation(rng, width):
    return np.linalg.qr(rng.normal(size=(width, width)))[0]


@pytest.fixture(scope="module")
def rows():
    """Clusters in twelve directions of unequal size, so that a rotation can be told."""
    rng = np.random.default_rng(5)
    centers = 3.0 * rng.normal(size=(40, 12))
    found = centers[rng.integers(40, size=900)] + rng.normal(size=(900, 12))
    return unit(found * np.exp(0.4 * rng.normal(size=12)) + 0.3)


@pytest.fixture(scope="module")
def same(rows):
    """The same 300 things on both sides, y in another order; and 100 that were not seen."""
    rng = np.random.default_rng(6)
    turn, order = rotation(rng, 12), rng.permutation(300)
    return unpaired.align(rows[:300], rows[order] @ turn, random_state=7), turn, order


def test_a_rotation_is_found_with_the_same_rows(rows, same):
    aligned, turn, _ = same
    there, back = aligned.translate_x(rows[800:]), aligned.translate_y(rows[800:] @ turn)
    assert cosines(there, rows[800:] @ turn).min() > 0.99
    assert cosines(back, rows[800:]).min() > 0.99
    np.testing.assert_allclose(np.linalg.norm(there, axis=1), 1.0, rtol=1e-5)


def test_a_rotation_is_found_with_disjoint_rows(rows):
    turn = rotation(np.random.default_rng(7), 12)
    aligned = unpaired.align(rows[:400], rows[400:800] @ turn)
    partner = rows[800:] @ turn
    moved = aligned.translate_x(rows[800:])
    assert np.median(cosines(moved, partner)) > 0.99
    assert ((moved @ partner.T).argmax(1) == np.arange(100)).mean() > 0.9


def test_the_map_is_affine_and_lengths_are_kept_where_they_differ(rows, same):
    turn = same[1]
    aligned = unpaired.align(rows[:300], 7.0 * rows[same[2]] @ turn + 2.0)
    made = aligned.translations[0]
    assert not made.unit
    assert aligned.translations[1].unit
    moved = aligned.translate_x(rows[800:])
    np.testing.assert_allclose(moved, rows[800:] @ made.matrix + made.offset, rtol=1e-3, atol=1e-3)
    truth = 7.0 * rows[800:] @ turn + 2.0
    assert np.linalg.norm(moved - truth) < 0.05 * np.linalg.norm(truth - truth.mean(0))


def test_known_pairs_alone_give_the_regression_of_true_partners(rng):
    """Where the space knows nothing, held-out pairs say that free rows count nothing."""
    x = rng.normal(size=(400, 6))
    y = x @ rng.normal(size=(6, 5)) + 1.0
    wrong = unpaired.align(x, rng.normal(size=(400, 5))).solution.space
    known = np.column_stack([np.arange(200)] * 2)
    there, back = learn_translations(wrong, x, y, rng, known=known)
    np.testing.assert_allclose(there(x), y, atol=1e-3)
    assert back.matrix.shape == (5, 6)
    alone, _ = learn_translations(wrong, x, y, rng)
    assert np.abs(alone(x) - y).mean() > 0.5


def test_dmae_translates_and_a_saved_model_translates_alike(rows, same, tmp_path):
    _, turn, order = same
    model = unpaired.DMAE(random_state=0).fit(rows[:300], rows[order] @ turn)
    before = model.translate_x(rows[800:])
    assert cosines(before, rows[800:] @ turn).min() > 0.99
    model.save(tmp_path / "model")
    loaded = unpaired.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.translate_x(rows[800:]), before)
    np.testing.assert_array_equal(loaded.translate_y(before), model.translate_y(before))


def test_an_alignment_comes_back_from_its_folder(rows, same, tmp_path):
    aligned, _, _ = same
    aligned.save(tmp_path / "one")
    loaded = unpaired.load(tmp_path / "one")
    assert isinstance(loaded, unpaired.Alignment)
    np.testing.assert_array_equal(loaded.embed_y(rows[:9]), aligned.embed_y(rows[:9]))
    np.testing.assert_array_equal(loaded.translate_x(rows[:9]), aligned.translate_x(rows[:9]))
    np.testing.assert_array_equal(loaded.match.partner, aligned.match.partner)
    assert loaded.match.verdict == aligned.match.verdict
    assert loaded.seed == aligned.seed == 7
    assert repr(loaded.solution.evidence) == repr(aligned.solution.evidence)  # NaN == NaN
    loaded.save(tmp_path / "two")
    assert (tmp_path / "two" / "arrays.safetensors").read_bytes() == (
        tmp_path / "one" / "arrays.safetensors"
    ).read_bytes()
    with pytest.raises(InputError, match="x must have the 12 columns"):
        loaded.embed_x(rows[:9, :5])


def test_many_rows_pass_in_blocks_and_a_bad_cell_is_named(rng, monkeypatch):
    made = Translation(
        rng.normal(size=(3, 2)).astype(np.float32), np.zeros(2, dtype=np.float32), unit=True
    )
    rows = rng.normal(size=(50, 3))
    whole = made(rows)
    monkeypatch.setattr(module, "BLOCK_ROWS", 7)
    np.testing.assert_allclose(made(rows), whole, rtol=1e-5)
    np.testing.assert_allclose(made(rows.tolist()), whole, rtol=1e-5)
    rows[33, 1] = np.nan
    with pytest.raises(InputError, match="row 33"):
        made(rows)
    with pytest.raises(InputError, match="must have the 3 columns"):
        made(rows[:, :2])


def test_a_saved_translation_is_refused_when_changed(tmp_path, rng):
    made = Translation(rng.normal(size=(3, 2)).astype(np.float32), np.ones(2, dtype=np.float32))
    made.save(tmp_path / "map")
    rows = rng.normal(size=(4, 3))
    np.testing.assert_array_equal(unpaired.load(tmp_path / "map")(rows), made(rows))
    file = tmp_path / "map" / "arrays.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(DataError, match="changed"):
        unpaired.load(tmp_path / "map")


def test_wide_rows_are_refused(same, monkeypatch, rng):
    monkeypatch.setattr(module, "MOST_COLUMNS", 5)
    space = same[0].solution.space
    with pytest.raises(InputError, match="at most 5 columns"):
        learn_translations(space, rng.normal(size=(9, 12)), rng.normal(size=(9, 12)), rng)


def test_where_rows_are_drawn_partners_are_among_them(rows, same, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 60)
    aligned, turn, order = same
    drawn, _ = learn_translations(
        aligned.solution.space,
        rows[:300],
        rows[order] @ turn,
        np.random.default_rng(0),
        partner=aligned.match.partner,
    )
    assert np.median(cosines(drawn(rows[800:]), rows[800:] @ turn)) > 0.99


@pytest.mark.parametrize("is_unit", [False, True])
def test_the_onnx_file_computes_the_same(tmp_path, rng, is_unit):
    from onnx.reference import ReferenceEvaluator

    made = Translation(
        rng.normal(size=(4, 3)).astype(np.float32), rng.normal(size=3).astype(np.float32), is_unit
    )
    rows = rng.normal(size=(6, 4)).astype(np.float32)
    path = write_onnx(made, tmp_path / "map.onnx")
    (found,) = ReferenceEvaluator(str(path)).run(None, {"rows": rows})
    np.testing.assert_allclose(found, made(rows), rtol=1e-5)


def test_without_onnx_one_sentence_says_so(tmp_path, monkeypatch, rng):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    made = Translation(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.float32))
    with pytest.raises(DataError, match=r"This needs onnx: pip install 'unpaired\[onnx\]'\."):
        write_onnx(made, tmp_path / "map.onnx")
    assert not list(tmp_path.iterdir())
