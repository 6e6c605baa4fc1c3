"""Classification reports: the metrics of a classifier, or of two, each with a confidence interval.

A report prints as text, and can be written as dict, JSON, Markdown, CSV or HTML.
"""

# of one classifier
from jaxmetrics.reports.singles import *

# of two on the same examples
from jaxmetrics.reports.pairs import *

# of examples with any number of labels
from jaxmetrics.reports.label_sets import *

# of scores per item
from jaxmetrics.reports.score_means import *
