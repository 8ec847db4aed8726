"""The report of a real training, opened in a real browser.

The training names a module and a metric like markup, so that a page that trusted them would run
them. Without a browser these tests fail: `make setup` installs one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, Page
from forked import Server
from trainings import ROOT, Outcome

HOSTILE_LAYER = "<img src=x onerror=alert(1)>"
HOSTILE_METRIC = "</script><script>alert(2)</script>"

TRAINING = f"""
import torch
import traindbg

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.add_module({HOSTILE_LAYER!r}, torch.nn.Linear(32, 32))
        self.last = torch.nn.Linear(32, 4)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = torch.relu(getattr(self, {HOSTILE_LAYER!r})(x))
        return self.last(x)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
loss_function = torch.nn.CrossEntropyLoss()
for step in range(60):
    x = torch.randn(32, 16)
    y = x[:, :4].argmax(dim=1)
    if step == 45:
        x[0, 0] = float("nan")
    optimizer.zero_grad()
    loss = loss_function(net(x), y)
    loss.backward()
    optimizer.step()
    traindbg.log({HOSTILE_METRIC!r}, float(step))
    if step % 20 == 10:
        net.eval()
        with torch.no_grad():
            loss_function(net(torch.randn(64, 16)), torch.randint(0, 4, (64,)))
        net.train()
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Outcome:
    script = tmp_path_factory.mktemp("script") / "hostile.py"
    script.write_text(TRAINING)
    return forked.run(tmp_path_factory.mktemp("runs"), script)


@pytest.fixture(scope="module")
def report(outcome: Outcome) -> Path:
    path = outcome.run / "report.html"
    assert path.is_file(), outcome.stderr
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(browser: Browser, report: Path) -> Page:
    return Page(browser, report)


def painted(page: Page) -> int:
    """How many different colours the heat map's canvas shows."""
    return int(
        page.evaluate(
            """(() => {
                const canvas = document.querySelector(".heat-canvas");
                const copy = new OffscreenCanvas(canvas.width, canvas.height);
                const context = copy.getContext("2d", { willReadFrequently: true });
                context.drawImage(canvas, 0, 0);
                const all = context.getImageData(0, 0, canvas.width, canvas.height);
                return new Set(new Uint32Array(all.data.buffer)).size;
            })()"""
        )
    )


def test_nothing_is_complained_about(page: Page) -> None:
    assert page.evaluate("document.documentElement.classList.contains('drawn')")
    assert page.complaints() == []


def test_nothing_is_loaded_but_the_file(page: Page, report: Path) -> None:
    assert page.requests() == [report.resolve().as_uri()]


def test_security_policy_refuses_to_connect(browser: Browser, report: Path) -> None:
    page = Page(browser, report)
    assert page.evaluate("fetch('data:,x').then(() => 'loaded', () => 'refused')") == "refused"


def test_hostile_names_are_text(page: Page) -> None:
    assert page.dialogs() == []
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("document.scripts.length") == 2
    text = page.evaluate("document.body.innerText")
    assert HOSTILE_LAYER in text
    assert HOSTILE_METRIC in text
    names = page.evaluate(
        "[...document.querySelectorAll('.heat-names li')].map((item) => item.textContent)"
    )
    assert any(HOSTILE_LAYER in name for name in names)


def test_markup_cannot_be_made_of_text(browser: Browser, report: Path) -> None:
    page = Page(browser, report)
    refused = "(() => { try { document.body.innerHTML = 'x'; } catch { return 'refused'; } })()"
    assert page.evaluate(refused) == "refused"


def test_every_chart_is_drawn(page: Page) -> None:
    hosts = "[data-chart], [data-finding], [data-classes], [data-heat]"
    count = page.evaluate(f"document.querySelectorAll({hosts!r}).length")
    assert count >= 4
    empty = page.evaluate(
        f"[...document.querySelectorAll({hosts!r})].filter((e) => !e.querySelector('svg')).length"
    )
    assert empty == 0
    assert page.evaluate("document.querySelectorAll('[data-chart] path.curve').length") > 0


