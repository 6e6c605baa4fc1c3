"""Run the command line by `python -m jaxmetrics`."""

from jaxmetrics.cli import main

if __name__ == "__main__":
    main()
