"""Comparisons of classifiers on the same examples.

In a paired comparison, both classifiers are evaluated on the same examples. Examples that are
difficult for both classifiers lower both metrics, but not their difference. The interval of the
difference is therefore often narrower than the intervals of A and B.

`compare` reads the counts `(..., K, K, K)` that `paired_confusion_matrix` returns.
`compare_predictions` and `leaderboard` read labels, and are faster if there are many classes. A
difference is always A - B. Greater values are better. If smaller values of a metric are better,
compare the negative metric.

- `classifiers` contains `compare`, variants of it for labels and for different test sets, and the
  result `Comparison`.
- `hypothesis_tests` contains McNemar's test, permutation tests and intervals of the difference of
  two accuracies.
- `two_areas` contains DeLong's test of two areas under the ROC curve.
- `disparities` computes the largest difference between groups of examples (subgroup fairness).
- `leaderboards` ranks more than two classifiers.
- `scores` compares two or more systems by a score for each item.
"""

from jaxmetrics.comparisons.classifiers import *
from jaxmetrics.comparisons.hypothesis_tests import *
from jaxmetrics.comparisons.two_areas import *
from jaxmetrics.comparisons.disparities import *
from jaxmetrics.comparisons.leaderboards import *
from jaxmetrics.comparisons.scores import *
