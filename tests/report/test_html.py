"""The report page: what it holds, that data cannot break it, and that it is one offline file."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.report import render_report, write_report
from unpaired.report.numbers import duration, number, percent
from unpaired.report.stored import read_stored, write_stored
from unpaired.results import Items, Naming, Place, RunResult
from unpaired.types import Match, Objective, Verdict

NASTY = "<script>alert(1)</script>&\"'"
VOID = {"meta", "img", "input", "br"}


class Page(HTMLParser):
    """Collects tags, attributes, headings and text, and checks that tags nest."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[int, str]] = []
        self.text = ""
        self.feed(source)
        self.close()
        assert self.open == [], f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len(dict(attrs)), f"attribute given twice on {tag}: {attrs}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1:] == [tag], f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "style" in self.open or "script" in self.open:
            return
        self.text += data
        inside = [tag for tag in self.open if re.fullmatch("h[1-6]", tag)]
        if inside:
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def titles(self) -> list[str]:
        return [text for _, text in self.headings]


def history(n: int = 12) -> list[dict[str, float]]:
    return [
        {
            "step": float(i),
            "loss": 2.0 / (i + 1),
            "reconstruction_x": 1.0 / (i + 1),
            "reconstruction_y": 0.5 / (i + 1),
            "dependence": 0.3 - 0.2 / (i + 1),
            "changed": float(n - i),
            "precision": 0.5 + 0.02 * i,
            "recall": 0.4 + 0.02 * i,
        }
        for i in range(n)
    ]


def make_naming(names: tuple[str, ...] = ("cat", "dog", "ship"), n: int = 90) -> Naming:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, len(names), n)
    labels = np.where(rng.random(n) < 0.7, truth, rng.integers(0, len(names), n))
    return Naming("Names given with no labels", names, labels, rng.random(n), truth, history())


def make_result(*namings: Naming, **changes: object) -> RunResult:
    namings = namings or (make_naming(),)
    n = len(namings[0].labels)
    images = np.random.default_rng(1).integers(0, 256, (n, 8, 8, 3), dtype=np.uint8)
    result = RunResult(
        title="Naming photos",
        headline={"no labels": 0.512, "baseline: k-means + FAQ": 0.31, "photos": 90.0},
        settings={"dependence": "smi", "hidden": (64, 20)},
        seed=17,
        versions={"unpaired": "0.1.0", "torch": "2.13.0"},
        seconds={"fit": 31.4, "total": 152.0},
        namings=namings,
        images=images,
        notes=("One seed only.",),
    )
    return replace(result, **changes)


def make_match(n: int = 50, **changes: object) -> Match:
    rng = np.random.default_rng(0)
    match = Match(
        partner=rng.permutation(n),
        confidence=rng.random(n),
        objective=Objective(0.23, {"signatures": 0.23, "spectral": 0.19, "random": -0.01}),
        runner_up=rng.integers(-1, n, n),
        margin=rng.normal(size=n),
        n_y=n,
        agreement=0.83,
        gap=0.62,
    )
    return replace(match, **changes)


def match_result(match: Match, **changes: object) -> RunResult:
    result = make_result(namings=(), images=None, match=match, headline={"dependence": 0.23})
    return replace(result, **changes)


def test_naming_report_has_every_section_in_heading_order():
    page = Page(render_report(make_result(make_naming(), replace(make_naming(), title="Second"))))
    for title in (
        "Naming photos",
        "Result",
        "Names given with no labels",
        "Second",
        "Photos under the name they were given",
        "cat",
        "Precision and recall by class",
        "Confusion matrix",
        "Over the iterations",
        "Precision and recall of the matching",
        "Loss",
        "Dependence",
        "Changes of the match",
        "Settings, seed and versions",
        "Timings",
    ):
        assert title in page.titles()
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
    for words in ("51.2%", "31.0%", "One seed only.", "64, 20", "17", "2.13.0", "2 min 32 s"):
        assert words in page.text


def test_match_report_has_every_section():
    match = make_match()
    page = Page(render_report(match_result(match, history=history())))
    for title in (
        "The match",
        "What each start reached",
        "Confidence",
        "Rows side by side",
        "Loss",
    ):
        assert title in page.titles()
    for words in ("50 of 50 rows of x matched", "Agreement 0.83", "Gap 0.62", "signatures (best)"):
        assert words in page.text
    assert f"{match.confidence.max():.3f}" in page.text
    assert f"{match.confidence.min():.3f}" in page.text


