"""The command line as a person types it, in a process of its own."""

import csv
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import unpaired
from unpaired.cli import app


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


def test_help_ls_and_info_load_nothing_heavy():
    code = (
        "import sys; sys.argv = ['unpaired', *sys.argv[1:]]; from unpaired.cli import main\n"
        "try: main()\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        "heavy = {'numpy', 'torch', 'sklearn', 'scipy', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    for words in (["--help"], ["match", "--help"], ["ls"], ["info"], ["info", "--json"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stderr)


def test_help_names_the_commands(tmp_path):
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    for word in ("demo", "match", "data", "bench", "ls", "info"):
        assert word in done.stdout
    assert run("--version", cwd=tmp_path).stdout.strip() == f"unpaired {unpaired.__version__}"


def commands():
    """The words of every command, groups walked into."""
    groups = [((), app)]
    for words, group in groups:
        groups += [
            ((*words, g.typer_instance.info.name), g.typer_instance)
            for g in group.registered_groups
        ]
        for one in group.registered_commands:
            yield *words, one.name or one.callback.__name__


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_the_help_of_every_command_has_an_example(words, typed):
    code, out, _ = typed(*words, "--help")
    assert code == 0
    assert f"Example: unpaired {' '.join(words)}" in " ".join(out.split())


def test_ls_lists_names_without_loading_them(tmp_path):
    done = run("ls", "methods", cwd=tmp_path)
    assert done.returncode == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert len(names) == 22
    assert {"cca", "deep-mcca", "wasserstein-procrustes"} <= set(names)
    for what in ("solvers", "measures", "datasets"):
        assert run("ls", what, cwd=tmp_path).returncode == 0
    for name in ("coates-ng", "vgg19", "use", "sbert:NAME"):
        assert f"\n{name} " in f"\n{run('ls', 'encoders', cwd=tmp_path).stdout}"
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
    assert done.stdout.count("asked: what are the ") == 3
    shares = {
        name: float(done.stdout.split(f"  {name} ")[1].split("%")[0])
        for name in ("No labels", "Three answers")
    }
    assert shares["No labels"] >= 64
    assert shares["Three answers"] >= 80
    page = (tmp_path / "report" / "report.html").read_text()
    for word in ("airplane", "Three answers", "oracle", "photos it called", "seed"):
        assert word in page


# In this process, where the parts of a run can be made to fail


@pytest.fixture
def here(tables, monkeypatch, typed):
    """Run the command in this process; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tables)
    return typed


@pytest.fixture
def numbered(tables, rng):
    """Two CSV files of 200 rows with numeric ids; equal ids belong together."""
    x = rng.normal(size=(200, 5)) * np.linspace(3, 1, 5)
    order, ids = rng.permutation(200), rng.choice(10**6, 200, replace=False)
    rotation = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    for name, values, keys in (("a.csv", x, ids), ("b.csv", x[order] @ rotation, ids[order])):
        lines = ["customer_id,p,q,r,s,t"]
        lines += [
            f"{k}," + ",".join(map(repr, row)) for k, row in zip(keys, values.tolist(), strict=True)
        ]
        (tables / name).write_text("\n".join(lines))
    return tables


def matched(folder):
    with (folder / "match.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    return sum(row["x"] == row["y"] for row in rows) / len(rows)


def test_numeric_ids_are_told_and_stand_in_the_match_and_the_report(here, numbered):
    code, _, err = here("match", "a.csv", "b.csv", "--out", "out")
    assert code == 0, err
    assert matched(numbered / "out") == 1.0
    told = (
        "column 0 (customer_id): 200 distinct whole numbers, taken as ids; --features to override."
    )
    assert err.splitlines() == [f"note: a.csv, {told}", f"note: b.csv, {told}"]
    page = (numbered / "out" / "report.html").read_text()
    first = (numbered / "a.csv").read_text().splitlines()[1].split(",")[0]
    ids = [line.split(",")[0] for line in (numbered / "a.csv").read_text().splitlines()[1:]]
    shown = re.findall(r'<th scope="row">.*?<bdi class="name">(.*?)</bdi>', page, re.DOTALL)
    assert set(ids) <= set(shown)
    assert first not in ("0", "1")
    assert told in page
    code, _, err = here("match", "a.csv", "b.csv", "--features", "0-5", "--out", "wrong")
    assert code == 0
    assert err == ""
    with (numbered / "wrong" / "match.csv").open() as handle:
        assert handle.readline().startswith("row,partner")


def test_a_run_is_repeated_by_its_record(here, numbered):
    (numbered / "p.csv").write_text("")
    options = ("--id-column", "customer_id", "--header", "--seed", "3", "--forbidden", "p.csv")
    code, out, _ = here("match", "a.csv", "b.csv", *options, "--out", "one", "--json")
    assert code == 0
    record = json.loads(out)
    assert record == json.loads((numbered / "one" / "run.json").read_text())
    for name in ("a.csv", "b.csv"):
        digest = hashlib.sha256((numbered / name).read_bytes()).hexdigest()
        assert record["inputs"]["xy"["ab".index(name[0])]]["sha256"] == digest
    assert record["unpaired"] == unpaired.__version__
    assert record["seed"] == 3
    code, out, err = here(*record["command"][1:], "--out", "two", "--quiet")
    assert (code, out, err) == (0, "", "")
    again = json.loads((numbered / "two" / "run.json").read_text())
    assert again["outputs"] == record["outputs"]
    assert again["command"] == record["command"]


def test_columns_that_both_sides_have(here, numbered):
    code, _, err = here("match", "a.csv", "b.csv", "--shared", "p", "--out", "out", "-q")
    assert code == 0, err
    record = json.loads((numbered / "out" / "run.json").read_text())
    assert record["command"][4:8] == ["--relation", "one-to-one", "--shared", "p"]


def test_out_is_checked_before_anything_is_read(here, tables, monkeypatch):
    def never(*_, **__):
        raise AssertionError("read before --out was checked")

    monkeypatch.setattr("unpaired.files.reading.read_table", never)
    monkeypatch.setattr("unpaired.experiment.run_match", never)
    for command in ("match", "fit"):
        code, _, err = here(command, "x.npy", "y.csv", "--out", "x.npy/out")
        assert code == 2
        assert err.startswith("unpaired: --out must be a folder that can be written: ")
        assert "x.npy is a file" in err
    monkeypatch.setattr("unpaired.demo.run_demo", never)
    assert here("demo", "--out", "x.npy")[0] == 2


def test_nothing_is_lost_when_writing_fails_after_the_work(here, tables, monkeypatch):
    replace = os.replace

    def full(source, target):
        if "out" in os.fspath(target):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tables / "tmp"))
    (tables / "tmp").mkdir()
    code, _, err = here("match", "x.npy", "y.csv", "--out", "out")
    assert code == 1
    (rescue,) = (tables / "tmp").iterdir()
    assert err == (
        "unpaired: --out out could not be written after all (No space left on device). Nothing is "
        f"lost: the results are in {rescue}. Move them from there.\n"
    )
    names = ["match.csv", "model", "report.html", "report.json", "run.json"]
    assert sorted(os.listdir(rescue)) == names
    assert not (tables / "out").exists()


@pytest.mark.parametrize(
    "part", ["unpaired.experiment.run_match", "unpaired.report.html.write_report"]
)
def test_ctrl_c_leaves_nothing_and_says_so(here, tables, monkeypatch, part):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(part, stop)
    code, _, err = here("match", "x.npy", "y.csv", "--out", "out")
    assert code == 130
    assert err == "unpaired: stopped; nothing was left half written.\n"
    assert not (tables / "out").exists()


def test_an_earlier_result_stays_when_a_later_run_is_stopped(here, tables, monkeypatch):
    assert here("match", "x.npy", "y.csv", "--out", "out")[0] == 0
    before = {path: path.read_bytes() for path in (tables / "out").rglob("*.*")}
    assert len(before) == 6

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("unpaired.report.html.write_report", stop)
    assert here("match", "x.npy", "y.csv", "--seed", "1", "--out", "out")[0] == 130
    assert {path: path.read_bytes() for path in (tables / "out").rglob("*.*")} == before


def test_running_out_of_memory_is_a_sentence(here, monkeypatch):
    def much(*_, **__):
        raise MemoryError

    monkeypatch.setattr("unpaired.experiment.run_match", much)
    code, _, err = here("match", "x.npy", "y.csv", "--out", "out")
    assert code == 1
    assert err.startswith("unpaired: the memory of this machine is not enough.")


def test_a_missing_extra_is_named(here, tables, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n == "jinja2" else find(n, *a)
    )
    code, _, err = here("match", "x.npy", "y.csv", "--out", "out")
    assert code == 2
    assert err == "unpaired: Writing report.html needs jinja2: pip install 'unpaired[report]'.\n"
    monkeypatch.undo()

    def missing(*_, **__):
        raise ModuleNotFoundError("No module named 'ot'", name="ot")

    monkeypatch.setattr("unpaired.commands.info.devices", missing)
    code, _, err = here("info")
    assert (code, err) == (2, "unpaired: this needs ot: pip install 'unpaired[bench]'.\n")


def test_without_typer_the_command_names_its_extra(tmp_path):
    code = (
        "import sys, runpy; sys.modules['typer'] = None;"
        "runpy.run_module('unpaired', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "unpaired: the commands need typer: pip install 'unpaired[cli]'.\n"


def test_info_tells_versions_devices_and_extras(here):
    code, out, _ = here("info")
    assert code == 0
    assert out.startswith(f"unpaired {unpaired.__version__}, Python 3.")
    for words in ("devices: cpu", "torch ", "extra frames: complete"):
        assert words in out
    facts = json.loads(here("info", "--json")[1])
    assert facts["packages"]["numpy"] == np.__version__
    extras = {"cli", "report", "frames", "anndata", "onnx", "encoders", "faiss", "bench"}
    assert set(facts["extras"]) == extras


def test_ls_without_a_name_lists_everything(here):
    code, out, _ = here("ls")
    assert code == 0
    for words in ("methods:", "solvers:", "measures:", "datasets:", "  frank-wolfe", "  cka"):
        assert words in out
