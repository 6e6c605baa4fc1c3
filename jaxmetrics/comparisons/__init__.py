"""Classifiers judged on the same examples, compared in pairs.

All that matters is in `paired_confusion_matrix`, counts `(..., K, K, K)` by truth, prediction of A
and prediction of B; for many classes or classifiers, in the combinations of labels that occur and
how often. Comparing in pairs takes the examples' common difficulty out of the difference, so that
its interval is narrower than two separate intervals suggest. A difference is A less B, throughout.
More is better; for a metric of which less is better, compare its negative.
"""

# compare, from counts or from labels
from jaxmetrics.comparisons.differences import *

# McNemar, permutations
from jaxmetrics.comparisons.hypothesis_tests import *

# DeLong
from jaxmetrics.comparisons.areas import *

# more than two
from jaxmetrics.comparisons.leaderboards import *