def test_links_lead_to_sections_on_the_page():
    page = Page(render_report(make_result()))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    links = [attributes["href"] for attributes in page.all("a")]
    assert len(ids) == len(set(ids))
    assert {f"#{name}" for name in ids} == set(links)


def test_every_string_from_data_is_escaped():
    naming = replace(make_naming((NASTY, "dog", "a $x$ {{ 7*7 }}")), title=NASTY)
    result = make_result(
        naming,
        title=NASTY,
        headline={NASTY: 0.5, f"{NASTY} count": 12.0},
        settings={NASTY: NASTY, "nested": {"deep": [NASTY]}},
        versions={NASTY: NASTY},
        seconds={NASTY: 1.0},
        notes=(NASTY,),
        match=make_match(
            objective=Objective(0.1, {NASTY: 0.1}),
            verdict=Verdict("coarse", 0.9, 0.1, (0.0, 0.2), (NASTY,)),
        ),
        ids_x=(NASTY,) * 50,
        ids_y=(NASTY,) * 50,
        advice=(NASTY,),
    )
    source = render_report(result)
    page = Page(source)
    script = resources.files("unpaired.report").joinpath("rows.js").read_text(encoding="utf-8")
    assert source.lower().count("<script") == 1
    assert f"<script>{script}</script>" in source
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = page.all("meta")[-1]["content"] or ""
    assert f"script-src 'sha256-{digest}'" in policy  # no other script would be run
    assert page.text.count(NASTY) >= 12
    assert any(NASTY in (attributes["alt"] or "") for attributes in page.all("img"))
    assert "{{ 7*7 }}" in page.text
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_page_is_offline_and_self_contained(tmp_path):
    path = write_report(make_result(match=make_match()), tmp_path)
    source = path.read_text(encoding="utf-8")
    assert "http://" not in source
    assert "https://" not in source
    assert "url(" not in source
    assert "@import" not in source
    page = Page(source)
    assert page.all("link") == []
    assert all((image["src"] or "").startswith("data:image/") for image in page.all("img"))
    assert all(image["alt"] for image in page.all("img"))
    assert all("aria-label" in svg or "aria-hidden" in svg for svg in page.all("svg"))


def test_same_result_gives_the_same_bytes(tmp_path):
    result = make_result(settings={"measures": {"smi", "hsic", "cka"}})
    first = write_report(result, tmp_path / "a").read_bytes()
    assert write_report(result, tmp_path / "b").read_bytes() == first
    assert b"cka, hsic, smi" in first


def test_write_report_makes_the_folder_and_leaves_only_the_report(tmp_path):
    path = write_report(make_result(), str(tmp_path / "new" / "folder"))
    assert path == tmp_path / "new" / "folder" / "report.html"
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]


