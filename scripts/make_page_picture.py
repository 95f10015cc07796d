"""Draw the picture of a report page: digits and a bent, noisy projection of them, truth known.

Run: python scripts/make_page_picture.py docs/images/report.png (needs Chromium: `make browser`)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from unpaired.datasets.toy import jittered_digits
from unpaired.experiment import run_match
from unpaired.report import write_report
from unpaired.results import Items, RunResult

NOISE = 0.35
SIZE = (1200, 1560)


def digits_result() -> RunResult:
    """A match of 550 digits with 500 rows made from 500 of them, both shown as the digit."""
    rng = np.random.default_rng(0)
    data = jittered_digits(500, rng, extra_x=50)
    y = data.y + NOISE * rng.normal(size=data.y.shape)
    result, _ = run_match(data.x, y, None, {"relation": "one-to-one"}, 0, leave_out="auto")
    pictures = [picture(row) for row in data.x]
    owner = {int(j): i for i, j in enumerate(data.truth) if j >= 0}
    return replace(
        result,
        title="Digits, and a bent projection of them",
        ids_x=tuple(f"digit {i}" for i in range(len(data.x))),
        ids_y=tuple(f"row {j}" for j in range(len(y))),
        items_x=Items(photos=dict(enumerate(pictures))),
        items_y=Items(photos={j: pictures[i] for j, i in owner.items()}),
        truth=data.truth,
    )


def picture(row: np.ndarray) -> np.ndarray:
    """An 8 x 8 digit, dark on light, 56 pixels wide."""
    grey = (255 * (1 - row.reshape(8, 8).clip(0, 1))).astype(np.uint8)
    return np.repeat(np.kron(grey, np.ones((7, 7), np.uint8))[..., None], 3, axis=2)


if __name__ == "__main__":
    out = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(digits_result(), folder)
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        flags += ["--no-first-run", "--disable-background-networking", "--disable-sync"]
        flags += [f"--user-data-dir={folder}/profile", f"--window-size={SIZE[0]},{SIZE[1]}"]
        flags += ["--disable-component-update", "--disable-quic", f"--screenshot={out}"]
        subprocess.run(["chromium", *flags, page.as_uri()], check=True, capture_output=True)
