"""Comparisons of classifiers on the same examples.

All that they need is in `paired_confusion_matrix`, counts `(..., K, K, K)` by truth, prediction of
A and prediction of B; for many classes or classifiers, in the combinations of labels that occur and
how often. Comparing in pairs takes the examples' common difficulty out of the difference, so that
its interval is narrower than two separate intervals suggest. A difference is A - B, throughout.
More is better; for a metric of which less is better, compare its negative.

- `classifiers`: `compare`, from counts or from labels, and the `Comparison` that it makes
- `hypothesis_tests`: McNemar's test, permutation tests, intervals of the difference of accuracies
- `two_areas`: DeLong's comparison of areas under the ROC curve
- `disparities`: the greatest difference of groups of examples
- `leaderboards`: more than two classifiers
- `scores`: two systems, or more, by scores per item instead of labels
"""

from jaxmetrics.comparisons.classifiers import *
from jaxmetrics.comparisons.hypothesis_tests import *
from jaxmetrics.comparisons.two_areas import *
from jaxmetrics.comparisons.disparities import *
from jaxmetrics.comparisons.leaderboards import *
from jaxmetrics.comparisons.scores import *
