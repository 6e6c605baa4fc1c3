"""What the guide says of times, one script after the other: `python -m bench`; or those named,
`python -m bench ranking bootstrap`. What is the same on every machine and takes long runs by name:
simulations, `python -m bench coverage joint_coverage judged`, and `python -m bench accelerators`.
So does `python -m bench gpu`, which needs a GPU.
"""

import importlib
import pkgutil
import sys
import time

import bench

PARTS = {"__main__", "calls", "harness", "pictures"}
BY_NAME = {"accelerators", "gpu", "coverage", "joint_coverage", "judged"}
SCRIPTS = sorted({module.name for module in pkgutil.iter_modules(bench.__path__)} - PARTS)


def main(names: list[str]) -> None:
    unknown = set(names) - set(SCRIPTS)
    if unknown:
        sys.exit(f"no bench is named {', '.join(sorted(unknown))}; there are {', '.join(SCRIPTS)}.")
    begin = time.perf_counter()
    for name in names or [name for name in SCRIPTS if name not in BY_NAME]:
        start = time.perf_counter()
        importlib.import_module(f"bench.{name}").main()
        print(f"\n{name}: {time.perf_counter() - start:.0f} s\n", flush=True)
    print(f"all: {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
