"""What is simulated outside of the grids of `coverage` and `joint_coverage`: a table of studies.

A study draws data sets of each of its designs and yields what functions say of them: a line of a
table of the guide, an addition to the name of the design, and an outcome, which is

- intervals and the truth, `(Estimate, truth)`, of shape `(N,)` for N data sets, or `(N, V)` for V
  values that are to be covered together;
- booleans `(N,)`, in which data sets a test rejects what is true; or their exact mean, a number;
- a dict of numbers, which are written as they are.
"""

from bench.studies import areas, calibration, labels, means, statements
from bench.studies.study import Outcome as Outcome
from bench.studies.study import Study as Study

STUDIES: dict[str, Study] = {
    name: study
    for part in (means, labels, areas, calibration, statements)
    for name, study in part.STUDIES.items()
}
