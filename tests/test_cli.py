"""The command line as a person types it, in a process of its own."""

import json
import subprocess
import sys

import numpy as np
import pytest

import unpaired


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "unpaired", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 6)) * np.linspace(3, 1, 6)
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    order = rng.permutation(60)
    np.save(tmp_path / "x.npy", x)
    lines = ["id," + ",".join(f"f{k}" for k in range(6))]
    lines += [f"item-{order[i]}," + ",".join(map(repr, row.tolist())) for i, row in
              enumerate(x[order] @ rotation)]  # fmt: skip
    (tmp_path / "y.csv").write_text("\n".join(lines))
    return tmp_path


def test_help_and_version_need_no_torch():
    code = (
        "import sys; from unpaired.cli import app; import unpaired; unpaired.__version__;"
        "heavy = {'torch', 'sklearn', 'scipy', 'matplotlib'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_help_names_the_commands(tmp_path):
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    for word in ("demo", "match", "data", "bench", "ls", "info"):
        assert word in done.stdout
    assert run("--version", cwd=tmp_path).stdout.strip() == f"unpaired {unpaired.__version__}"


def test_ls_lists_names_without_loading_them(tmp_path):
    done = run("ls", "methods", cwd=tmp_path)
    assert done.returncode == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert len(names) == 26
    assert {"cca", "dmae-smi", "wasserstein-procrustes"} <= set(names)
    for what in ("solvers", "measures", "datasets"):
        assert run("ls", what, cwd=tmp_path).returncode == 0
    wrong = run("ls", "method", cwd=tmp_path)
    assert wrong.returncode == 2
    assert 'Did you mean "methods"?' in wrong.stderr
    code = (
        "import sys; from unpaired import registry; list(registry.methods);"
        "sys.exit(', '.join({'torch', 'sklearn', 'scipy'} & set(sys.modules)) or 0)"
    )
    light = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert light.returncode == 0, light.stderr


def test_match_writes_names_in_the_callers_order(tables):
    done = run("match", "x.npy", "y.csv", "--out", "out", cwd=tables)
    assert done.returncode == 0, done.stderr
    lines = (tables / "out" / "match.csv").read_text().splitlines()
    assert lines[0] == "x,y,confidence,row,partner,runner_up,margin"
    right = sum(line.split(",")[1] == f"item-{i}" for i, line in enumerate(lines[1:]))
    assert right == len(lines) - 1 == 60
    assert "60 of 60 rows of x matched" in done.stdout
    assert "<html" in (tables / "out" / "report.html").read_text()
    assert json.loads((tables / "out" / "run.json").read_text())["seed"] == 0


def test_match_takes_weights_and_leaves_rows_out(tables):
    weights = np.ones(60)
    weights[:3] = 0.0
    np.savetxt(tables / "weights.csv", weights)
    options = ("--weights-x", "weights.csv", "--leave-out", "--jobs", "2", "--out", "out")
    done = run("match", "x.npy", "y.csv", *options, cwd=tables)
    assert done.returncode == 0, done.stderr
    options = json.loads((tables / "out" / "run.json").read_text())["options"]
    assert options["weights_x"] == "weights.csv"
    partner = [line.split(",")[4] for line in (tables / "out" / "match.csv").read_text().split()]
    assert partner[1:4] == ["-1"] * 3
    assert partner.count("-1") < 30
    done = run("match", "x.npy", "y.csv", "--weights-y", "weights.csv", "--relation",
               "many-to-one", cwd=tables)  # fmt: skip
    assert done.returncode == 2
    assert "weights of y must be None for many-to-one" in done.stderr


def test_match_keeps_known_pairs_by_name(tables):
    (tables / "pairs.csv").write_text("x,y\n0,item-5\n1,item-1\n")
    done = run("match", "x.npy", "y.csv", "--pairs", "pairs.csv", "--out", "out", cwd=tables)
    assert done.returncode == 0, done.stderr
    first = (tables / "out" / "match.csv").read_text().splitlines()[1]
    assert first.startswith("0,item-5,1.0,")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("match", "none.npy", "y.csv"), "There is no file none.npy"),
        (("match", "x.npy", "y.csv", "--relation", "one2one"), 'Unknown relation "one2one"'),
        (("match", "x.npy", "nan.npy"), "y must be finite"),
        (("match", "x.npy", "y.csv", "--pairs", "bad.csv"), 'pairs names "99" in line 2'),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_two(tables, arguments, message):
    np.save(tables / "nan.npy", np.full((4, 2), np.nan))
    (tables / "bad.csv").write_text("0,item-0\n99,item-1\n")
    done = run(*arguments, "--out", "out", cwd=tables)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tables / "out").exists()


def test_unknown_command_exits_two(tmp_path):
    assert run("mach", cwd=tmp_path).returncode == 2


@pytest.mark.slow
def test_demo_beats_its_baseline_and_writes_the_report(tmp_path):
    done = run("demo", "--out", "report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "beats the baseline" in done.stdout.replace("\n", " ")
    page = (tmp_path / "report" / "report.html").read_text()
    for word in ("airplane", "One label per class", "oracle", "seed"):
        assert word in page