def test_failed_report_leaves_the_old_one(tmp_path):
    path = write_report(make_result(), tmp_path)
    before = path.read_bytes()
    bad = replace(make_naming(), confidence=np.ones(3))
    with pytest.raises(InputError, match="confidence must have one entry per label"):
        write_report(make_result(bad), tmp_path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_photos_come_sorted_by_confidence_and_wrong_ones_are_marked():
    naming = Naming(
        "t",
        ("cat", "dog"),
        labels=np.array([0, 0, 0, 1]),
        confidence=np.array([0.2, 0.9, np.nan, 0.5]),
        truth=np.array([0, 1, 0, 1]),
    )
    page = Page(render_report(make_result(naming)))
    alts = [image["alt"] for image in page.all("img")]
    assert alts == [
        "Photo 1, named cat, wrongly",
        "Photo 0, named cat",
        "Photo 2, named cat",
        "Photo 3, named dog",
    ]
    assert page.text.count("wrong, truly dog") == 1
    assert page.text.count("\N{MULTIPLICATION X}") == 1


def test_many_photos_show_the_surest_and_the_least_sure_and_say_how_many():
    confidence = np.linspace(0, 1, 100)
    naming = Naming("t", ("cat",), np.zeros(100, np.int64), confidence)
    page = Page(render_report(make_result(naming)))
    rows = [int(re.search(r"\d+", image["alt"] or "").group()) for image in page.all("img")]
    assert rows == [*range(99, 81, -1), *range(5, -1, -1)]
    assert "100 photos; shown: the 18 surest and the 6 least sure" in page.text


def test_page_stays_small_with_two_namings_of_ten_classes(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 600)
    naming = Naming("t", tuple("abcdefghij"), labels, rng.random(600), labels)
    images = rng.integers(0, 256, (600, 32, 32, 3), dtype=np.uint8)  # noise: the worst to compress
    path = write_report(make_result(naming, naming, images=images), tmp_path)
    assert len(Page(path.read_text(encoding="utf-8")).all("img")) == 2 * 10 * 24
    assert path.stat().st_size < 4_000_000


def test_scores_match_a_count_by_hand():
    naming = Naming(
        "t",
        ("cat", "dog", "owl"),
        labels=np.array([0, 0, 1, 1, 1, -1]),
        confidence=np.ones(6),
        truth=np.array([0, 1, 1, 1, -1, 0]),
    )
    page = Page(render_report(make_result(naming)))
    text = re.sub(r"\s+", " ", page.text)
    assert "60.0% of the 5 whose class is known got the right one" in text
    # class, photos given the name, photos of the class, precision, recall
    assert re.search(r"cat ?2 ?2 50.0% ?50.0%", text)
    assert re.search(r"dog ?2 ?3 100.0% ?66.7%", text)
    assert re.search(r"owl ?0 ?0 n/a ?n/a", text)
    assert "(left unnamed)" in page.titles()
    source = render_report(make_result(naming))
    cells = re.findall(r'<td class="[^"]*" style="--v:([\d.]+)">(\d+)</td>', source)
    counts = [int(count) for _, count in cells]
    assert counts == [1, 0, 0, 1, 1, 2, 0, 0, 0, 0, 0, 0]
    assert [float(share) for share, _ in cells[:4]] == [0.5, 0.0, 0.0, 0.5]


def test_no_truth_says_so_and_marks_nothing():
    page = Page(render_report(make_result(replace(make_naming(), truth=None))))
    assert "true classes are not known" in page.text
    assert page.text.count("Not measured: the true classes are not known.") == 2
    assert "truly" not in page.text


def test_no_images_shows_row_numbers():
    page = Page(render_report(make_result(images=None)))
    assert page.all("img") == []
    assert re.search(r"#\d+", page.text)


@pytest.mark.parametrize(
    "naming",
    [
        Naming("empty", ("cat", "dog"), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)),
        Naming("one class", ("cat",), np.zeros(5, np.int64), np.ones(5), np.zeros(5, np.int64)),
        Naming("one photo", ("cat", "dog"), np.ones(1, np.int64), np.ones(1), np.zeros(1, int)),
        Naming("empty group", ("cat", "dog"), np.ones(5, np.int64), np.full(5, np.nan)),
        Naming("no names", (), np.full(4, -1), np.ones(4)),
    ],
    ids=lambda naming: naming.title,
)
def test_unusual_namings_still_give_a_sound_page(naming):
    page = Page(render_report(make_result(naming)))
    assert naming.title in page.titles()
    assert "nan" not in page.text.lower().replace("naming", "")


def test_empty_group_is_named():
    naming = Naming("t", ("cat", "dog"), np.ones(5, np.int64), np.ones(5), np.ones(5, np.int64))
    page = Page(render_report(make_result(naming)))
    assert "No photo got this name" in page.text
    assert "n/a" in page.text  # the precision of a name nobody got


def test_long_and_foreign_names_come_through():
    names = ("x" * 300, "\u5317\u6975\u718a \U0001f43b", "\u05d3\u05d5\u05d1", "a\udcffb", "")
    page = Page(render_report(make_result(make_naming(names))))
    assert names[0] in page.titles()
    assert names[1] in page.titles()
    assert names[2] in page.titles()
    assert "a?b" in page.titles()


def test_many_classes_list_mistakes_instead_of_a_matrix():
    names = tuple(f"class {i}" for i in range(60))
    page = Page(render_report(make_result(make_naming(names, n=600))))
    assert "these are its largest mistakes" in page.text
    assert len(page.all("img")) <= 60 * 8


