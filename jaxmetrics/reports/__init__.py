"""Classification reports: metrics of one or two classifiers, each with a confidence interval.

`print` writes a report as text. A report can be converted to a dict, JSON, Markdown, CSV or HTML.
"""

# reports on one classifier
from jaxmetrics.reports.singles import *
from jaxmetrics.reports.labelled import *

# reports on two classifiers for the same examples
from jaxmetrics.reports.pairs import *

# reports on multilabel problems
from jaxmetrics.reports.label_sets import *

# reports on scores per item
from jaxmetrics.reports.score_means import *
