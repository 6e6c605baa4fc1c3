"""Reports as HTML: what is on the page, and how it looks to a browser, if one is installed."""

import html
import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxmetrics as jm
from jaxmetrics.plots.vector_graphics import INK
from jaxmetrics.reports import pages as pages_of_reports
from jaxmetrics.reports.gates import Gate, JudgedGate, Verdict
from jaxmetrics.reports.rankings import ranking_report
from jaxmetrics.reports.values import ReportValue, exactly

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
        self.scripts: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {key for key, _ in attrs}
        self.loaded += [
            value or "" for key, value in attrs if key in ("src", "href", "xlink:href", "srcset")
        ]

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["script"]:
            self.scripts.append(data)
        elif self.tags[-1:] != ["style"]:
            self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self.tags.append("/script")

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
    assert f"Accuracy {accuracy} Balanced accuracy" in page.text
    # Two matrices, violin, recalls, ROC, precision and recall, reliability.
    assert page.tags.count("svg") == 7
    told = [name for name, text in pages_of_reports.explanations().items() if text in page.text]
    assert told == ["likelihood", "tango", "posterior", "student", "score", "inequalities"]


def test_the_page_of_a_comparison(comparison: jm.ComparisonReport, pages: tuple[str, str]) -> None:
    page = _Text(pages[1])
    assert "A: a <1> B: b" in page.text
    only_a, only_b = comparison.only_right
    assert comparison.outline().result in page.text
    assert "within 0.02" in page.text
    assert page.tags.count("svg") == 3
    expected = [
        f"{NAMES[i]} {comparison.counts[0, i].sum()} {only_a} {only_b} "
        for i, (only_a, only_b) in enumerate(comparison.only_right_per_class)
    ]
    assert only_a > 0 < only_b
    assert all(row in page.text for row in expected)


def test_the_curves_of_both_classifiers_are_in_one_picture() -> None:
    y, prob = problem()
    # B knows class 2 less than A, and the other classes as well.
    other = prob.copy()
    other[:, 2] = other[:, 2][np.random.default_rng(1).permutation(len(y))]
    probs = [prob, other / other.sum(1, keepdims=True)]
    compared = jm.comparison_report(
        y,
        *(x.argmax(1) for x in probs),
        y_prob_a=probs[0],
        y_prob_b=probs[1],
        class_names=NAMES,
    )
    page = compared.to_html()
    text = _Text(page).text
    assert (
        f"curves are for {NAMES[2]} against the rest, because this class has the largest difference"
        " in ROC AUC." in text
    )
    pictures = re.findall('aria-label="(.*?)"', page)
    assert pictures[1:4] == [
        "ROC curves of A and B",
        "Precision against recall of A and B",
        "Reliability of A and B",
    ]
    areas = [jm.roc_auc(y == 2, x[:, 2]) for x in probs]
    for name, area in zip("AB", areas, strict=True):
        (legend,) = re.findall(f">{name}, AUC (.*?)<", page)
        assert_allclose(float(legend), area, atol=2e-3)
    two = jm.comparison_report(
        y == 2, y == 1, y == 2, y_prob_a=_of_two(prob), y_prob_b=_of_two(probs[1])
    )
    assert "precision-recall curves are for 1 against the rest." in _Text(two.to_html()).text


def _of_two(prob: np.ndarray) -> np.ndarray:
    return np.stack([1 - prob[:, 2], prob[:, 2]], 1)


def test_terms_are_explained_where_they_stand() -> None:
    """In a title of an element, and at the end of the page; what users named is not explained."""
    names = ["recall", "cow"]
    page = jm.Report.from_counts([[9, 1], [3, 7]], class_names=names).to_html()
    known = pages_of_reports._environment().get_template("terms.html").module.terms
    explained = dict(re.findall('<abbr title="(.*?)">(.*?)</abbr>', page))
    assert explained[html.escape(known["recall"])] == "recall"
    for term in ("precision", "F1", "false negatives", "MCC (Matthews)", "no information rate"):
        assert html.escape(known[term]) in explained
        assert f"<dt>{html.escape(term)}</dt><dd>{html.escape(known[term])}</dd>" in page
    assert "<dt>log loss</dt>" not in page  # it is not reported
    assert "<bdi>recall</bdi>" in page
    missing = [
        title
        for title, _ in jm.report([0, 1], [0, 1], y_prob=np.eye(2)).outline().summary
        if title not in known
    ]
    assert missing == []
    terms = pages_of_reports._Terms(known)
    assert (
        terms.explained("recall, <b>")
        == f'<abbr title="{known["recall"]}">recall</abbr>, &lt;b&gt;'
    )
    assert terms.explained("recalled <b>") == "recalled <b>"  # which the template escapes
    assert [*terms.used] == ["recall"]


