"""Draw the picture at the head of the README: the demo's photos after three answers.

Run: python scripts/make_readme_picture.py docs/images/demo.png
"""

from __future__ import annotations

import sys
from dataclasses import replace

from unpaired.demo import run_demo
from unpaired.report import save_overview_png

TITLE = "16,000 photos, ten words, no labels, three questions"

if __name__ == "__main__":
    result = run_demo(0, tell=print)
    answered = replace(result.namings[0], title=TITLE)
    save_overview_png(replace(result, namings=(answered,)), sys.argv[1])