def test_labels_of_an_axis_stand_apart(page: Page) -> None:
    """A curve over six decades in a chart of three fingers' height was a heap of digits."""
    scales = (ROOT / "src/traindbg/report/assets/scales.js").read_text()
    cramped = page.evaluate(
        f"""(() => {{
        {scales}
        const cramped = [];
        for (const rows of [2, 3, 5, 8])
            for (const decades of [0.05, 0.3, 0.7, 1.2, 2.1, 2.9, 3.3, 6.3, 9, 35])
                for (const start of [-3.6, -1, 0.3, 2.95]) {{
                    const high = 10 ** (start + decades);
                    const scale = logScale(10 ** start, high, 42 * rows, 0, rows);
                    const at = scale.ticks.map(scale.place);
                    if (!at.length || at.some((y, i) => i > 0 && Math.abs(y - at[i - 1]) < 12))
                        cramped.push([rows, decades, start, scale.ticks]);
                }}
        return cramped;
        }})()"""
    )
    assert cramped == []


def test_nan_is_marked_where_it_began(page: Page) -> None:
    labels = page.evaluate(
        "[...document.querySelectorAll('[data-chart] .tick.bad')].map((t) => t.textContent)"
    )
    assert any(label == "NaN from step 45" for label in labels), labels


def test_heat_map_is_painted_for_every_quantity(browser: Browser, report: Path) -> None:
    page = Page(browser, report)
    titles = page.evaluate("[...document.querySelectorAll('.heat option')].map((o) => o.label)")
    assert "Gradient, L2 norm" in titles
    assert "NaN and Inf, share of elements" in titles
    for index in range(len(titles)):
        page.evaluate(
            f"""(() => {{
                const select = document.querySelector(".heat select");
                select.value = "{index}";
                select.dispatchEvent(new Event("change"));
            }})()"""
        )
        assert painted(page) >= 2, titles[index]
    assert page.complaints() == []


def test_pointer_and_keyboard_read_the_charts(browser: Browser, report: Path) -> None:
    page = Page(browser, report)
    said = page.evaluate(
        """(() => {
            const chart = document.querySelector("[data-chart] svg[role=img]");
            chart.focus();
            for (const key of ["Home", "ArrowRight"])
                chart.dispatchEvent(new KeyboardEvent("keydown", { key }));
            return document.getElementById("announcer").textContent;
        })()"""
    )
    assert said.startswith("step 1")
    said = page.evaluate(
        """(() => {
            const canvas = document.querySelector(".heat-canvas");
            canvas.focus();
            for (const key of ["ArrowDown", "ArrowDown", "End"])
                canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
            return document.getElementById("announcer").textContent;
        })()"""
    )
    assert "Gradient, L2 norm" in said
    assert page.complaints() == []


def test_essentials_stand_there_without_a_script(browser: Browser, report: Path) -> None:
    page = Page(browser, report, script=False)
    markup = page.markup()
    assert "<canvas" not in markup  # no script ran
    text = markup.split('<script type="application/json"', 1)[0].split("</style>", 1)[1]
    for part in (
        "finding",
        "What to change",
        "Evidence",
        "Likely cause",
        "Rules",
        "Environment",
        "SGD",
    ):
        assert part in text, part
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert page.requests() == [report.resolve().as_uri()]


@pytest.mark.parametrize("width", [380, 800, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_page_is_not_wider_than_the_window(
    browser: Browser, report: Path, width: int, dark: bool
) -> None:
    page = Page(browser, report, width=width, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("window.innerWidth") == width
    assert page.complaints() == []


def test_text_has_contrast(browser: Browser, report: Path) -> None:
    """Every piece of text reaches the ratio of WCAG 2, level AA (4.5 to 1), light and dark."""
    for dark in (False, True):
        page = Page(browser, report, dark=dark)
        poor = page.evaluate(
            """(() => {
                const parse = (text) => text.match(/[\\d.]+/g).map(Number);
                const light = ([r, g, b]) => [r, g, b]
                    .map((c) => c / 255)
                    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
                    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
                const ground = (element) => {
                    for (let at = element; at; at = at.parentElement) {
                        const colour = parse(getComputedStyle(at).backgroundColor);
                        if (colour.length === 3 || colour[3] > 0.99) return colour;
                    }
                    return [255, 255, 255];
                };
                const poor = [];
                const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
                while (walker.nextNode()) {
                    const element = walker.currentNode.parentElement;
                    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
                    if (element.closest("svg, script, noscript, [aria-pressed=false]")) continue;
                    const a = light(parse(getComputedStyle(element).color));
                    const b = light(ground(element));
                    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                    if (ratio < 4.5) poor.push([walker.currentNode.data, element.className, ratio]);
                }
                return poor;
            })()"""
        )
        assert poor == []
