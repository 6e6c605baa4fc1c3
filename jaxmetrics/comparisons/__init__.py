"""Comparisons of classifiers on the same examples.

In a paired comparison, both classifiers are evaluated on the same examples. Some examples are
difficult for both classifiers; this common part cancels in the difference, so that the interval of
the difference is narrower than two separate intervals suggest.

Comparisons read counts `(..., K, K, K)` by truth, prediction of A and prediction of B, which
`paired_confusion_matrix` computes. For many classes or classifiers, they read labels instead, and
count only the combinations of labels that occur. A difference is always A - B, and greater values
are better. For a metric such as the error rate, whose smaller values are better, compare the
negative metric.

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
