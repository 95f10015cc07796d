"""The core works without any extra, and says which one is missing."""

import subprocess
import sys

EXTRAS = ("typer", "rich", "jinja2", "matplotlib", "PIL", "pandas", "polars", "pyarrow", "openpyxl")
EXTRAS += ("anndata", "h5py")
BLOCKED = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"


def run(code, cwd):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + code], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_matching_saving_and_text_files_need_no_extra(tmp_path):
    code = """
import numpy as np, unpaired
from unpaired.files.reading import read_table
rng = np.random.default_rng(0)
x = rng.normal(size=(60, 5)) * [3, 2, 1.5, 1.2, 1]
order = rng.permutation(60)
y = x[order] @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
np.savetxt("x.csv", x, delimiter=",")
found = unpaired.match(read_table("x.csv").values, y)
assert (order[found.partner] == np.arange(60)).all()
found.to_csv("match.csv")
unpaired.DMAE(random_state=0).fit(x, y).save("model")
print(unpaired.load("model").transform_x(x).shape[0])
"""
    assert run(code, tmp_path) == "60\n"


def test_what_needs_an_extra_names_it(tmp_path):
    code = """
import numpy as np, unpaired.anndata
from unpaired.errors import DataError
from unpaired.report.html import render_report
from unpaired.results import RunResult
from unpaired.types import Match, Objective
n = np.zeros(2)
calls = {
    "jinja2 report": lambda: render_report(RunResult("t", {}, {}, 0, {}, {})),
    "pandas frames": lambda: Match(n, n, Objective(0.0), n, n, 2).to_pandas(),
    "anndata anndata": lambda: unpaired.anndata.match(n, n),
}
for words, call in calls.items():
    package, extra = words.split()
    try:
        call()
    except DataError as error:
        assert str(error) == f"This needs {package}: pip install 'unpaired[{extra}]'.", error
        print(package)
"""
    assert run(code, tmp_path) == "jinja2\npandas\nanndata\n"
