"""People's photos, texts and true pairs on the page that ``unpaired report`` draws again."""

import re

import numpy as np
import pytest
from PIL import Image

from unpaired.commands.showing import described
from unpaired.datasets.toy import rotated_clusters
from unpaired.files.sheet import Table

N = 60


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished match of two CSV files with ids, and the folder it was run in."""
    folder = tmp_path_factory.mktemp("finished")
    data = rotated_clusters(N, np.random.default_rng(2), d_x=6, d_y=5)
    for side, rows in (("x", data.x), ("y", data.y)):
        columns = [f"{side} of {'abcdef'[c]}" for c in range(rows.shape[1])]
        lines = [",".join(["id", *columns])]
        lines += [",".join([f"{side}{i}", *map(repr, row.tolist())]) for i, row in enumerate(rows)]
        (folder / f"{side}.csv").write_text("\n".join(lines))
    pairs = "".join(f"x{i},y{j}\n" for i, j in enumerate(data.truth))
    (folder / "truth.csv").write_text(pairs)
    (folder / "photos").mkdir()
    for i in range(3):
        Image.new("RGB", (90, 60), (80 * i, 10, 10)).save(folder / "photos" / f"x{i}.png")
    (folder / "photos" / "x3.png").write_bytes(b"no photo")
    (folder / "in-order.txt").write_text("".join(f"the text of row {j}\n" for j in range(N)))
    (folder / "by-id.tsv").write_text("y4\tfour & more\ny9\tnine\nother\tof no row\n")
    return folder


@pytest.fixture
def run(finished, monkeypatch, typed):
    monkeypatch.chdir(finished)
    if not (finished / "result").exists():
        code, _, err = typed("match", "x.csv", "y.csv", "--out", "result")
        assert code == 0, err
    return typed


def page_of(folder) -> str:
    return (folder / "result" / "report.html").read_text(encoding="utf-8")


def test_columns_that_stand_out_are_told_without_being_asked(run, finished):
    run("report", "result")
    assert len(re.findall(r'class="told">x of [a-f] [+-]\d', page_of(finished))) == N


def test_photos_texts_and_truth_come_onto_the_page(run, finished):
    code, out, err = run(
        "report", "result", "--show-x", "photos", "--show-y", "in-order.txt", "--truth", "truth.csv"
    )
    assert code == 0, err
    page = page_of(finished)
    assert page.count("<img ") == 3  # the fourth file is no photo
    assert page.count("the text of row 7<") >= 1
    assert 'data-truth="right"' in page
    assert "Is confidence what it says?" in page


def test_texts_may_come_by_id(run, finished):
    assert run("report", "result", "--show-y", "by-id.tsv")[0] == 0
    assert "four &amp; more" in page_of(finished)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--show-y", "photos"), 'show-y must hold photos called as the rows are, such as "y0"'),
        (("--show-x", "by-id.tsv"), 'show-x must have lines id<TAB>text for rows such as "x0"'),
        (("--show-x", "truth.csv"), ""),
        (("--show-x", "absent.txt"), "There is no text file absent.txt"),
        (("--truth", "in-order.txt"), "must have two columns"),
        (("--truth", "two.csv"), 'truth must name one partner a row: "x0" has several'),
        (("--show-x", "short.txt"), "show-x must have a line for each of the 60 rows"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(run, finished, arguments, message):
    (finished / "short.txt").write_text("one\ntwo\n")
    (finished / "two.csv").write_text("x0,y0\nx0,y1\n")
    before = page_of(finished)
    code, _, err = run("report", "result", *arguments)
    if message:
        assert code == 2
        assert message in err
        assert page_of(finished) == before
    else:
        assert code == 0  # sixty lines of any text are texts


def test_columns_without_words_are_not_told():
    values = np.random.default_rng(0).normal(size=(4, 2))
    assert described(Table(values, names=("0", "1")), [0]).texts == {}
    assert described(Table(values, names=("v0", "v1")), [0]).texts == {}
    assert described(Table(values), [0]).texts == {}
    assert list(described(Table(values, names=("age", "1")), [0, 2]).texts) == [0, 2]
