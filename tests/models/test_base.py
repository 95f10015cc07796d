"""Saving, loading and the columns of fit, on an estimator that is quick to fit."""

import hashlib
import json
import os

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save

import unpaired
from unpaired._saving import ARRAYS, CONFIG, _digest
from unpaired.baselines.cca import CCA
from unpaired.errors import DataError, InputError


@pytest.fixture
def views(rng):
    z = rng.normal(size=(40, 3))
    return z @ rng.normal(size=(3, 4)), z @ rng.normal(size=(3, 5))


@pytest.fixture
def model(views):
    return CCA(random_state=0).fit(*views, "aligned")


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def edit(folder, **changes):
    """Change the config as someone who knows about the digest would."""
    config = json.loads((folder / CONFIG).read_text()) | changes
    config["config_sha256"] = _digest(config)
    (folder / CONFIG).write_text(json.dumps(config))


def message_of(kind, call, *args):
    with pytest.raises(kind) as error:
        call(*args)
    return str(error.value)


def test_a_saved_folder_is_strict_json_and_comes_back(model, folder, views):
    def refuse(name):
        raise AssertionError(name)

    json.loads((folder / CONFIG).read_text(), parse_constant=refuse)  # no NaN, no Infinity
    assert sorted(os.listdir(folder)) == [ARRAYS, CONFIG]
    loaded = unpaired.load(folder)
    assert np.isnan(loaded.match_.objective)
    assert np.isnan(loaded.match_.agreement)
    np.testing.assert_array_equal(loaded.score_matrix(*views), model.score_matrix(*views))


def test_values_that_are_not_finite_come_back(model, tmp_path):
    model.history_ = [{"loss": float("inf")}, {"loss": -float("inf")}, {"loss": np.float32(0.5)}]
    model.save(tmp_path / "model")
    assert unpaired.load(tmp_path / "model").history_ == [
        {"loss": float("inf")}, {"loss": -float("inf")}, {"loss": 0.5},
    ]  # fmt: skip


def test_arrays_of_all_shapes_come_back(model, tmp_path, rng):
    extra = {
        "number": np.float64(0.5) * np.ones(()),
        "turned": rng.normal(size=(3, 4)).T,
        "every second": rng.normal(size=(6, 4))[::2, ::2],
        "nothing": np.zeros((0, 3)),
    }
    model._arrays |= extra
    model.save(tmp_path / "model")
    loaded = unpaired.load(tmp_path / "model")
    for name, array in extra.items():
        assert loaded._arrays[name].shape == array.shape
        np.testing.assert_array_equal(loaded._arrays[name], array)


def test_saving_again_replaces_everything(model, folder, views):
    other = CCA(random_state=1).fit(views[0][:, :2], views[1], "aligned")
    other.save(folder)
    loaded = unpaired.load(folder)
    assert loaded.get_params() == other.get_params()
    np.testing.assert_array_equal(loaded.transform_y(views[1]), other.transform_y(views[1]))
    assert os.listdir(folder.parent) == ["model"]


def test_a_save_that_fails_leaves_what_was_there(model, folder, views, monkeypatch):
    before = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    model.random_state = np.random.default_rng(0)
    assert "Give random_state as an integer" in message_of(DataError, model.save, folder)
    assert "random_state" in message_of(DataError, model.save, folder.parent / "new")
    model.random_state = 0
    monkeypatch.setattr(json, "dumps", lambda *_, **__: "x" * 10)
    monkeypatch.setattr("pathlib.Path.write_text", lambda *_, **__: no_space())
    with pytest.raises(OSError, match="No space"):
        model.save(folder)
    with pytest.raises(OSError, match="No space"):
        model.save(folder.parent / "new")
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before
    assert os.listdir(folder.parent) == ["model"]


def no_space():
    raise OSError(28, "No space left on device")


