import numpy as np
import pandas as pd
import pytest

from unpaired.errors import InputError
from unpaired.files.beside import read_side_info, read_weights
from unpaired.files.sheet import Table

X = Table(np.zeros((3, 1)), ("ant", "bee", "cat"))
Y = Table(np.zeros((2, 1)), ("1", "2"))
INFO = pd.DataFrame([[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]], X.ids, Y.ids)


@pytest.mark.parametrize(("rows", "columns"), [((0, 1, 2), (0, 1)), ((2, 0, 1), (1, 0))])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_named_side_information_comes_in_the_order_of_the_tables(tmp_path, rows, columns, kind):
    file, told = tmp_path / f"info.{kind}", []
    frame = INFO.iloc[list(rows), list(columns)]
    frame.to_csv(file) if kind == "csv" else frame.to_parquet(file)
    found = read_side_info(str(file), X, Y, told.append)
    np.testing.assert_array_equal(found, INFO.to_numpy())
    assert len([note for note in told if "by name" in note]) == (0 if rows == (0, 1, 2) else 2)


def test_numbers_alone_come_as_they_are(tmp_path):
    np.save(tmp_path / "info.npy", INFO.to_numpy())
    found = read_side_info(str(tmp_path / "info.npy"), X, Y, pytest.fail)
    np.testing.assert_array_equal(found, INFO.to_numpy())
    np.save(tmp_path / "w.npy", np.arange(3.0))
    weights = read_weights(str(tmp_path / "w.npy"), X, "x", pytest.fail)
    np.testing.assert_array_equal(weights, np.arange(3.0))


def test_other_names_are_told_and_missing_ones_refused(tmp_path):
    file, told = tmp_path / "w.csv", []
    pd.DataFrame({"w": [1.5, 2.5, 0.5]}, index=["p", "q", "r"]).to_csv(file)
    found = read_weights(str(file), X, "x", told.append)
    np.testing.assert_array_equal(found.ravel(), [1.5, 2.5, 0.5])
    assert told == [f"{file}: rows are not called as the rows of x are; taken in their order."]
    for names, said in (
        (["cat", "bee", "owl"], 'none of its rows called "ant"'),
        (["cat", "ant", "ant"], 'several of its rows called "ant"'),
    ):
        pd.DataFrame({"w": [1.5, 2.5, 0.5]}, index=names).to_csv(file)
        with pytest.raises(InputError, match=said):
            read_weights(str(file), X, "x", told.append)
