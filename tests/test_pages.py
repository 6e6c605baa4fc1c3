"""Reports as HTML: what is on the page, and how it looks to a browser, if one is installed."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics.reports import _pages

pytest.importorskip("jinja2", reason="pages need the extra `html`")
pytest.importorskip("matplotlib", reason="pages need the extra `html`")

NAMES = ["<b>ant</b> & $\\frac{", "蜂 " + "z" * 70, "cow"]
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


def problem() -> tuple[np.ndarray, np.ndarray]:
    """Truth and probabilities of three classes, one of them rare."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, 200, p=[0.6, 0.35, 0.05])
    prob = rng.dirichlet(np.ones(3), 200)
    prob[np.arange(200), y] += 0.5
    return y, prob / prob.sum(1, keepdims=True)


@pytest.fixture(scope="module")
def report() -> jm.Report:
    y, prob = problem()
    return jm.report(
        np.append(y, -1), np.append(prob.argmax(1), 0), y_prob=[*prob, prob[0]], class_names=NAMES
    )


@pytest.fixture(scope="module")
def comparison() -> jm.ComparisonReport:
    y, prob = problem()
    pred = prob.argmax(1)
    return jm.comparison_report(
        y, pred, np.where(y == 1, pred, 0), class_names=NAMES, names=("a <1>", "b"), rope=0.02
    )


@pytest.fixture(scope="module")
def pages(report: jm.Report, comparison: jm.ComparisonReport) -> tuple[str, str]:
    """Of a classifier and of a comparison."""
    return report.to_html(title="spring & <summer>"), comparison.to_html()