def test_an_axis_shows_what_differs() -> None:
    def values(*rows: tuple[float, float, float]) -> list[ReportValue]:
        return [ReportValue(jm.Estimate(*row, 0, 0)) for row in rows]

    axis = pages_of_reports._axis_of(values((0.95, 0.93, 0.97), (0.99, 0.98, 1.0)))
    assert axis.ends == ["0.93", "1.00"]
    assert_allclose([axis.place(0.93), axis.place(0.965), axis.place(1)], [0, 0.5, 1])
    # One interval of forty is too wide for the axis, and ends where it ends.
    wide = pages_of_reports._axis_of(values(*[(0.95, 0.93, 0.97)] * 39, (0.94, 0.1, 1.0)))
    assert wide.ends == ["0.93", "0.97"]
    assert (wide.place(0.1), wide.place(1.0)) == (0, 1)
    assert pages_of_reports._axis_of(values((1.0, 1.0, 1.0))).ends == ["1", "2"]
    assert pages_of_reports._axis_of([exactly(0.5)]).ends == ["0", "1"]


def texts_in(page: str) -> list[list[str]]:
    """The texts in each picture of a page."""
    pictures = re.findall("<svg.*?</svg>", page, re.DOTALL)
    return [re.findall("<text[^>]*>(.*?)</text>", x) for x in pictures]


def test_contents_and_date_come_first_and_terms_fold() -> None:
    page = jm.Report.from_counts([[9, 1], [3, 7]]).to_html()
    links = re.findall('<a href="#(.*?)">(.*?)</a>', page)
    assert links == re.findall('<h2 id="(.*?)">(.*?)</h2>', page)
    assert [name for _, name in links][-2:] == ["Balanced accuracy", "All overall metrics"]
    assert f"<time>{date.today().isoformat()}</time>" in page
    assert page.index("<nav>") < page.index("<h2")
    folded = re.findall("<details><summary>(.*?)</summary>", page)
    assert folded == ["Terms", "How the intervals were computed"]
    assert "<nav>" not in jm.score_report([1.0, 0.0]).to_html()  # which has no sections


def test_rankings_groups_and_scores_have_pictures() -> None:
    y, prob = problem()
    preds = {"first <1>": y, "second": prob.argmax(1), "third": 2 - y}
    board = jm.leaderboard(jm.accuracy, y, preds)
    ranked = board.to_html()
    by_accuracy = ranking_report(board, metric="accuracy").to_html()
    assert "<h1>Leaderboard by accuracy</h1>" in by_accuracy
    assert "accuracy</abbr> [low, high]" in by_accuracy
    assert "accuracy" in texts_in(by_accuracy)[0]
    (shown,) = texts_in(ranked)
    assert {"first &lt;1&gt;", "tier 1", "tier 3"} <= set(shown)
    groups = np.array(["<a>", "b"])[(y == 1) * 1]
    pictures = texts_in(jm.report(y, np.where(y == 1, y, 0), groups=groups).to_html())
    assert "accuracy" in pictures[0]
    assert all({"&lt;a&gt;", "b", "(all)"} <= set(x) for x in pictures)
    assert len(pictures) == 4  # of accuracy and the three values in the first sentence
    scores: list[Any] = [y == 1, prob[:, 1]]
    (one,) = texts_in(jm.score_report(scores[0], groups=groups, name="right").to_html())
    assert {"&lt;a&gt;", "b", "(all)", "right"} <= set(one)
    (two,) = texts_in(jm.score_report(*scores).to_html())
    assert {"(all)", "A - B", "confidence A &gt; B"} <= set(two)


