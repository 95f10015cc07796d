"""Draw the picture at the head of the README: the demo's photos after three answers.

Run: python scripts/make_readme_picture.py docs/images/demo.png
"""

from __future__ import annotations

import sys
from dataclasses import replace

from unpaired.demo import run_demo
from unpaired.report import save_overview_png

if __name__ == "__main__":
    result = run_demo(0, tell=print)
    save_overview_png(replace(result, namings=result.namings[1:]), sys.argv[1])