class _Text(HTMLParser):
    """The text of a page, the tags in it, and what it would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [
            value or "" for key, value in attrs if key in ("src", "href", "xlink:href", "srcset")
        ]

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_the_page_of_a_classifier(report: jm.Report, pages: tuple[str, str]) -> None:
    page = _Text(pages[0])
    assert "spring & <summer>" in page.text
    assert "200 examples, 1 ignored, 3 classes" in page.text
    for name in NAMES:
        assert name in page.text
    accuracy = report.overall["accuracy"]
    assert accuracy.low is not None
    assert accuracy.high is not None
    assert f"Accuracy {accuracy.value:.3f} {accuracy.low:.3f} to {accuracy.high:.3f}" in page.text
    # Two matrices, violin, recalls, ROC, precision and recall, reliability.
    assert page.tags.count("svg") == 7
    told = [name for name, text in _pages._METHODS.items() if text in page.text]
    assert told == ["wilson", "likelihood", "posterior", "normal", "score", "inequalities"]


def test_the_page_of_a_comparison(comparison: jm.ComparisonReport, pages: tuple[str, str]) -> None:
    page = _Text(pages[1])
    assert "A: a <1> B: b" in page.text
    only_a, only_b = comparison.only_right
    assert f"Only A is right in {only_a} examples, only B in {only_b}." in page.text
    assert "within 0.02" in page.text
    assert page.tags.count("svg") == 4
    expected = [
        f"{NAMES[i]} {comparison.counts[0, i].sum()} {only_a} {only_b} "
        for i, (only_a, only_b) in enumerate(comparison.only_right_per_class)
    ]
    assert only_a > 0 < only_b
    assert all(row in page.text for row in expected)


def test_pages_load_nothing(pages: tuple[str, str]) -> None:
    for page in pages:
        parsed = _Text(page)
        assert all(link.startswith(("#", "data:")) for link in parsed.loaded)
        assert not {"script", "iframe", "object", "embed"} & set(parsed.tags)
        assert "url(http" not in page
        assert "@import" not in page
        assert _pages._INK not in page  # all of it has become the colour of the page's text


def test_the_same_page_each_time(
    report: jm.Report,
    pages: tuple[str, str],
    programs: list[str],
) -> None:
    assert report.to_html(title="spring & <summer>") == pages[0]
    assert programs == []  # of a report that is there, nothing is compiled


def test_worst_first() -> None:
    counts = np.array([[50, 0, 4], [9, 30, 0], [0, 0, 20]])
    page = _Text(jm.Report.from_counts(counts, class_names=["a", "b", "c"]).to_html()).text
    low, high = (100 * float(x) for x in jm.proportion_interval(9, 39)[1:3])
    told = " ".join(re.findall(r"[\w.%]+", page))
    assert f"b taken for a 9 times 23.1 % of 39 {low:.1f} to {high:.1f} %" in told
    assert told.index("b taken for a") < told.index("a taken for c")
    # Examples, false negatives, false positives.
    rows = [page.index(row) for row in (" a 54 4 9 ", " b 39 9 0 ", " c 20 0 4 ")]
    assert rows == sorted(rows)


def test_no_mistake_and_absent_classes() -> None:
    page = _Text(jm.Report.from_counts(np.diag([5, 3, 0])).to_html()).text
    assert "Nothing: no mistake was seen." in page
    assert "nan" not in page.lower()


def test_curves_are_those_of_the_scores() -> None:
    y, prob = problem()
    histogram = np.asarray(jm.score_histogram(y == 1, prob[:, 1], scale="probability"))
    curve, points = _pages._roc_points(histogram), _pages._precision_recall_points(histogram)
    area = (np.diff(curve.fpr) * (curve.tpr[1:] + curve.tpr[:-1])).sum() / 2
    np.testing.assert_allclose(area, jm.roc_auc_bounds(histogram).value, rtol=1e-6)
    np.testing.assert_allclose(area, jm.roc_auc(y == 1, prob[:, 1]), rtol=2e-3)
    precision = (np.diff(points.recall) * points.precision[1:]).sum()
    np.testing.assert_allclose(precision, jm.average_precision(y == 1, prob[:, 1]), rtol=2e-3)
    assert [float(x) for x in (points.precision[0], points.recall[0], points.recall[-1])] == [
        1,
        0,
        1,
    ]


BROWSER = [
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-sync",
    ),
    *(
        "--disable-component-update",
        "--disable-quic",
        "--enable-logging=stderr",
        "--window-size=1400,900",
        "--dump-dom",
    ),
]
FRAME = """<!doctype html><meta name="color-scheme" content="light dark">
<iframe width="{width}" height="800" srcdoc="{page}"></iframe>"""
PROBE = """<script>
addEventListener("load", () => {
  const box = (x) => x.getBoundingClientRect(), all = (selector, x = document) => [...x.querySelectorAll(selector)];
  const root = document.documentElement;
  const leaves = (x, y) => x.left < y.left - 2 || x.right > y.right + 2 || x.top < y.top - 2 || x.bottom > y.bottom + 2;
  top.document.title = JSON.stringify({
    width: innerWidth,
    overflow: root.scrollWidth - root.clientWidth,
    wide: all("body *").filter((x) => !x.closest("table, svg") && box(x).right > innerWidth + 1).map((x) => x.outerHTML),
    cut: all("svg").filter((x) => all("text", x).some((text) => leaves(box(text), box(x)))).map((x) => x.ariaLabel),
    background: getComputedStyle(document.body).backgroundColor,
  });
});
</script>"""


def look(page: str, width: int, dark: bool, directory: Path) -> tuple[dict[str, Any], list[str]]:
    """What a browser makes of a page in a frame of that width, and what it says in its console."""
    file = directory / "page.html"
    file.write_text(
        FRAME.format(width=width, page=html.escape(page.replace("</body>", PROBE + "</body>"))),
        encoding="utf-8",
    )
    profile = f"--user-data-dir={directory / 'profile'}"
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    command = [str(CHROMIUM), *BROWSER, profile, scheme, file.as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    title = re.search("<title>(.*?)</title>", result.stdout, re.DOTALL)
    assert title is not None, result.stderr
    return json.loads(html.unescape(title[1])), [
        line for line in result.stderr.splitlines() if "CONSOLE" in line
    ]


needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed to look at the page"
)


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_overflows_and_the_console_is_silent(
    width: int, dark: bool, pages: tuple[str, str], tmp_path: Path
) -> None:
    for page in pages:
        seen, messages = look(page, width, dark, tmp_path)
        assert messages == []
        background = "rgb(21, 23, 26)" if dark else "rgb(255, 255, 255)"
        assert seen == {
            "width": width,
            "overflow": 0,
            "wide": [],
            "cut": [],
            "background": background,
        }


@needs_browser
def test_the_browser_would_notice(tmp_path: Path) -> None:
    picture = '<svg width="50" height="20" aria-label="small"><text x="0" y="15">much too long for it</text></svg>'
    page = f'<body><p style="width: 500px">wide</p>{picture}<script>console.error("loud")</script></body>'
    seen, messages = look(page, 360, False, tmp_path)
    assert seen["overflow"] > 0
    assert len(seen["wide"]) == 1
    assert seen["cut"] == ["small"]
    assert "loud" in messages[0]