def test_a_band_is_drawn_for_two_classes_of_independent_examples() -> None:
    y, prob = problem()
    prob = prob[:, [0, 2, 1]]
    two = {"y_prob": _of_two(prob), "clusters": None}
    for options, has_band in ((two, True), ({**two, "clusters": np.arange(200) // 1}, False)):
        page = jm.report(y == 1, prob[:, 2] > 0.5, **options).to_html()
        legends = [x for x in texts_in(page) if "chance" in x]
        assert ["95 % band" in x for x in legends] == [has_band]
        (legend,) = re.findall(">1, AUC (.*?)<", page)
        found = [float(x) for x in re.findall(r"[\d.]+", legend)]
        area = jm.delong_interval(y == 1, prob[:, 2])
        expected = [area.value, area.low, area.high] if has_band else [area.value]
        assert_allclose(found, expected, atol=3e-3)


def test_gates_stand_first_with_their_verdict() -> None:
    gate = JudgedGate(Gate.parsed("recall[<b>] >= 0.5"), "", exactly(0.1), Verdict.FAILED, 0.0, 9)
    found = replace(jm.Report.from_counts([[9, 1], [3, 7]]), gates=[gate])
    page = found.to_html()
    assert '<p class="gate failed">Gate recall[&lt;b&gt;] &gt;= 0.5: failed;' in page
    assert page.index("Gate recall") < page.index('<p class="verdict">Accuracy')


def test_pages_load_nothing_and_run_one_script(pages: tuple[str, str]) -> None:
    attack = '"><script>x</script><p onclick="x'
    y, pred = [0, 1] * 20, [0, 1, 1, 1] * 10
    groups = jm.report(y, pred, class_names=["a", attack], groups=[attack, "b", "b", "b"] * 10)
    for page in (*pages, groups.to_html()):
        parsed = _Text(page)
        assert all(link.startswith(("#", "data:")) for link in parsed.loaded)
        assert not {"iframe", "object", "embed"} & set(parsed.tags)
        # The script, which sorts tables, is the same whatever is reported on.
        assert parsed.tags.count("script") == 1
        assert parsed.scripts == _Text(pages[0]).scripts
        assert not any(name.startswith("on") for name in parsed.attributes)
        assert "url(http" not in page
        assert "@import" not in page
        assert INK not in page  # all of it has become the colour of the page's text
    assert attack in _Text(groups.to_html()).text


ODD_NAMES = [
    "#010203",
    "fill: #010203",
    '<svg style="fill: #010203">',
    "]]> -->",
    "a\x00\x1b[31m\n\x9b",
]
ODD_NAMES += ["\u202eright to left", "שלום", "👨‍👩‍👧", "$\\frac{", "z" * 1_000_000]


@pytest.fixture(scope="module")
def odd_pages() -> tuple[str, str]:
    """Of classes whose names would change the page, or their pictures."""
    rng = np.random.default_rng(0)
    y, prob = rng.integers(0, 10, 400), rng.dirichlet(np.ones(10), 400)
    report = jm.report(y, prob.argmax(1), y_prob=prob, class_names=ODD_NAMES)
    compared = jm.comparison_report(
        y, y, prob.argmax(1), class_names=ODD_NAMES, names=("\x1b", "\n")
    )
    return report.to_html(title="\x1b[31m"), compared.to_html()


def test_names_change_neither_page_nor_pictures(odd_pages: tuple[str, str]) -> None:
    for page in odd_pages:
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page)
        assert len(page) < 500_000
        shown = _Text(page).text
        assert r"a\x00\x1b[31m\n\x9b" in shown
        assert r"\u202eright to left" in shown
        pictures = re.findall("<svg.*?</svg>", page, re.DOTALL)
        trees = [ElementTree.fromstring(picture) for picture in pictures]  # well-formed
        texts = {
            text.text for tree in trees for text in tree.iter("{http://www.w3.org/2000/svg}text")
        }
        assert {
            "#010203",
            "fill: #010203",
            "]]> -->",
            "$\\frac{",
            "z" * 10 + "…" + "z" * 5,
        } <= texts
        assert not any(INK in "".join(re.findall("<[^!>]*>", x)) for x in pictures)


def test_a_class_named_as_the_ink() -> None:
    ink, other = (
        pages_of_reports._matrix_picture(np.array([[9, 1], [2, 8]]), (name, "b"), "counts")
        for name in (INK, "#010204")
    )
    assert ink.replace(INK, "#010204") == other


def test_names_have_a_direction_of_their_own(pages: tuple[str, str]) -> None:
    for page, most in zip(pages, (6, 3), strict=True):
        names = re.findall("<bdi>(.*?)</bdi>", page)
        assert {html.unescape(name) for name in names} >= set(NAMES)
        assert len(names) >= most


def test_mistakes_are_told_in_the_order_of_what_is_told_of_them() -> None:
    counts = np.array([[900, 20, 15], [17, 100, 0], [0, 2, 11]])
    page = _Text(jm.Report.from_counts(counts).to_html()).text
    assert re.findall(r": (\d+) times?", page) == ["20", "17", "15", "2"]
    assert "classified as 1 : 20 times , 2.1 % of 935" in page
    once = _Text(jm.Report.from_counts([[9, 1], [0, 9]]).to_html()).text
    assert "1 time ," in once


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
    share = jm.proportion_interval(9, 39, method="likelihood")
    low, high = 100 * float(share.low), 100 * float(share.high)
    told = " ".join(re.findall(r"[\w.%]+", page))
    assert f"b classified as a 9 times 23.1 % of 39 {low:.1f} % {high:.1f} %" in told
    assert told.index("b classified as a") < told.index("a classified as c")
    # Examples, false negatives, false positives.
    rows = [page.index(row) for row in (" a 54 4 9 ", " b 39 9 0 ", " c 20 0 4 ")]
    assert rows == sorted(rows)


def test_no_mistake_and_absent_classes() -> None:
    page = _Text(jm.Report.from_counts(np.diag([5, 3, 0])).to_html()).text
    assert "There is no mistake in these examples." in page
    assert "nan" not in page.lower()


def test_curves_are_those_of_the_scores() -> None:
    y, prob = problem()
    histogram = np.asarray(jm.score_histogram(y == 1, prob[:, 1], scale="probability"))
    curve, points = (
        pages_of_reports._curve(print, curve_of, histogram, has_band=False).args[0]
        for curve_of in (jm.roc_curve, jm.precision_recall_curve)
    )
    area = (np.diff(curve.fpr) * (curve.tpr[1:] + curve.tpr[:-1])).sum() / 2
    assert_allclose(area, jm.roc_auc(histogram).value, rtol=1e-6)
    assert_allclose(area, jm.roc_auc(y == 1, prob[:, 1]), rtol=2e-3)
    precision = (np.diff(points.recall) * points.precision[1:]).sum()
    assert_allclose(precision, jm.average_precision(y == 1, prob[:, 1]), rtol=2e-3)
    assert [float(x) for x in (points.precision[0], points.recall[0], points.recall[-1])] == [
        1,
        0,
        1,
    ]


BROWSER = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-component-update",
    "--disable-quic",
    "--enable-logging=stderr",
    "--window-size=1400,900",
    "--dump-dom",
]
TELL = """<script>
const tell = (found) => {
  (top.told ??= {})[frameElement.id] = found;
  top.document.title = JSON.stringify(top.told);
};
</script>"""
PROBE = """<script>
addEventListener("load", () => {
  const box = (x) => x.getBoundingClientRect(), all = (selector, x = document) => [...x.querySelectorAll(selector)];
  const root = document.documentElement;
  const leaves = (x, y) => x.left < y.left - 2 || x.right > y.right + 2 || x.top < y.top - 2 || x.bottom > y.bottom + 2;
  tell({
    width: innerWidth,
    overflow: root.scrollWidth - root.clientWidth,
    wide: all("body *").filter((x) => !x.closest("table, svg") && box(x).right > innerWidth + 1).map((x) => x.outerHTML),
    scrolled: all(".wide").filter((x) => x.scrollWidth > x.clientWidth + 1).map((x) => x.outerHTML),
    used: Math.min(...all("table").map((x) => box(x).right / innerWidth)),
    cut: all("svg").filter((x) => all("text", x).some((text) => leaves(box(text), box(x)))).map((x) => x.ariaLabel),
    background: getComputedStyle(document.body).backgroundColor,
  });
});
</script>"""


def look(
    pages: Sequence[str], widths: Sequence[int], dark: bool, directory: Path, probe: str = PROBE
) -> tuple[list[Any], list[str]]:
    """What a browser makes of each page in a frame of each width, and what it says in its console."""
    frames = [
        f'<iframe id="{i}" width="{width}" height="800" srcdoc="{html.escape(page)}"></iframe>'
        for i, (page, width) in enumerate(itertools.product(pages, widths))
    ]
    content = "".join(frames).replace(html.escape("</body>"), html.escape(TELL + probe + "</body>"))
    file = directory / "page.html"
    color_scheme = '<meta name="color-scheme" content="light dark">'
    file.write_text(f"<!doctype html>{color_scheme}{content}", encoding="utf-8")
    profile = f"--user-data-dir={directory / 'profile'}"
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    command = [str(CHROMIUM), *BROWSER, profile, scheme, file.as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    title = re.search("<title>(.*?)</title>", result.stdout, re.DOTALL)
    assert title is not None, result.stderr
    told = json.loads(html.unescape(title[1]))
    return [told[str(i)] for i in range(len(frames))], [
        line for line in result.stderr.splitlines() if "CONSOLE" in line
    ]


needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed to look at the page"
)


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_overflows_and_the_console_is_silent(
    dark: bool, pages: tuple[str, str], odd_pages: tuple[str, str], tmp_path: Path
) -> None:
    widths = [360, 390, 700, 1200]
    found, messages = look(pages + odd_pages, widths, dark, tmp_path)
    assert messages == []
    background = "rgb(21, 23, 26)" if dark else "rgb(255, 255, 255)"
    for seen, width in zip(found, 4 * widths, strict=True):
        assert seen.pop("used") > 0.9  # the frame has a bar to scroll
        assert seen == {
            "width": width,
            "overflow": 0,
            "wide": [],
            "scrolled": [],
            "cut": [],
            "background": background,
        }


CLICK = """<script>
addEventListener("load", () => {
  const table = [...document.querySelectorAll("table")].find((x) => x.textContent.includes("false negatives"));
  const names = () => [...table.tBodies[0].rows].map((x) => x.cells[0].textContent);
  const found = [names()];
  for (const column of [1, 1, 0, 5]) {
    table.tHead.rows[0].cells[column].querySelector("button").click();
    found.push(names());
  }
  found.push([...table.tHead.querySelectorAll("[aria-sort]")].map((x) => x.ariaSort + " " + x.cellIndex));
  tell(found);
});
</script>"""


@needs_browser
def test_a_click_sorts_a_table(tmp_path: Path) -> None:
    counts = np.zeros((4, 4), int)
    counts[:3, :3] = [[1500, 0, 4], [9, 30, 0], [1, 0, 20]]
    page = jm.Report.from_counts(counts, class_names=["c10", "c9", "b", "absent"]).to_html()
    ((most_mistakes, *found),), messages = look([page], [1200], False, tmp_path, CLICK)
    assert messages == []
    assert most_mistakes == ["c10", "c9", "b", "absent"]
    assert found == [
        ["absent", "b", "c9", "c10"],  # 0, 21, 39 and 1,504 examples
        ["c10", "c9", "b", "absent"],
        ["absent", "b", "c9", "c10"],  # names, with the numbers in them
        ["c9", "b", "c10", "absent"],  # recalls, the undefined one last
        ["ascending 5"],
    ]


@needs_browser
def test_the_browser_would_notice(tmp_path: Path) -> None:
    picture = '<svg width="50" height="20" aria-label="small"><text x="0" y="15">much too long for it</text></svg>'
    table = '<div class="wide" style="overflow: auto"><p style="width: 500px">wide</p></div>'
    page = f'<body><p style="width: 500px">wide</p>{table}{picture}<script>console.error("loud")</script></body>'
    (seen,), messages = look([page], [360], False, tmp_path)
    assert seen["overflow"] > 0
    assert len(seen["wide"]) == 2
    assert len(seen["scrolled"]) == 1
    assert seen["cut"] == ["small"]
    assert "loud" in messages[0]
