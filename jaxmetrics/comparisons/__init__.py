"""Comparisons of classifiers on the same examples.

Comparisons read a `paired_confusion_matrix`, counts `(..., K, K, K)` by truth, prediction of A and
prediction of B; for many classes or classifiers they read the combinations of labels that occur,
with their counts. A paired comparison removes the difficulty of the examples, common to both, from
the difference, so that its interval is narrower than two separate intervals suggest. A difference
is always A - B, and greater values are better; for a metric such as the error rate, compare its
negative.

- `classifiers`: `compare`, from counts or from labels, and its result `Comparison`
- `hypothesis_tests`: McNemar's test, permutation tests, intervals of the difference of accuracies
- `two_areas`: DeLong's test of two areas under the ROC curve
- `disparities`: the greatest difference between groups of examples (subgroup fairness)
- `leaderboards`: rankings of more than two classifiers
- `scores`: two systems, or more, compared by scores per item instead of labels
"""

from jaxmetrics.comparisons.classifiers import *
from jaxmetrics.comparisons.hypothesis_tests import *
from jaxmetrics.comparisons.two_areas import *
from jaxmetrics.comparisons.disparities import *
from jaxmetrics.comparisons.leaderboards import *
from jaxmetrics.comparisons.scores import *