def test_unmeasured_numbers_are_told_in_words():
    nan = float("nan")
    match = make_match(
        agreement=nan,
        gap=nan,
        converged=False,
        objective=Objective(nan, {"only": nan}),
        margin=np.full(50, nan),
    )
    page = Page(render_report(match_result(match, headline={"dependence": nan})))
    assert "Agreement was not measured" in page.text
    assert "gap to random maps was not measured" in page.text
    assert "objective: not measured" in page.text
    assert "stopped before it settled" in page.text
    assert "(best)" not in page.text
    assert "nan" not in page.text


def test_rows_left_out_are_counted_and_not_listed():
    partner = np.arange(30)
    partner[:10] = -1
    page = Page(render_report(match_result(make_match(30, partner=partner))))
    assert "10 rows were left out" in page.text
    kinds = [row["data-kind"] for row in page.all("tr") if "data-kind" in row]
    assert kinds[-10:] == ["out"] * 10
    assert kinds.count("out") == 10
    assert page.text.count("left out") >= 11


def test_nothing_matched_still_gives_a_page():
    empty = make_match(4, partner=np.full(4, -1))
    assert "No row was matched" in Page(render_report(match_result(empty))).text


def test_history_with_gaps_and_no_history():
    steps = [{"loss": float("nan")}, {"loss": 1.0}, {"precision": 0.5}]
    page = Page(render_report(match_result(make_match(), history=steps)))
    assert "Loss" in page.titles()
    assert "Dependence" not in page.titles()
    bare = make_result(replace(make_naming(), history=[]))
    assert "No steps were recorded" in Page(render_report(bare)).text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"truth": np.zeros(3, np.int64)}, "truth must have one entry per label"),
        ({"labels": np.full(90, 7)}, "labels must be below 3"),
        ({"truth": np.full(90, 7)}, "truth must be below 3"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        render_report(make_result(replace(make_naming(), **change)))


def test_only_rows_with_a_photo_are_shown_and_all_are_counted():
    whole, part = make_result(), make_result()
    part = replace(part, images=part.images[:30])
    labels = whole.namings[0].labels
    shown = re.findall(r'alt="Photo (\d+),', render_report(part))
    assert shown
    assert max(map(int, shown)) < 30
    count = int((labels == labels[0]).sum())
    assert f"{count} photos" in render_report(part)
    more = np.zeros((91, 8, 8, 3), dtype=np.uint8)
    with pytest.raises(InputError, match="images must be of the rows of naming"):
        render_report(replace(whole, images=more))


def test_images_of_another_kind_are_refused():
    with pytest.raises(InputError, match=r"images must be uint8 of shape"):
        render_report(make_result(images=np.zeros((90, 8, 8), dtype=np.uint8)))


def test_template_stands_beside_the_code():
    import unpaired.report

    folder = Path(unpaired.report.__file__).parent
    assert (folder / "template.html.j2").is_file()


def test_numbers_read_well():
    assert [number(v) for v in (2000, 0.12345, 12345.6, float("nan"), -3.0)] == [
        "2,000",
        "0.123",
        "12,346",
        "n/a",
        "-3",
    ]
    assert [percent(v) for v in (0.5, 1.0, float("nan"))] == ["50.0%", "100.0%", "n/a"]
    assert [duration(v) for v in (0.5, 31.44, 150.0, float("nan"))] == [
        "0.50 s",
        "31.4 s",
        "2 min 30 s",
        "n/a",
    ]


def test_the_verdict_stands_first_with_what_to_do_next():
    verdict = Verdict("unreliable", 0.12, 0.43, (0.3, 0.55), ("starts disagree",))
    told = ("bring 15 known pairs",)
    page = Page(render_report(match_result(make_match(verdict=verdict), advice=told)))
    assert [text for level, text in page.headings if level == 2][0] == "Verdict"
    for words in ("Nothing vouches for this match", "12%", "0.43", "0.30 to 0.55", *told):
        assert words in page.text
    assert page.text.index("starts disagree") < page.text.index("dependence")
    assert any(d.get("class") == "verdict unreliable" for d in page.all("div"))
    many = make_match(relation="many-to-one")
    assert "not judged: check some rows" in Page(render_report(match_result(many))).text
    assert "Verdict" not in Page(render_report(make_result())).titles()


def test_rows_stand_least_certain_first_and_ties_by_margin():
    confidence = np.array([0.7, 0.2, 0.2, 0.95, 0.0])
    margin = np.array([1.0, 0.5, -0.5, 2.0, np.nan])
    match = make_match(
        5,
        partner=np.array([0, 1, 2, 3, -1]),
        confidence=confidence,
        margin=margin,
        runner_up=np.full(5, -1),
    )
    names = tuple(f"thing {i}" for i in range(5))
    page = Page(render_report(match_result(match, ids_x=names, ids_y=names)))
    places = [page.text.index(f"thing {i}") for i in (2, 1, 0, 3, 4)]
    assert places == sorted(places)
    rows = [row["data-kind"] for row in page.all("tr") if "data-kind" in row]
    assert rows == ["unsure", "unsure", "between", "sure", "out"]
    labels = [b["data-kind"] for b in page.all("button")]
    assert labels == ["all", "sure", "between", "unsure", "out"]
    assert page.all("input")[0]["type"] == "search"


def test_many_rows_are_cut_and_it_is_said(monkeypatch):
    monkeypatch.setattr("unpaired.report.items.ROWS_SHOWN", 8)
    page = Page(render_report(match_result(make_match())))
    assert len([row for row in page.all("tr") if "data-kind" in row]) == 8
    assert "the first 8 of 50 rows" in page.text


def test_the_map_stands_on_the_page_where_rows_have_places():
    places = tuple(Place(side, i, float(i), 0.0) for side in "xy" for i in range(3))
    page = Page(render_report(match_result(make_match(3), places=places)))
    assert "Both sides on one map" in page.titles()
    assert "#map" in [link["href"] for link in page.all("a")]
    assert "Both sides on one map" not in Page(render_report(match_result(make_match(3)))).titles()


def test_truth_marks_rows_counts_them_and_judges_confidence():
    match = make_match(4, partner=np.array([0, 1, 2, 3]), confidence=np.full(4, 0.5))
    source = render_report(match_result(match, truth=np.array([0, 1, 3, -1])))
    page = Page(source)
    assert [row.get("data-truth") for row in page.all("tr")].count("right") == 2
    assert [row.get("data-truth") for row in page.all("tr")].count("wrong") == 1
    assert "Is confidence what it says?" in page.titles()
    assert "66.7% right, 50.0% claimed, over 3 matched rows" in page.text
    assert [b["data-kind"] for b in page.all("button")] == ["all", "between", "wrong", "right"]
    plain = Page(render_report(match_result(match)))
    assert "Is confidence what it says?" not in plain.titles()


def test_the_verdict_on_names_stands_first_too():
    verdict = Verdict("coarse", 0.81, 0.07, (0.0, 0.3), ("two halves agree",))
    naming = replace(make_naming(), truth=None, verdict=verdict)
    page = Page(render_report(make_result(naming, advice=("say what the cats are",))))
    assert page.titles()[1] == "Verdict"
    for words in ("Where one is wrong, all its photos are", "81%", "two halves agree"):
        assert words in page.text
    assert page.text.index("say what the cats are") < page.text.index("One seed only.")
    assert "right for groups with probability 0.81" in page.text
    scored = Page(render_report(make_result(replace(make_naming(), verdict=verdict))))
    assert "Verdict" not in scored.titles()  # what was counted comes before what was guessed
    assert "right for groups with probability 0.81" in scored.text


def test_a_stored_result_gives_the_same_page(tmp_path):
    verdict = Verdict("coarse", 0.8, 0.1, (0.0, 0.2), ("why",))
    result = match_result(
        make_match(verdict=verdict, gap=float("nan")),
        ids_x=tuple(f"=a{i}" for i in range(50)),
        places=(Place("x", 0, 0.1, 0.2), Place("y", 3, 0.3, 0.4)),
        advice=("do",),
        history=history(),
        items_x=Items({3: "a text"}),
        settings={"relation": "one-to-one", "x": "file"},
    )
    write_stored(result, tmp_path)
    assert "NaN" not in (tmp_path / "report.json").read_text()
    again = read_stored(tmp_path)
    assert render_report(again) == render_report(result)
    assert again.match.verdict == verdict
    np.testing.assert_array_equal(again.match.margin, result.match.margin)
