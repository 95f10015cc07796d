"""The report's pictures: sound SVG, right coordinates, no formulas, the same bytes twice."""

from __future__ import annotations

import base64
import io
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from unpaired.errors import InputError
from unpaired.report.plots import histogram, line_chart, photo_uri, save_overview_png
from unpaired.results import Naming, RunResult

NASTY = "<script>alert(1)</script>&\"'"


def make_result(names: tuple[str, ...] = ("cat", "dog"), n: int = 40) -> RunResult:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, len(names), n)
    labels = rng.integers(0, len(names), n)
    naming = Naming("Names given with no labels", names, labels, rng.random(n), truth)
    images = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    return RunResult("t", {}, {}, 0, {}, {}, namings=(naming,), images=images)


def read_image(source) -> np.ndarray:
    with Image.open(source) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def test_line_chart_is_well_formed_and_rises_with_the_values():
    svg = line_chart({"loss": [(0, 0.0), (1, 1.0)], "other": [(0, 0.5), (1, 0.5)]}, title="Loss")
    root = ElementTree.fromstring(svg)
    paths = [e.get("d") for e in root.iter("path") if "line" in (e.get("class") or "")]
    (x0, y0), (x1, y1) = [
        (float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", paths[0])
    ]
    assert x1 > x0
    assert y1 < y0  # SVG counts downwards
    assert root.get("aria-label") == "Loss: loss ends at 1; other ends at 0.5"
    classes = [e.get("class") for e in root.iter("path")]
    assert "line s0" in classes
    assert "line s1" in classes


def test_values_that_are_not_finite_break_the_line():
    nan = float("nan")
    svg = line_chart({"a": [(0, 1.0), (1, nan), (2, 3.0), (3, float("inf")), (4, 2.0)]}, title="t")
    path = re.search(r'class="line s0" d="([^"]*)"', svg).group(1)
    assert path.count("M") == 3
    assert "nan" not in svg
    assert "inf" not in svg


@pytest.mark.parametrize("points", [[], [(0, float("nan"))], [(3, 2.0)], [(0, 0.0), (9, 0.0)]])
def test_degenerate_series_still_draw(points):
    svg = line_chart({"a": points}, title="t")
    ElementTree.fromstring(svg)
    assert "nan" not in svg


def test_long_series_are_thinned_and_keep_their_end():
    svg = line_chart({"a": [(i, i % 7) for i in range(50_001)]}, title="t")
    assert len(svg) < 10_000
    assert "a ends at 6" in svg


def test_strings_inside_svg_are_escaped():
    svg = line_chart({NASTY: [(0, 1.0)]}, title=NASTY, x_label=NASTY, y_label=NASTY)
    svg += histogram(np.ones(3), title=NASTY, x_label=NASTY)
    assert "<script" not in svg
    root = ElementTree.fromstring(f"<div>{svg}</div>")
    assert NASTY in [e.text for e in root.iter("text")]


def test_histogram_counts_every_finite_value():
    values = np.array([0.0, 0.02, 0.5, 1.0, 1.2, np.nan])
    root = ElementTree.fromstring(histogram(values, title="t", x_label="confidence", n_bins=10))
    counts = [int((e.text or "").split()[0]) for e in root.iter("title")]
    assert counts == [2, 0, 0, 0, 0, 1, 0, 0, 0, 2]
    assert "5 rows" in (root.get("aria-label") or "")


def test_empty_histogram_is_well_formed():
    ElementTree.fromstring(histogram(np.zeros(0), title="t", x_label="x"))


def test_photo_uri_holds_the_photo():
    image = np.zeros((32, 24, 3), dtype=np.uint8)
    image[:16] = (200, 30, 40)
    head, body = photo_uri(image).split(",")
    assert head == "data:image/webp;base64"
    back = read_image(io.BytesIO(base64.b64decode(body)))
    assert back.shape == image.shape
    assert np.abs(back - image).mean() < 5


def test_without_webp_photos_are_jpeg(monkeypatch):
    monkeypatch.setattr("PIL.features.check", lambda name: False)
    assert photo_uri(np.zeros((8, 8, 3), dtype=np.uint8)).startswith("data:image/jpeg;base64,")


def test_large_photos_are_made_smaller():
    body = photo_uri(np.zeros((600, 300, 3), dtype=np.uint8)).split(",")[1]
    assert read_image(io.BytesIO(base64.b64decode(body))).shape == (96, 48, 3)


def test_overview_is_a_picture_and_the_same_twice(tmp_path):
    result = make_result()
    first = save_overview_png(result, tmp_path / "a.png")
    second = save_overview_png(result, tmp_path / "b.png")
    assert first.read_bytes() == second.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "b.png"]
    assert read_image(first).shape == (84 + 2 * 70 + 44, 150 + 700 + 80, 3)


def test_overview_shows_the_surest_photo_first_and_frames_wrong_ones(tmp_path):
    result = make_result(("only", "other"), n=2)
    naming = replace(
        result.namings[0],
        labels=np.zeros(2, np.int64),
        truth=np.array([1, 0]),
        confidence=np.array([0.1, 0.9]),
    )
    images = np.stack([np.full((32, 32, 3), v, dtype=np.uint8) for v in (60, 200)])
    path = save_overview_png(replace(result, namings=(naming,), images=images), tmp_path / "a.png")
    pixels = read_image(path)
    assert abs(pixels[84 + 40, 150 + 20] - 200).max() < 4
    assert abs(pixels[84 + 40, 150 + 70 + 20] - 60).max() < 4
    assert abs(pixels[84 + 40, 150] - 200).max() < 60  # right: no frame
    red, green, _ = pixels[84 + 40, 150 + 70 + 1]
    assert red > green + 60  # wrong: a red frame


def test_overview_prefers_the_naming_with_no_labels(tmp_path):
    result = make_result()
    other = replace(result.namings[0], title="One label per class", labels=np.zeros(40, np.int64))
    alone = save_overview_png(result, tmp_path / "a.png")
    second = replace(result, namings=(other, *result.namings))
    assert save_overview_png(second, tmp_path / "b.png").read_bytes() == alone.read_bytes()


@pytest.mark.parametrize("name", ["$x^2", r"$\frac{$", NASTY, "\u5317\u6975\u718a", "x" * 200, ""])
def test_overview_writes_names_literally(tmp_path, name, recwarn):
    save_overview_png(make_result((name, "dog")), tmp_path / "a.png")
    assert not [w for w in recwarn if "Glyph" in str(w.message)]


def test_overview_without_truth_or_confidence(tmp_path):
    result = make_result()
    naming = replace(result.namings[0], truth=None, confidence=np.full(40, np.nan))
    assert save_overview_png(replace(result, namings=(naming,)), tmp_path / "a.png").is_file()


def test_overview_leaves_pyplot_alone(tmp_path):
    before = "matplotlib.pyplot" in sys.modules
    save_overview_png(make_result(), tmp_path / "a.png")
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_overview_needs_a_naming_and_images(tmp_path):
    result = make_result()
    with pytest.raises(InputError, match="0 namings"):
        save_overview_png(replace(result, namings=()), tmp_path / "a.png")
    with pytest.raises(InputError, match="no images"):
        save_overview_png(replace(result, images=None), tmp_path / "a.png")
