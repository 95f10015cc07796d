"""The tutorials: how they are read and run, and that each page shows the code of its script."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


@pytest.fixture(scope="module")
def gallery():
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "scripts" / "gallery.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["gallery"] = module  # where its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


TUTORIAL = '''"""# A title

What it is about.
"""

# %%
# ## Prose
#
# - a point

value = 6 * 7
print(value)

# %% [bash]
# echo one > file.txt
# wc -l < file.txt

# %%

import matplotlib.pyplot as plt

plt.plot([1, 2])
from pathlib import Path

assert Path("file.txt").read_text() == "one\\n"
assert value == 42
'''


def test_a_tutorial_becomes_a_page_with_what_it_prints_and_draws(gallery, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    example = tmp_path / "plot_it.py"
    example.write_text(TUTORIAL)
    with contextlib.chdir(tmp_path):
        page = gallery.page_of(example, tmp_path)
    assert page.startswith(
        "<!-- made by scripts/gallery.py from examples/plot_it.py -->\n\n# A title"
    )
    assert "## Prose\n\n- a point" in page
    assert "```python\nvalue = 6 * 7\nprint(value)\n```\n\n```text\n42\n```" in page
    assert "```bash\necho one > file.txt\nwc -l < file.txt\n```\n\n```text\n1\n```" in page
    assert "![](images/it-1.png)" in page
    assert (tmp_path / "it-1.png").stat().st_size > 1000


@pytest.mark.parametrize("code", ["# %%\n\nraise KeyError('x')\n", "# %% [bash]\n# exit 3\n"])
def test_a_tutorial_that_fails_stops_the_build(gallery, tmp_path, code):
    example = tmp_path / "plot_bad.py"
    example.write_text(f'"""# Bad"""\n\n{code}')
    with contextlib.chdir(tmp_path), pytest.raises((KeyError, SystemExit)):
        gallery.page_of(example, tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_each_page_shows_the_code_of_its_script_and_can_be_found(gallery, example):
    name = example.stem.removeprefix("plot_")
    page = (ROOT / "docs" / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
    head, cells = gallery.read_cells(example.read_text(encoding="utf-8"))
    assert head in page
    for cell in cells:
        assert cell.prose in page, "run scripts/gallery.py again"
        assert cell.code in page, "run scripts/gallery.py again"
    assert f"tutorials/{name}.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f"tutorials/{name}.md" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
