"""Comparisons of classifiers on the same examples.

In a paired comparison, both classifiers are evaluated on the same examples. Examples that are
difficult for both classifiers lower both metrics, but not their difference. The interval of the
difference is therefore narrower than the intervals of both metrics suggest.

`compare` reads counts `(..., K, K, K)` by truth, prediction of A and prediction of B, which
`paired_confusion_matrix` computes. `compare_predictions` and `leaderboard` read labels instead, and
count only the combinations of labels that occur, which is faster if there are many classes. A
difference is always A - B, and greater values are better. If smaller values of a metric are better,
as for the error rate, compare the negative metric.

- `classifiers` contains `compare`, variants of it for labels and for different test sets, and the
  result `Comparison`.
- `hypothesis_tests` contains McNemar's test, permutation tests and intervals of the difference of
  two accuracies.
- `two_areas` contains DeLong's test of two areas under the ROC curve.
- `disparities` computes the largest difference between groups of examples (subgroup fairness).
- `leaderboards` ranks more than two classifiers.
- `scores` compares two or more systems by scores per item instead of labels.
"""

from jaxmetrics.comparisons.classifiers import *
from jaxmetrics.comparisons.hypothesis_tests import *
from jaxmetrics.comparisons.two_areas import *
from jaxmetrics.comparisons.disparities import *
from jaxmetrics.comparisons.leaderboards import *
from jaxmetrics.comparisons.scores import *
