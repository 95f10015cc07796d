"""``python -m unpaired``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or name the extra that brings it."""
    try:
        from unpaired.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("unpaired: stopped; nothing was begun.\n")
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.stderr.write("unpaired: the commands need typer: pip install 'unpaired[cli]'.\n")
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
