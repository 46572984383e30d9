"""`python -m crashbo`: the command line."""

from crashbo.cli import main

if __name__ == "__main__":
    main()
