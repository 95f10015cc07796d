"""``python -m unpaired``."""

from unpaired.cli import main

if __name__ == "__main__":
    main()
