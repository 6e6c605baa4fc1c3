"""What the guide says of times, one script after the other: `python -m bench`; or those named,
`python -m bench ranking bootstrap`. What is the same on every machine and takes long runs by name:
simulations, `python -m bench coverage joint_coverage judged simulations constants`, and `python -m
bench proportions accelerators`. So does `python -m bench gpu`, which needs a GPU. Options are those
of a single script, `python -m bench simulations --quick`.
"""

import importlib
import pkgutil
import sys
import time

import bench

PARTS = {"__main__", "calls", "harness", "pictures", "populations", "studies"}
SIMULATIONS = {"coverage", "joint_coverage", "judged", "proportions", "simulations", "constants"}
BY_NAME = {"accelerators", "gpu"} | SIMULATIONS
SCRIPTS = sorted({module.name for module in pkgutil.iter_modules(bench.__path__)} - PARTS)


def main(arguments: list[str]) -> None:
    first = next((i for i, x in enumerate(arguments) if x.startswith("-")), len(arguments))
    names, options = arguments[:first], arguments[first:]
    if options and len(names) != 1:
        sys.exit("options belong to a single script, such as `python -m bench coverage --quick`.")
    unknown = set(names) - set(SCRIPTS)
    if unknown:
        sys.exit(f"no bench is named {', '.join(sorted(unknown))}; there are {', '.join(SCRIPTS)}.")
    begin = time.perf_counter()
    for name in names or [name for name in SCRIPTS if name not in BY_NAME]:
        start = time.perf_counter()
        script = importlib.import_module(f"bench.{name}")
        script.main(options) if options else script.main()
        print(f"\n{name}: {time.perf_counter() - start:.0f} s\n", flush=True)
    print(f"all: {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
