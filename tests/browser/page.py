"""The page of `esker bench report`, as a browser shows it.

    /usr/bin/python3 tests/browser/page.py --esker target/release/esker [--screenshots DIR]

Needs chromium, chromium-driver and python3-selenium (Debian's packages of these names); without them
it says so and tests nothing, unless it is called with `--required`. The reports are made in
`reports.py`, so that the figures can be computed a second time, in another language, from the same
JSON; one more report comes from the program itself. Pictures of the page are written where
`--screenshots` or `ESKER_PAGE_SCREENSHOTS` says.
"""

import argparse
import base64
import importlib.util
import itertools
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

import looks
import reports

LACKING = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
if importlib.util.find_spec("selenium") is None:
    LACKING.append("selenium")
else:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

ARGS = None
# What nobody may run who brings it along in a page.
FOREIGN = """<script>document.title = 'broken'</script>
<svg onload="document.title = 'broken'"></svg><img src="data:," onerror="document.title = 'broken'">"""


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="esker-page-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.data = reports.report()
        cls.now, cls.then = reports.now_and_then()
        fresh = subprocess.run(
            [ARGS.esker, "bench", "--json", "--engine", "esker,mem", "--rounds", "2", "--num", "5000"],
            check=True, capture_output=True, text=True,
        ).stdout
        cls.fresh = json.loads(fresh)
        cls.pages = {
            "made": cls.page("made", cls.data),
            "hostile": cls.page("hostile", cls.data, reports.hostile()),
            "fresh": cls.page("fresh", cls.fresh),
            "wide": cls.page("wide", reports.wide()),
            "alone": cls.page("alone", reports.alone()),
            "change": cls.page("change", cls.now, baseline=cls.then),
        }
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]:
            options.add_argument(flag)
        options.add_argument(f"--user-data-dir={cls.dir / 'profile'}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = Service(shutil.which("chromedriver"))
        cls.browser = webdriver.Chrome(service=service, options=options)
        cls.addClassCleanup(cls.browser.quit)

    @classmethod
    def page(cls, name, *data, baseline=None):
        files = []
        for i, one in enumerate([*data, *([baseline] if baseline else [])]):
            files.append(cls.dir / f"{name}-{i}.json")
            files[-1].write_text(json.dumps(one))
        out = cls.dir / f"{name}.html"
        since = ["--baseline", files.pop()] if baseline else []
        subprocess.run([ARGS.esker, "bench", "report", *files, *since, "--out", out], check=True)
        return out

    def open(self, name="made", scheme="light", width=1280, height=900, mobile=False, scripts=True):
        cdp = self.browser.execute_cdp_cmd
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        cdp("Emulation.setEmulatedMedia", {"features": media})
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        cdp("Emulation.setDeviceMetricsOverride", metrics)
        cdp("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        self.browser.get(self.pages[name].as_uri())

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def unfold(self):
        self.script("document.querySelectorAll('details').forEach(d => d.open = true)")

    # What it loads and runs.

    def test_it_loads_without_a_complaint_or_a_request(self):
        for name, path in self.pages.items():
            for kind in ("browser", "performance"):
                self.browser.get_log(kind)
            self.open(name)
            self.assertEqual(self.browser.get_log("browser"), [], name)
            requests = []
            for entry in self.browser.get_log("performance"):
                message = json.loads(entry["message"])["message"]
                # The browser's own first page may still be loading.
                sent = message["method"] == "Network.requestWillBeSent"
                if sent and message["params"]["documentURL"] == path.as_uri():
                    requests.append(message["params"]["request"]["url"])
            self.assertIn(path.as_uri(), requests)
            others = [url for url in requests if url != path.as_uri() and not url.startswith("data:")]
            self.assertEqual(others, [], name)
            self.assertNotEqual(self.browser.title, "broken")

    def test_markup_in_names_is_text(self):
        self.open("hostile")
        self.assertTrue(self.browser.title.startswith("Benchmark of"))
        self.assertEqual(self.find("article script, article img"), [])
        self.assertIn("<script>", self.browser.find_element(By.TAG_NAME, "main").text)
        self.assertEqual(len(self.find("article")), 2)

    def test_only_its_own_script_runs(self):
        path = self.dir / "foreign.html"
        page = self.pages["made"].read_text()
        path.write_text(page.replace("<main", FOREIGN + "<main"))
        self.pages["foreign"] = path
        self.addCleanup(self.pages.pop, "foreign")
        self.open("foreign")
        self.assertEqual(len(self.find("script")), 2)
        self.assertTrue(self.browser.title.startswith("Benchmark of"), "a foreign script ran")
        self.assertTrue(self.find("fieldset.choice")[0].is_displayed(), "its own did not")
        # Without the policy, what is foreign would run.
        path.write_text(path.read_text().replace("Content-Security-Policy", "nothing"))
        self.open("foreign")
        self.assertEqual(self.browser.title, "broken")

    def test_without_scripts_everything_is_there(self):
        self.addCleanup(self.open)
        for name in self.pages:
            self.open(name)
            tables, pictures = self.script(looks.TABLES), len(self.find("svg[role=img]"))
            controls = len(self.find("th button"))
            self.assertGreater(controls, 5)
            self.open(name, scripts=False)
            self.assertEqual(self.find("th button"), [], "the script did not run")
            self.assertEqual([e for e in self.find("fieldset.choice") if e.is_displayed()], [])
            self.assertEqual(self.script(looks.TABLES), tables, name)
            self.assertEqual(len(self.find("svg[role=img]")), pictures)
            self.assertEqual(self.find(".gone"), [])

    # What it shows.

    def check_ratios(self, selector, wanted, ours_beside=True):
        """A table of ratios against what it has to show."""
        table = {workload: (ours, shown) for workload, ours, shown in self.script(looks.RATIOS, selector)}
        counted = 0
        for workload, engines in wanted.items():
            ours, shown = table[workload]
            for engine, (a, b, ratio, _, mark) in engines.items():
                figures, shown_ratio, shown_mark, text = shown[engine]
                where = f"{selector}: {workload} {engine}"
                figures = [ours, *figures] if ours_beside else figures
                self.assertEqual(len(figures), 2, where)
                self.assertAlmostEqual(float(figures[0]) / a, 1, 9, where)
                self.assertAlmostEqual(float(figures[1]) / b, 1, 9, where)
                self.assertTrue(shown_mark.endswith(mark), f"{where}: {shown_mark}, not {mark}")
                counted += 1
                if mark == "other work":
                    self.assertIsNone(shown_ratio, "what is not compared has no ratio")
                    continue
                self.assertAlmostEqual(float(shown_ratio) / ratio, 1, 9, where)
                rounded = float(text.strip("×").replace(",", ""))
                self.assertLess(abs(rounded / ratio - 1), 0.06, where)
        return counted

    def check_panels(self, section, wanted, engines):
        """Pictures of ratios against what they have to show, words and drawing."""
        panels = {panel["workload"]: panel for panel in self.script(looks.PANELS, section)}
        self.assertEqual(set(panels), set(wanted))
        axes = {tuple(map(tuple, panel["ticks"])) for panel in panels.values()}
        self.assertEqual(len(axes), 1, "all pictures have the same axis")
        (first, low), *_, (last, high) = axes.pop()
        scale = (last - first) / math.log10(high / low)

        def place(ratio, left, right):
            """On the axis; or left or right of it."""
            if max(ratio, 1 / ratio) > looks.AXIS_END:
                return right if ratio > 1 else left
            return first + scale * math.log10(ratio / low)

        for workload, outcomes in wanted.items():
            rows = {row["column"]: row for row in panels[workload]["rows"]}
            self.assertEqual(set(rows), {engines.index(engine) for engine in outcomes})
            for engine, (_, _, ratio, (worst, best), mark) in outcomes.items():
                row, where = rows[engines.index(engine)], f"{section} {workload} {engine}"
                sign = {"win": "▲", "loss": "▼", "tie": "=", "other work": "≠"}[mark]
                self.assertTrue(row["texts"][1].startswith(sign), where)
                self.assertTrue(row["texts"][1].endswith(mark), where)
                if mark == "other work":
                    self.assertIsNone(row["whisker"], where)
                    continue
                shown = float(row["texts"][1].split()[1].strip("×").replace(",", ""))
                self.assertLess(abs(shown / ratio - 1), 0.06, where)
                if max(worst, 1 / best) > looks.AXIS_END:
                    self.assertIsNone(row["whisker"], f"{where}: all of it is beyond the axis")
                else:
                    self.assertAlmostEqual(row["whisker"][0], place(worst, 2, 874), delta=1.5, msg=where)
                    self.assertAlmostEqual(row["whisker"][2], place(best, 2, 874), delta=1.5, msg=where)
                middle = (min(row["mark"]) + max(row["mark"])) / 2
                self.assertAlmostEqual(middle, place(ratio, 26, 854), delta=1.5, msg=where)
                self.assertEqual(row["arrows"], int(max(ratio, 1 / ratio) > looks.AXIS_END), where)
        return {workload: panel["leading"] for workload, panel in panels.items()}

    def test_the_figures_are_those_of_the_json(self):
        self.open("made")
        speed = reports.expected(self.data, "Operations a second")
        marks = {mark for engines in speed.values() for *_, mark in engines.values()}
        self.assertEqual(marks, {"win", "loss", "tie", "other work"}, "the reports show every mark")
        self.assertEqual(self.check_ratios('table[data-measure="Speed"]', speed), 15)
        for cost in ["99th percentile of latency", "CPU time for an operation",
                     "Context switches for an operation", "Write amplification", "Space amplification"]:
            wanted = reports.expected(self.data, cost)
            self.assertGreater(self.check_ratios(f'table[data-measure="{cost}"]', wanted), 5)
        stores = [marks[engine] for marks in speed.values() for engine in ("rocksdb", "lmdb")]
        for word, mark in [("wins", "win"), ("losses", "loss"), ("ties", "tie")]:
            number = sum(1 for *_, found in stores if found == mark)
            score = self.browser.find_element(By.CSS_SELECTOR, f"ul.score .{mark}").text
            self.assertIn(f"{number} {word}", " ".join(score.split()))
        losses = sum(1 for *_, found in stores if found == "loss")
        told = self.find("ul.losses")[0]
        self.assertEqual(len(told.find_elements(By.TAG_NAME, "li")), losses)
        self.open("fresh")
        speed = reports.expected(self.fresh, "Operations a second")
        self.assertGreater(self.check_ratios('table[data-measure="Speed"]', speed), 3)

    def test_the_overview_comes_first_and_is_drawn_to_scale(self):
        self.open("made")
        self.assertEqual(self.find("article h3")[0].text, "Overview")
        speed = reports.expected(self.data, "Operations a second")
        leading = self.check_panels("section.overview", speed, reports.engines(self.data))
        for workload, sentence in leading.items():
            leaders = {reports.LABELS[engine] for engine in reports.leaders(self.data, workload)}
            if len(leaders) == 1:
                self.assertEqual(sentence, f"Winner: {leaders.pop()}.")
            else:
                self.assertEqual(set(sentence.strip(".").split()), leaders | {"No", "winner:", "and", "tie"})
        self.assertGreater(len({sentence.split(":")[0] for sentence in leading.values()}), 1)
        self.open("wide")
        data = reports.wide()
        self.check_panels("section.overview", reports.expected(data, "Operations a second"),
                          reports.engines(data))

    def test_the_change_against_a_baseline_is_that_of_the_json(self):
        self.open("change")
        changes = reports.changes(self.now, self.then)
        marks = {mark for engines in changes.values() for *_, mark in engines.values()}
        self.assertEqual(marks, {"win", "loss", "tie"})
        self.assertEqual(self.check_ratios('table[data-change="Speed"]', changes, False), 15)
        self.check_panels("section.change", changes, reports.engines(self.now))
        said = self.find("section.change")[0].text
        for expected in ["system linux 6.0 x86_64 before, linux 6.1 x86_64 now",
                         "Esker 1.2.3 now, Esker 1.2.2 before", "mem: not in the baseline"]:
            self.assertIn(expected, said)
        cells = {workload: shown["mem"] for workload, _, shown in
                 self.script(looks.RATIOS, 'table[data-change="Speed"]')}
        self.assertEqual({tuple(map(str, cell[1:])) for cell in cells.values()}, {("None",) * 3})
        # The engines of now are compared with each other, as without a baseline.
        speed = reports.expected(self.now, "Operations a second")
        self.check_ratios('table[data-measure="Speed"]', speed)

    def test_all_figures_of_all_workloads_are_in_their_tables(self):
        for name, data in [("made", self.data), ("fresh", self.fresh)]:
            self.open(name)
            shown = self.script(
                """return [...document.querySelectorAll('section.workload')].map(section => [section.dataset.workload,
                     Object.fromEntries([...section.querySelector('details table').tBodies[0].rows].map(row =>
                       [row.dataset.measure, [...row.cells].slice(1).map(cell => cell.querySelector('data')?.value ?? null)]))])"""
            )
            self.assertEqual([workload for workload, _ in shown], list(reports.workloads(data)))
            for workload, measures in shown:
                self.assertLessEqual({"Time taken"}, set(measures))
                self.assertLessEqual(set(measures), set(reports.MEASURES))
                single = reports.workloads(data)[workload]
                for measure, (path, more_is_better) in reports.MEASURES.items():
                    unit = 1e6 if measure in reports.MEGABYTES else 1
                    rounds = [reports.rounds(data, workload, engine, path) for engine in reports.engines(data)]
                    medians = [statistics.median(one) / unit if one else None for one in rounds]
                    if measure not in measures:
                        self.assertTrue(single and more_is_better or not any(rounds), f"{workload} {measure}")
                        continue
                    for figure, median in zip(measures[measure], medians, strict=True):
                        where = f"{name}: {workload} {measure}"
                        if median is None:
                            self.assertIsNone(figure, where)
                        else:
                            self.assertAlmostEqual(float(figure), median, delta=abs(median) * 1e-9, msg=where)

    def test_rates_over_time_are_those_of_the_json(self):
        self.open("made")
        for table in self.script(looks.TABLES):
            if "in each tenth" not in table["caption"]:
                continue
            workload = table["caption"].split()[4]
            columns = list(zip(*[row[1:] for row in table["rows"]]))
            for engine, shown in zip(reports.engines(self.data), columns, strict=True):
                wanted = reports.tenths(self.data, workload, engine)
                for figure, rate in zip(shown, wanted, strict=True):
                    self.assertAlmostEqual(float(figure.replace(",", "")), rate, delta=rate * 0.01 + 0.5)

    def test_a_page_of_one_engine_compares_nothing(self):
        self.open("alone")
        self.unfold()
        text = self.browser.find_element(By.TAG_NAME, "body").text
        for wrong in ["side by side", "compar", "Compar", "Overview", "Summary", "Engines shown", "against"]:
            self.assertNotIn(wrong, text)
        self.assertIn("Benchmark of Esker", text)
        for section in self.find("section"):
            self.assertGreater(len(section.text), 60, "no section is empty")

    # What a reader does with it.

    def shown_stacks(self):
        """Rows of all pictures stand one below the other and fill them."""
        stacks = self.script(looks.STACKS)
        self.assertGreater(len(stacks), 5)
        for height, rows in stacks:
            self.assertEqual([top for top, _ in rows], [0, *itertools.accumulate(h for _, h in rows)][:-1])
            self.assertEqual(height, sum(h for _, h in rows))
        return sum(len(rows) for _, rows in stacks)

    def main(self):
        return self.script("return document.querySelector('main').outerHTML").replace(' class=""', "")

    def box(self, place):
        return self.find("fieldset.choice input")[place]

    def test_engines_can_be_hidden(self):
        self.open("change")
        self.unfold()
        before, rows = self.main(), self.shown_stacks()
        for place, name in enumerate(["Esker", "RocksDB", "LMDB", "mem"]):
            elements, names = self.script(looks.SEEN, place, name)
            self.assertGreater(len(elements), 40)
            self.assertGreater(len(names), 10)
            self.box(place).click()
            elements, names = self.script(looks.SEEN, place, name)
            self.assertEqual(elements, [])
            self.assertEqual(names, [])
            self.assertLess(self.shown_stacks(), rows)
            self.box(place).click()
            self.assertEqual(self.main(), before, "all is as it was")
        # Without the engine that others are compared with, nothing says who is ahead of it.
        self.box(0).click()
        self.assertFalse(self.find("section.overview")[0].is_displayed())
        self.assertTrue(self.find("section.change")[0].is_displayed())
        # Several at once, from the keyboard.
        self.box(1).send_keys(Keys.SPACE)
        for place in (0, 1):
            self.assertEqual(self.script(looks.SEEN, place, "-")[0], [])
        self.assertTrue(self.script(looks.SEEN, 2, "LMDB")[0])
        self.shown_stacks()

    def test_an_engine_is_hidden_in_all_comparisons(self):
        other = reports.report(seed=21)
        other["settings"]["num"] = 5
        self.pages["two"] = self.page("two", self.data, other)
        self.addCleanup(self.pages.pop, "two")
        self.open("two")
        self.assertEqual(len(self.find("fieldset.choice")), 2)
        self.box(5).click()
        self.unfold()
        self.assertFalse(self.box(1).is_selected())
        self.assertEqual(self.script(looks.SEEN, 1, "-")[0], [])

    def test_tables_can_be_sorted_by_every_column(self):
        self.open("change")
        self.unfold()
        tables = self.find("main table")
        self.assertGreater(len(tables), 15)
        for table in tables:
            self.check_sorting(table)

    def check_sorting(self, table):
        buttons = table.find_elements(By.CSS_SELECTOR, "thead button")
        before = self.script(looks.CELLS, table)
        self.assertEqual(len(buttons), len(before[0]))
        press = "arguments[0].click(); return arguments[0].parentNode.getAttribute('aria-sort')"
        for column, button in enumerate(buttons):
            where = self.script("return arguments[0].caption.textContent + ', ' + arguments[1].textContent", table, button)
            self.assertEqual(self.script(press, button), "ascending", where)
            up = self.script(looks.CELLS, table)
            self.assertEqual(self.script(press, button), "descending", where)
            down = self.script(looks.CELLS, table)
            self.assertEqual(len(table.find_elements(By.CSS_SELECTOR, "[aria-sort]")), 1)
            self.assertEqual(self.script(press, button), None, where)
            self.assertEqual(self.script(looks.CELLS, table), before, where)
            for after in (up, down):
                self.assertEqual(sorted(map(str, after)), sorted(map(str, before)), "rows stay whole")
                absent = [row[column][1] for row in after]
                self.assertEqual(absent, sorted(absent), f"{where}: what is absent comes last")
            keys = [[row[column][0] for row in order if not row[column][1]] for order in (up, down)]
            if None not in keys[0]:
                self.assertEqual(keys[0], sorted(keys[0]), where)
                self.assertEqual(keys[1], sorted(keys[1], reverse=True), where)

    def test_the_order_of_a_sorted_table_is_that_of_its_figures(self):
        self.open("made")
        table = self.find('table[data-measure="Speed"]')[0]
        speed = reports.expected(self.data, "Operations a second")

        def order():
            return [row[0][2] for row in self.script(looks.CELLS, table)]

        first, _, rocksdb, lmdb, _ = table.find_elements(By.CSS_SELECTOR, "thead button")
        rocksdb.click()
        by_ratio = sorted(speed, key=lambda workload: speed[workload]["rocksdb"][2])
        self.assertEqual(order(), by_ratio)
        rocksdb.send_keys(Keys.ENTER)
        self.assertEqual(order(), by_ratio[::-1])
        # Writes of LMDB are other work and have no ratio.
        lmdb.click()
        self.assertEqual(set(order()[3:]), {"fillseq", "overwrite"})
        lmdb.click()
        self.assertEqual(set(order()[3:]), {"fillseq", "overwrite"})
        first.click()
        self.assertEqual(order(), sorted(speed))

    # How it looks.

    def test_no_page_is_wider_than_a_telephone(self):
        for name in self.pages:
            for width in (320, 360, 768):
                self.open(name, width=width, height=780, mobile=True)
                self.unfold()
                wide = self.script(
                    """
                    const page = document.scrollingElement;
                    const out = [...document.body.querySelectorAll('*')].filter(e =>
                      !e.closest('.scroll > *, pre, svg') && !e.matches('.skip') && e.getBoundingClientRect().right > innerWidth + 0.5);
                    return [page.scrollWidth, innerWidth, out.map(e => e.outerHTML.slice(0, 80))];
                    """
                )
                self.assertLessEqual(wide[0], wide[1], f"{name} at {width}: {wide[2][:3]}")
                self.assertEqual(wide[2], [], f"{name} at {width}")
                self.assertEqual(wide[1], width)
        self.open("made", width=360, height=780, mobile=True)
        sizes = self.script(
            """return [...document.querySelectorAll('figure svg text')].filter(t => t.getBoundingClientRect().height > 0)
                 .map(t => parseFloat(getComputedStyle(t).fontSize) * Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b))"""
        )
        self.assertGreaterEqual(min(sizes), 9.5, "text in pictures is legible on a telephone")

    def test_narrow_screens_hide_no_column(self):
        for name in ("made", "wide", "change", "fresh"):
            for width in (320, 414):
                self.open(name, width=width, height=780, mobile=True)
                self.unfold()
                for caption, hidden, beyond, covered, share in self.script(looks.REACH):
                    where = f"{name} at {width}: {caption}"
                    self.assertEqual(hidden, 0, f"{where}: hidden")
                    self.assertEqual(beyond, 0, f"{where}: out of reach")
                    self.assertEqual(covered, 0, f"{where}: behind the first column")
                    self.assertLess(share, 0.55, f"{where}: the first column leaves no room")

    def test_no_label_collides_with_another_or_is_cut(self):
        for name in ("made", "wide", "change", "alone"):
            for width in (320, 1280):
                self.open(name, width=width, mobile=width < 500)
                for linear in (False, True):
                    if linear:
                        self.script("document.querySelectorAll('.choose-linear').forEach(input => input.click())")
                    for picture, frame, labels in self.script(looks.LABELS):
                        self.check_labels(f"{name} at {width}: {picture}", frame, labels)

    def check_labels(self, where, frame, labels):
        for text, (left, top, right, bottom) in labels:
            # Above and below its letters a label has room for accents, which it does not have.
            room = min(right - left, bottom - top) / 4
            across = left >= frame[0] - room and right <= frame[2] + room
            inside = across and top >= frame[1] - room and bottom <= frame[3] + room
            self.assertTrue(inside, f"{where}: {text} is cut")
        for (one, a), (other, b) in itertools.combinations(labels, 2):
            across = min(a[2], b[2]) - max(a[0], b[0])
            down = min(a[3], b[3]) - max(a[1], b[1])
            line = min(a[3] - a[1], b[3] - b[1])
            self.assertFalse(across > 0.5 and down > line / 4, f"{where}: {one} runs into {other}")

    def test_contrast_in_light_and_dark(self):
        grounds = {}
        for scheme, name in itertools.product(("light", "dark"), ("made", "change", "wide")):
            self.open(name, scheme=scheme)
            self.unfold()
            found = self.script(looks.COLOURS)
            self.assertGreater(len([one for one in found if one[0] == "text"]), 200)
            self.assertGreater(len([one for one in found if one[0] == "shape"]), 20)
            for kind, element, colour, ground, *_ in found:
                least = looks.TEXT_CONTRAST if kind == "text" else looks.SHAPE_CONTRAST
                ratio = looks.contrast(colour, ground)
                self.assertGreaterEqual(ratio, least, f"{scheme}: {element}: {colour} on {ground}")
            grounds[scheme] = self.script("return getComputedStyle(document.body).backgroundColor")
        light, dark = (
            looks.luminance([int(n) for n in grounds[s].strip("rgb()").split(",")]) for s in ("light", "dark")
        )
        self.assertGreater(light, 0.7)
        self.assertLess(dark, 0.05)

    def test_the_keyboard_reaches_everything(self):
        self.open("made")
        controls = self.script(
            """
            const reachable = [...document.querySelectorAll('a, summary, button, input:checked, [tabindex]')];
            reachable.forEach((e, i) => e.dataset.control = i);
            return reachable.filter(e => e.checkVisibility()).map(e => e.dataset.control);
            """
        )
        self.assertGreater(len(controls), 20)
        reached = []
        body = self.browser.find_element(By.TAG_NAME, "body")
        for _ in range(len(controls) + 5):
            (self.browser.switch_to.active_element or body).send_keys(Keys.TAB)
            state = self.script(
                """
                const e = document.activeElement, style = getComputedStyle(e);
                return [e.dataset.control, style.outlineStyle, parseFloat(style.outlineWidth), e.outerHTML.slice(0, 90)];
                """
            )
            if state[0] is None or state[0] in reached:
                break
            self.assertNotEqual(state[1], "none", state[3])
            self.assertGreaterEqual(state[2], 2, state[3])
            reached.append(state[0])
        self.assertEqual(set(reached), set(controls))
        self.assertEqual(reached, sorted(reached, key=int), "in the order of the page")

    def test_the_controls_work_from_the_keyboard(self):
        self.open("made")
        radio = self.browser.find_element(By.CSS_SELECTOR, "input.choose-log")
        logarithmic = self.browser.find_element(By.CSS_SELECTOR, "fieldset.scale .log")
        linear = self.browser.find_element(By.CSS_SELECTOR, "fieldset.scale .linear")
        self.assertTrue(logarithmic.is_displayed() and not linear.is_displayed())
        radio.send_keys(Keys.ARROW_RIGHT)
        self.assertTrue(linear.is_displayed() and not logarithmic.is_displayed())
        summary = self.browser.find_element(By.CSS_SELECTOR, "section.workload summary")
        table = self.browser.find_element(By.CSS_SELECTOR, "section.workload details table")
        self.assertFalse(self.script("return arguments[0].checkVisibility()", table))
        summary.send_keys(Keys.ENTER)
        self.assertTrue(self.script("return arguments[0].checkVisibility()", table))
        self.open("made", width=360, height=780, mobile=True)
        box = self.browser.find_element(By.CSS_SELECTOR, ".scroll")
        self.assertGreater(self.script("return arguments[0].scrollWidth - arguments[0].clientWidth", box), 20)
        self.script("arguments[0].focus({ focusVisible: true })", box)
        box.send_keys(Keys.ARROW_RIGHT)
        self.browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        self.assertTrue(self.script(
            """return new Promise(done => {
                 const box = arguments[0], look = () => box.scrollLeft > 0 ? done(true) : requestAnimationFrame(look);
                 look();
               })""", box))

    def test_it_says_what_it_shows(self):
        for name in self.pages:
            self.open(name)
            self.assertEqual(self.script(looks.SEMANTICS), [], name)

    def test_pictures_are_kept(self):
        if ARGS.screenshots is None:
            self.skipTest("neither --screenshots nor ESKER_PAGE_SCREENSHOTS was given")
        self.addCleanup(self.open)
        ARGS.screenshots.mkdir(parents=True, exist_ok=True)
        for shot, name, scheme, width in [
            ("light", "made", "light", 1280), ("dark", "made", "dark", 1280), ("phone", "made", "light", 360),
            ("eight-engines", "wide", "light", 1280), ("eight-engines-phone", "wide", "dark", 320),
            ("baseline", "change", "light", 1280), ("one-engine", "alone", "light", 1280),
        ]:
            self.open(name, scheme=scheme, width=width, mobile=width < 500)
            self.keep(shot, width)
        self.open("made", scripts=False)
        self.keep("no-script", 1280)
        self.open("made")
        self.box(1).click()
        self.find('table[data-measure="Speed"] thead button')[1].click()
        self.keep("hidden-and-sorted", 1280)

    def keep(self, name, width):
        height = min(self.script("return document.scrollingElement.scrollHeight"), 8000)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.browser.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
        )
        picture = base64.b64decode(shot["data"])
        self.assertGreater(len(picture), 50_000)
        (ARGS.screenshots / f"{name}.png").write_bytes(picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--esker", required=True, type=pathlib.Path, help="the program under test")
    parser.add_argument("--screenshots", type=pathlib.Path, help="where to write pictures",
                        default=os.environ.get("ESKER_PAGE_SCREENSHOTS") or None)
    parser.add_argument("--required", action="store_true", help="fail where there is no browser")
    ARGS, rest = parser.parse_known_args()
    if LACKING:
        print(f"SKIPPED: the page in a browser: this machine has no {', '.join(LACKING)}; "
              "`.ci/run page` installs what is missing", file=sys.stderr)
        sys.exit(1 if ARGS.required else 0)
    ARGS.esker = ARGS.esker.resolve()
    unittest.main(argv=sys.argv[:1] + rest)