def test_a_folder_of_other_things_is_not_replaced(model, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "also holds notes.txt" in message_of(InputError, model.save, tmp_path)
    (tmp_path / "file").write_text("")
    assert "is a file" in message_of(InputError, model.save, tmp_path / "file")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (CONFIG, None, "does not hold a saved estimator"),
        (ARRAYS, None, "does not hold a saved estimator"),
        (CONFIG, b"", "does not hold a saved estimator"),
        (CONFIG, b"\xff\xfe", "does not hold a saved estimator"),
        (CONFIG, b"[" * 100_000, "does not hold a saved estimator"),
        (CONFIG, b"[]", "it has no format"),
        (CONFIG, b"{}", "it has no format"),
        (CONFIG, b'{"format": 1}', "was saved in format 1 by unpaired of an unknown version"),
        (CONFIG, b'{"format": 3}', "was changed since it was saved"),
        (ARRAYS, b"", "was changed or cut short since it was saved"),
        (ARRAYS, b"\x80\x04\x95", "was changed or cut short since it was saved"),
    ],
)
def test_a_damaged_folder_gets_one_sentence(folder, name, content, message):
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    assert message in message_of(DataError, unpaired.load, folder)


@pytest.mark.parametrize("key", ["params", "values", "columns", "match", "estimator", "unpaired"])
def test_an_edited_config_is_refused(folder, key):
    config = json.loads((folder / CONFIG).read_text())
    config[key] = "edited" if key in ("estimator", "unpaired") else {}
    (folder / CONFIG).write_text(json.dumps(config))
    assert "was changed since it was saved" in message_of(DataError, unpaired.load, folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 4, "unpaired": "9.9"}, "was saved in format 4 by unpaired 9.9"),
        ({"params": {"novel": 1}, "unpaired": "9.9"}, "holds a CCA of unpaired 9.9, which this"),
        ({"values": {}}, "cannot restore (KeyError"),
        ({"values": []}, "cannot restore (TypeError"),
        ({"match": {}}, "cannot restore (KeyError"),
        ({"match": {"objective": "much", "per_start": {}}}, "cannot restore (ValueError"),
        ({"columns": {"x": 4}}, "cannot restore (TypeError"),
        ({"arrays_sha256": "0"}, "was changed or cut short"),
        ({"estimator": "Unheard"}, 'Unknown saved estimator "Unheard"'),
        ({"estimator": "os.system"}, 'Unknown saved estimator "os.system"'),
    ],
)
def test_a_newer_or_forged_folder_gets_one_sentence(folder, changes, message):
    edit(folder, **changes)
    assert message in message_of(unpaired.UnpairedError, unpaired.load, folder)


def test_arrays_of_another_model_get_one_sentence(folder):
    data = save({"match.partner": np.zeros(3, dtype=np.int64)})
    (folder / ARRAYS).write_bytes(data)
    edit(folder, arrays_sha256=hashlib.sha256(data).hexdigest())
    assert "cannot restore (KeyError" in message_of(DataError, unpaired.load, folder)
    (folder / ARRAYS).write_bytes(b"garbage")
    edit(folder, arrays_sha256=hashlib.sha256(b"garbage").hexdigest())
    assert "could not be read" in message_of(DataError, unpaired.load, folder)


def test_loading_from_nowhere(tmp_path):
    assert "does not hold" in message_of(DataError, unpaired.load, tmp_path / "nothing")


def test_columns_of_a_frame_are_kept_and_checked(views, tmp_path):
    x = pd.DataFrame(views[0], columns=list("abcd"))
    y = pd.DataFrame(views[1], columns=list("pqrst"))
    model = CCA(random_state=0).fit(x, y, "aligned")
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.feature_names_in_y_.tolist() == list("pqrst")
    model.save(tmp_path / "model")
    for fitted in (model, unpaired.load(tmp_path / "model")):
        expected = fitted.transform_x(x)
        np.testing.assert_array_equal(fitted.transform_x(x.to_numpy()), expected)
        other = x[list("bacd")]
        assert 'order of fit: column 0 is "b"' in message_of(InputError, fitted.transform_x, other)
        again = other[list(fitted.feature_names_in_)]
        np.testing.assert_array_equal(fitted.transform_x(again), expected)
        renamed = x.rename(columns={"c": "z"})
        assert '"z" was not there' in message_of(InputError, fitted.score_matrix, renamed, y)
        assert "y must have its columns" in message_of(
            InputError, fitted.score_matrix, x, y[list("qprst")]
        )
        assert "4 columns" in message_of(InputError, fitted.transform_x, views[0][:, :2])


def test_without_names_there_is_no_such_attribute(model, views):
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "feature_names_in_y_")
    model.transform_x(pd.DataFrame(views[0], columns=list("abcd")))
    assert not hasattr(CCA(), "feature_names_in_")
