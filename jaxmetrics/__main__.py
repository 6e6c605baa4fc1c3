"""`python -m jaxmetrics` runs the command line."""

from jaxmetrics.cli import main

if __name__ == "__main__":
    main()
