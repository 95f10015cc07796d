"""The page in a real browser: no error, every figure, clicks, keys, a phone, and how soon."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unpaired.report import write_report
from unpaired.results import Asked, Items, Naming, Place, RunResult
from unpaired.types import Match, Objective, Verdict

N = 40
VISIBLE = "return [...document.querySelectorAll('#pairs tbody tr')].filter(r => !r.hidden)"
NAMES = f"{VISIBLE}.map(r => r.cells[0].querySelector('.name').textContent)"
CONFIDENCE = f"{VISIBLE}.map(r => Number(r.cells[2].textContent))"


def match_result(n: int = N, grain: float = 30.0) -> RunResult:
    """A match of photos and long texts whose truth is known, with everything a page can show."""
    rng = np.random.default_rng(0)
    partner = rng.permutation(n)
    truth = partner.copy()
    truth[: n // 4] = np.roll(truth[: n // 4], 1)
    partner[-2:] = -1
    match = Match(
        partner=partner,
        confidence=np.round(rng.random(n), 3),
        objective=Objective(0.23, {"profiles": 0.23, "axes": 0.1}),
        runner_up=rng.integers(0, n, n),
        margin=rng.normal(size=n),
        n_y=n,
        agreement=0.8,
        gap=0.5,
        verdict=Verdict("coarse", 0.93, 0.08, (0.02, 0.19), ("starts agree",)),
    )
    spots = rng.normal(size=(n, 2)).tolist()
    places = [Place("x", i, *spots[i]) for i in range(min(n, 400))]
    places += [Place("y", int(j), *spots[i]) for i, j in enumerate(partner[:400]) if j >= 0]
    photos = 255 * np.kron(rng.random((n, 4, 4, 3)), np.ones((1, 16, 16, 1)))
    photos = np.clip(photos + rng.normal(scale=grain, size=photos.shape), 0, 255).astype(np.uint8)
    return RunResult(
        title="Matching two tables",
        headline={"Rows of x": float(n), "Median confidence": 0.5},
        settings={"x": "a-rather-long-name-of-a-file-" * 4 + ".parquet"},
        seed=0,
        versions={"unpaired": "0.2.0"},
        seconds={"match": 1.0},
        match=match,
        ids_x=tuple(f"IMG_{i:04d}_{'x' * 30}.png" for i in range(n)),
        ids_y=tuple(f"caption {j}" for j in range(n)),
        items_x=Items(photos=dict(enumerate(photos))),
        items_y=Items(dict.fromkeys(range(n), "two dogs run along a beach on a windy day")),
        truth=truth,
        places=tuple(places),
        advice=("bring 15 known pairs",),
    )


def naming_result() -> RunResult:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 90)
    labels = np.where(rng.random(90) < 0.7, truth, rng.integers(0, 3, 90))
    steps = [{"step": i, "precision": 0.1 * i, "recall": 0.1 * i} for i in range(5)]
    images = rng.integers(0, 256, (90, 16, 16, 3), dtype=np.uint8)
    files = tuple(f"IMG_{i:04d}_{'x' * 30}.png" for i in range(8))
    asked = (Asked(30, ("cat", "dog"), files, tuple(images[:8])), Asked(9, ("ship",), files))
    naming = Naming(
        *("No labels", ("cat", "dog", "ship"), labels, rng.random(90), truth, steps), asked=asked
    )
    plain = replace(match_result(), match=None, truth=None, items_x=Items(), items_y=Items())
    return replace(plain, title="Naming photos", namings=(naming,), images=images, places=())


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The written page of each kind."""
    made = {"match": match_result(), "naming": naming_result()}
    return {kind: write_report(r, tmp_path_factory.mktemp(kind)) for kind, r in made.items()}


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("kind", ["match", "naming"])
def test_pages_open_without_an_error_and_never_scroll_sideways(browser, pages, kind, width):
    window = browser(width).open(pages[kind])
    assert window.console() == []
    assert window.run("return document.documentElement.clientWidth") == width
    assert window.run("return document.documentElement.scrollWidth") == width
    broken = "return [...document.images].filter(i => !i.complete || !i.naturalWidth).length"
    assert window.run(broken) == 0
    assert window.run("return document.images.length") > 0


@pytest.mark.parametrize("width", [1200, 390])
def test_photos_that_are_asked_about_stand_apart_with_their_whole_names(browser, pages, width):
    window = browser(width).open(pages["naming"])
    items = "[...document.querySelectorAll('.asked li')]"
    assert window.run(f"return {items}.length") == 16
    assert window.run(f"return {items}.every(i => i.scrollWidth <= i.clientWidth)")
    names = window.run(f"return {items}.map(i => i.querySelector('.file').innerText)")
    assert all(name.endswith(".png") for name in names)
    assert (
        window.run("return document.querySelector('.group h4').innerText") == "cat, dog, another?"
    )


