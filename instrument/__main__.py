"""``python -m instrument``."""

from instrument.cli import main

if __name__ == "__main__":
    main()
