"""From predictions to a report: the numbers that describe a classifier, or two, with intervals, as
text, dict, JSON or HTML.
"""

from jaxmetrics.reports._figures import *  # one number with its interval
from jaxmetrics.reports.singles import *  # of one classifier
from jaxmetrics.reports.pairs import *  # of two on the same examples

__all__ = ["ComparedFigure", "ComparisonReport", "Figure", "Report", "comparison_report", "report"]