@pytest.mark.parametrize("width", [1200, 390])
def test_the_table_needs_no_sideways_scrolling_either(browser, pages, width):
    window = browser(width).open(pages["match"])
    inner = "const t = document.querySelector('.tall'); return [t.scrollWidth, t.clientWidth]"
    wide, seen = window.run(inner)
    assert wide <= seen


@pytest.mark.parametrize(("kind", "figures"), [("match", ["map", "confidence"]), ("naming", [])])
def test_every_figure_is_there_and_has_a_size(browser, pages, kind, figures):
    window = browser(1200).open(pages[kind])
    sizes = window.run(
        "return [...document.querySelectorAll('figure svg.chart')].map(s => {"
        "const b = s.getBoundingClientRect(); return [b.width, b.height]})"
    )
    assert len(sizes) == {"match": 3, "naming": 2}[kind]
    assert all(across > 200 and up > 100 for across, up in sizes)
    for name in figures:
        assert window.run(f"return document.querySelectorAll('#{name} svg.chart').length") == 1
    assert window.run("return document.querySelectorAll('.reliability circle.dot').length") > 2


def test_the_verdict_is_the_first_thing_seen_even_on_a_phone(browser, pages):
    window = browser(390).open(pages["match"])
    place = "const b = document.querySelector('.verdict .level').getBoundingClientRect();"
    top, size = window.run(f"{place} return [b.top, b.height]")
    assert 0 < top < 400
    assert size >= 28
    assert window.run("return document.querySelector('.level').textContent") == "coarse"


def test_a_click_sorts_and_a_second_one_turns_it_round(browser, pages):
    window = browser(1200).open(pages["match"])
    before = window.run(CONFIDENCE)
    assert before[:-2] == sorted(before[:-2])  # least certain first, left out last
    window.click("#pairs thead th:nth-child(3) button")  # up already: now down
    assert window.run(CONFIDENCE) == sorted(before, reverse=True)
    window.click("#pairs thead th:nth-child(1) button")
    names = window.run(NAMES)
    assert names == sorted(names)
    window.click("#pairs thead th:nth-child(1) button")
    assert window.run(NAMES) == names[::-1]
    order = "return [...document.querySelectorAll('#pairs th[aria-sort]')].map(h => h.ariaSort)"
    assert window.run(order) == ["descending", "none", "none", "none", "none"]


def test_a_click_filters_and_says_how_many_are_left(browser, pages):
    window = browser(1200).open(pages["match"])
    for kind in ("unsure", "sure", "out", "wrong", "right"):
        window.click(f"#controls button[data-kind={kind}]")
        label = window.run(f"return document.querySelector('[data-kind={kind}]').textContent")
        count = len(window.run(NAMES))
        assert f"({count})" in label
        told = window.run("return document.getElementById('shown').textContent")
        assert told == f"{count} of {N} rows shown"
    assert len(window.run(NAMES)) == N * 3 // 4 - 2


def test_all_of_it_works_by_keyboard(browser, pages):
    window = browser(1200).open(pages["match"])
    window.run("document.getElementById('find').focus()")
    window.press(*"img_0007")
    assert len(window.run(NAMES)) == 1
    window.press("q")
    assert window.run(NAMES) == []
    assert "No row fits" in window.run("return document.getElementById('none').innerText")
    window.run("const f = document.getElementById('find'); f.value = ''; f.focus()")
    window.press("Tab", "Tab", "Enter")  # past "all", onto the next filter
    assert window.run("return document.activeElement.getAttribute('aria-pressed')") == "true"
    assert 0 < len(window.run(NAMES)) < N
    window.run("document.querySelector('#pairs thead th:nth-child(5) button').focus()")
    window.press("Space")
    margins = window.run(f"{VISIBLE}.map(r => Number(r.cells[4].textContent))")
    assert margins == sorted(margins)
    ring = window.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert ring == "solid"  # who uses keys sees where they are
    window.run("document.querySelector('summary').focus()")
    window.press("Enter")
    assert window.run("return document.querySelector('details').open") is True


@pytest.mark.parametrize(("grain", "n_photos"), [(6.0, 2000), (90.0, None)])
def test_two_thousand_photos_are_painted_soon_and_take_less_than_5_mb(
    browser, tmp_path, grain, n_photos
):
    page = write_report(match_result(2000, grain), tmp_path)
    assert page.stat().st_size < 5_000_000
    window = browser(1200).open(page)
    paint = "performance.getEntriesByName('first-contentful-paint')[0]"
    assert window.run(f"return {paint}.startTime") < 2000
    assert window.run("return document.querySelectorAll('#pairs tbody tr').length") == 2000
    shown = window.run("return document.images.length")
    told = "have no photos" in window.run("return document.body.innerText")
    if n_photos is None:  # noise compresses badly: the page keeps its size and says what it lacks
        assert 500 < shown < 2000
        assert told
    else:
        assert shown == n_photos
        assert not told
