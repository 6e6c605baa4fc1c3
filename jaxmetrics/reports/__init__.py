"""From predictions to a report: the numbers that describe a classifier, or two, with intervals, as
text, dict, JSON, Markdown, CSV or HTML.
"""

# of one classifier
from jaxmetrics.reports.singles import *

# of two on the same examples
from jaxmetrics.reports.pairs import *

# of examples with any number of labels
from jaxmetrics.reports.label_sets import *
