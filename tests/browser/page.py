"""The page of `esker bench report`, as a browser shows it.

    /usr/bin/python3 tests/browser/page.py --esker target/release/esker [--screenshots DIR]

Needs chromium, chromium-driver and python3-selenium (Debian's packages of these names). The reports
are made here, so that the summary's figures can be computed a second time, in another language,
from the same JSON; one more report comes from the program itself. Pictures of the page in light,
in dark and on a telephone are written where `--screenshots` says.
"""

import argparse
import base64
import json
import math
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

ARGS = None
HOSTILE = "<script>document.title='broken'</script>\"'><img src=x onerror=\"document.title='broken'\">"
TEXT_CONTRAST = 4.5
SHAPE_CONTRAST = 3.0


# The reports.


def step(chance, name, rate, seconds, **more):
    """One workload of one round."""
    latency = {"samples": 1000, "operations_per_sample": 1, "mean_us": 2e6 / rate}
    curve = []
    for percentile in [0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 99.999]:
        nines = -math.log10(1 - percentile / 100) if percentile else 0
        curve.append([percentile, 1e6 / rate * (0.6 + nines**3 * chance.uniform(0.8, 1.2))])
    curve.sort(key=lambda point: point[1])
    curve = [[p, v] for (p, _), (_, v) in zip(sorted(curve), curve)]
    at = dict((p, v) for p, v in curve)
    latency.update(p50_us=at[50], p90_us=at[90], p99_us=at[99], p999_us=at[99.9], p9999_us=at[99.99])
    latency["max_us"] = curve[-1][1] * 3
    curve.append([100, latency["max_us"]])
    rates = []
    for second in range(1, seconds + 1):
        # One second stands still, so that the picture has a pause.
        now = 0 if second == seconds // 2 and rate < 100_000 else rate * chance.uniform(0.7, 1.3)
        rates.append({"seconds": second, "operations": second * rate, "ops_per_second": now})
    return {
        "name": name, "maintenance": False, "threads": 1, "seconds": seconds,
        "operations": int(rate * seconds), "ops_per_second": rate, "mb_per_second": rate * 116 / 1e6,
        "cpu_us_per_op": 1.4e6 / rate, "context_switches_per_op": 90 / rate, "latency": latency,
        "latency_curve": curve, "longest_pause_ms": 8e6 / rate, "idle_gap_ms": 1.0, "rates": rates,
        "user_bytes_written": 1000, "device_bytes_read": 0, "disk_bytes": 3_000_000,
        "peak_memory_bytes": 40_000_000, **more,
    }


def report(seed=7, rounds=3):
    """Four engines; Esker wins, loses and ties among them."""
    chance = random.Random(seed)
    speeds = {
        "esker": {"fillseq": 700e3, "overwrite": 300e3, "readrandom": 500e3, "seekrandom": 150e3},
        "rocksdb": {"fillseq": 350e3, "overwrite": 290e3, "readrandom": 900e3, "seekrandom": 90e3},
        "lmdb": {"fillseq": 40e3, "overwrite": 20e3, "readrandom": 1500e3, "seekrandom": 500e3},
        "mem": {"fillseq": 800e3, "overwrite": 900e3, "readrandom": 550e3, "seekrandom": 160e3},
    }
    labels = {"esker": "Esker", "rocksdb": "RocksDB", "lmdb": "LMDB", "mem": "mem"}
    runs = []
    for turn in range(rounds):
        for engine, rates in speeds.items():
            workloads = []
            for name, rate in rates.items():
                amplification = {"esker": 1.6, "rocksdb": 2.9, "lmdb": 9.5, "mem": 0}[engine]
                workloads.append(step(
                    chance, name, rate * chance.uniform(0.9, 1.1), 40,
                    write_amplification_since_open=amplification * chance.uniform(0.98, 1.02),
                    space_amplification={"esker": 1.5, "rocksdb": 1.1, "lmdb": 1.9, "mem": None}[engine],
                    batched_instead=engine == "lmdb" and name in ("fillseq", "overwrite"),
                ))
            workloads.append({
                "name": "compact", "maintenance": True, "threads": 1, "operations": 1,
                "seconds": chance.uniform(1.9, 2.1) * (2 if engine == "esker" else 1),
                "ops_per_second": 0.5, "latency": None, "rates": [],
            })
            runs.append({
                "engine": engine, "version": f"{labels[engine]} 1.2.3", "round": turn + 1,
                "settings": [["cache", "6319128576 bytes"], ["a setting", "of the engine"]],
                "workloads": workloads, "close_seconds": 0.1,
            })
    return {
        "format": 2, "command": "compare", "complete": True, "stopped": None, "kept": None,
        "rules": ["The order of engines rotates from round to round."],
        "machine": {"cores": 2, "processor": "A processor", "memory": 25276514304,
                    "system": "linux 6.1 x86_64", "debug_build": False},
        "settings": {"engines": list(speeds), "num": 1000000, "key_size": 16, "value_size": 100,
                     "durability": "process", "rounds": rounds, "seed": 42},
        "engines": [{"name": name, "label": label, "kind": name, "version": f"{label} 1.2.3",
                     "tuning": "default", "note": None} for name, label in labels.items()],
        "agreements": [{"round": 1, "step": 3, "workload": "readrandom", "engines": list(speeds),
                        "agree": True}],
        "runs": runs, "comparison": [],
    }


def hostile():
    """The same with markup for every name, measured elsewhere: another comparison."""
    text = json.dumps(report(seed=8, rounds=1))
    data = json.loads(text)
    data["machine"]["processor"] = HOSTILE
    data["settings"][HOSTILE] = HOSTILE
    data["rules"] = [HOSTILE]
    data["complete"], data["stopped"] = False, HOSTILE
    for engine in data["engines"]:
        engine["label"] = engine["label"] + HOSTILE
    for run in data["runs"]:
        for workload in run["workloads"]:
            workload["name"] += HOSTILE
    return data


def expected(data, measure, more_is_better):
    """The figures of the summary: {workload: {engine: (ours, theirs, ratio, mark)}}."""
    rounds = {}
    for run in data["runs"]:
        for workload in run["workloads"]:
            value = workload.get("seconds" if workload["maintenance"] else measure)
            if value is not None:
                key = (workload["name"], run["engine"])
                rounds.setdefault(key, []).append((value, workload.get("batched_instead", False)))
    table = {}
    for (workload, engine), values in rounds.items():
        if engine == "esker":
            continue
        single = workload == "compact"
        ours = [value for value, _ in rounds[workload, "esker"]]
        theirs = [value for value, _ in values]
        batched = [any(b for _, b in side) for side in (rounds[workload, "esker"], values)]
        a, b = statistics.median(ours), statistics.median(theirs)
        better = a - b if more_is_better and not single else b - a
        ratio = a / b if more_is_better and not single else b / a
        spread = max(max(ours) - min(ours), max(theirs) - min(theirs))
        overlap = min(ours) <= max(theirs) and min(theirs) <= max(ours)
        if batched[0] != batched[1]:
            mark = "other work"
        elif min(len(ours), len(theirs)) < 2:
            mark = "one round"
        elif overlap or abs(better) <= spread:
            mark = "tie"
        else:
            mark = "win" if better > 0 else "loss"
        table.setdefault(workload, {})[engine] = (a, b, ratio, mark)
    return table


# The browser.

# Everything that has text of its own or is drawn, with its colour and what lies behind it.
COLOURS = """
const parse = text => {
  const numbers = text.match(/[\\d.]+/g).map(Number);
  return numbers.length > 3 ? numbers : [...numbers, 1];
};
const behind = element => {
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour[3] > 0.99) return colour;
  }
  return [255, 255, 255, 1];
};
const found = [];
for (const element of document.body.querySelectorAll('*')) {
  if (!element.checkVisibility() || element.closest('.skip')) continue;
  const style = getComputedStyle(element);
  const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  const box = element.getBoundingClientRect();
  if (box.width === 0) continue;
  const drawing = element.ownerSVGElement;
  const name = element.tagName + '.' + element.getAttribute('class') + ' ' + element.textContent.trim().slice(0, 30);
  if (drawing) {
    const behindIt = behind(drawing);
    if (element.tagName === 'text') found.push(['text', name, parse(style.fill), behindIt, box.height]);
    if (element.tagName === 'polyline' && element.getAttribute('opacity') === '1' && !element.matches('[stroke="#D0D0D0"], [stroke="#FFFFFF"]'))
      found.push(['shape', name + element.outerHTML.slice(0, 90), parse(style.stroke), behindIt]);
    if (element.tagName === 'rect' && element.getAttribute('opacity') === '1')
      found.push(['shape', name + element.outerHTML.slice(0, 90), parse(style.fill), behindIt]);
  } else if (own && !['TITLE', 'DESC', 'STYLE'].includes(element.tagName)) {
    found.push(['text', name, parse(style.color), behind(element), 0]);
  }
}
return found;
"""

SEMANTICS = """
const wrong = [];
const all = selector => [...document.querySelectorAll(selector)];
const ids = all('[id]').map(e => e.id);
ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => wrong.push('id twice: ' + id));
for (const name of ['aria-labelledby', 'aria-describedby', 'for'])
  for (const e of all('[' + name + ']'))
    for (const id of e.getAttribute(name).split(' '))
      if (!document.getElementById(id)) wrong.push(name + ' leads nowhere: ' + id);
for (const a of all('a'))
  if (!document.getElementById(decodeURIComponent(a.hash.slice(1)))) wrong.push('link leads nowhere: ' + a.outerHTML);
if (all('h1').length !== 1) wrong.push('not one h1');
if (all('main').length !== 1) wrong.push('not one main');
let level = 0;
for (const h of all('h1,h2,h3,h4,h5,h6')) {
  const now = Number(h.tagName[1]);
  if (now > level + 1) wrong.push('heading skips a level: ' + h.outerHTML);
  level = now;
}
for (const svg of all('svg')) {
  if (svg.getAttribute('aria-hidden') === 'true') continue;
  const title = svg.querySelector(':scope > title'), desc = svg.querySelector(':scope > desc');
  if (svg.getAttribute('role') !== 'img' || !title?.textContent || !desc?.textContent)
    wrong.push('picture without text: ' + svg.outerHTML.slice(0, 120));
}
for (const table of all('table')) {
  if (!table.caption?.textContent) wrong.push('table without caption');
  for (const th of table.querySelectorAll('th')) if (!th.scope) wrong.push('th without scope: ' + th.outerHTML);
  const columns = new Set([...table.rows].map(row => row.cells.length));
  if (columns.size !== 1) wrong.push('table with ragged rows: ' + table.caption.textContent);
  if (!table.closest('.scroll')) wrong.push('table outside of a box that scrolls');
}
for (const list of all('ul,ol')) for (const item of list.children) if (item.tagName !== 'LI') wrong.push('no li: ' + item.tagName);
for (const input of all('input')) if (!input.labels.length) wrong.push('input without label');
for (const mark of all('.mark')) if (!/win|loss|tie|one round|other work/.test(mark.textContent)) wrong.push('mark without word');
for (const details of all('details')) if (details.firstElementChild.tagName !== 'SUMMARY') wrong.push('details without summary');
for (const section of all('section.workload')) if (!section.querySelector('details table')) wrong.push('pictures without table');
for (const e of all('*')) for (const a of e.attributes) if (a.name.startsWith('on')) wrong.push('handler: ' + a.name);
for (const e of all('[tabindex]')) if (e.tabIndex > 0) wrong.push('tabindex above 0');
if (all('script,iframe,object,embed,img').length) wrong.push('an element that the page must not have');
if (document.documentElement.lang !== 'en') wrong.push('no language');
return wrong;
"""


def luminance(colour):
    def linear(channel):
        channel /= 255
        return channel / 12.92 if channel <= 0.03928 else ((channel + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(channel) for channel in colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="esker-page-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.data = report()
        fresh = subprocess.run(
            [ARGS.esker, "bench", "--json", "--engine", "esker,mem", "--rounds", "2", "--num", "5000"],
            check=True, capture_output=True, text=True,
        ).stdout
        cls.pages = {
            "made": cls.page("made", cls.data),
            "hostile": cls.page("hostile", cls.data, hostile()),
            "fresh": cls.page("fresh", json.loads(fresh)),
        }
        cls.fresh = json.loads(fresh)
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or "chromium"
        for flag in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]:
            options.add_argument(flag)
        options.add_argument(f"--user-data-dir={cls.dir / 'profile'}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = Service(shutil.which("chromedriver") or "chromedriver")
        cls.browser = webdriver.Chrome(service=service, options=options)
        cls.addClassCleanup(cls.browser.quit)

    @classmethod
    def page(cls, name, *reports):
        files = []
        for i, data in enumerate(reports):
            files.append(cls.dir / f"{name}-{i}.json")
            files[-1].write_text(json.dumps(data))
        out = cls.dir / f"{name}.html"
        subprocess.run([ARGS.esker, "bench", "report", *files, "--out", out], check=True)
        return out

    def open(self, name="made", scheme="light", width=1280, height=900, mobile=False):
        cdp = self.browser.execute_cdp_cmd
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        cdp("Emulation.setEmulatedMedia", {"features": media})
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        cdp("Emulation.setDeviceMetricsOverride", metrics)
        self.browser.get(self.pages[name].as_uri())

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def test_it_loads_without_a_complaint_or_a_request(self):
        for name, path in self.pages.items():
            for kind in ("browser", "performance"):
                self.browser.get_log(kind)
            self.open(name)
            self.assertEqual(self.browser.get_log("browser"), [], name)
            requests = []
            for entry in self.browser.get_log("performance"):
                message = json.loads(entry["message"])["message"]
                if message["method"] == "Network.requestWillBeSent":
                    requests.append(message["params"]["request"]["url"])
            self.assertIn(path.as_uri(), requests)
            others = [url for url in requests if url != path.as_uri() and not url.startswith("data:")]
            self.assertEqual(others, [], name)
            self.assertNotEqual(self.browser.title, "broken")

    def test_markup_in_names_is_text(self):
        self.open("hostile")
        self.assertTrue(self.browser.title.startswith("Benchmark of"))
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "script, img"), [])
        self.assertIn("<script>", self.browser.find_element(By.TAG_NAME, "main").text)
        self.assertEqual(len(self.browser.find_elements(By.TAG_NAME, "article")), 2)

    def summary(self, measure):
        """The table of a measure as the page shows it."""
        rows = self.script(
            """
            const table = document.querySelector(`table.summary[data-measure="${arguments[0]}"]`);
            return [...table.tBodies[0].rows].map(row => [
              row.dataset.workload, row.cells[1].querySelector('data')?.value,
              Object.fromEntries([...row.cells].slice(2).map(cell => [cell.dataset.engine, [
                cell.querySelector('.figure')?.value, cell.querySelector('.ratio')?.value,
                cell.querySelector('.mark')?.textContent, cell.querySelector('.ratio')?.textContent]]))]);
            """,
            measure,
        )
        return {workload: (ours, engines) for workload, ours, engines in rows}

    def check_summary(self, name, table, wanted):
        counted = 0
        for workload, engines in wanted.items():
            ours, shown = table[workload]
            for engine, (a, b, ratio, mark) in engines.items():
                theirs, shown_ratio, shown_mark, text = shown[engine]
                where = f"{name}: {workload} {engine}"
                self.assertAlmostEqual(float(ours) / a, 1, 9, where)
                self.assertAlmostEqual(float(theirs) / b, 1, 9, where)
                self.assertTrue(shown_mark.endswith(mark), f"{where}: {shown_mark}, not {mark}")
                if mark == "other work":
                    self.assertIsNone(shown_ratio, "what is not compared has no ratio")
                    counted += 1
                    continue
                self.assertAlmostEqual(float(shown_ratio) / ratio, 1, 9, where)
                rounded = float(text.strip("×").replace(",", ""))
                self.assertLess(abs(rounded / ratio - 1), 0.06, where)
                counted += 1
        self.assertEqual(set(table), set(wanted), name)
        return counted

    def test_the_figures_are_those_of_the_json(self):
        self.open("made")
        speed = expected(self.data, "ops_per_second", True)
        marks = {mark for engines in speed.values() for *_, mark in engines.values()}
        self.assertEqual(marks, {"win", "loss", "tie", "other work"}, "the reports show every mark")
        self.assertEqual(self.check_summary("made", self.summary("Speed"), speed), 15)
        cpu = self.summary("CPU time for an operation")
        wanted = expected(self.data, "cpu_us_per_op", False)
        wanted.pop("compact")
        cpu.pop("compact")
        self.check_summary("cpu", cpu, wanted)
        stores = [marks[engine] for marks in speed.values() for engine in ("rocksdb", "lmdb")]
        for word, mark in [("wins", "win"), ("losses", "loss"), ("ties", "tie")]:
            number = sum(1 for *_, found in stores if found == mark)
            score = self.browser.find_element(By.CSS_SELECTOR, f"ul.score .{mark}").text
            self.assertIn(f"{number} {word}", " ".join(score.split()))
        losses = sum(1 for *_, found in stores if found == "loss")
        told = self.browser.find_elements(By.CSS_SELECTOR, "ul.losses")[0]
        self.assertEqual(len(told.find_elements(By.TAG_NAME, "li")), losses)
        self.open("fresh")
        speed = expected(self.fresh, "ops_per_second", True)
        self.check_summary("fresh", self.summary("Speed"), speed)

    def test_all_figures_of_a_workload_are_in_its_table(self):
        self.open("made")
        shown = self.script(
            """return [...document.querySelector('section.workload details table').tBodies[0].rows].map(
                 row => [row.cells[0].textContent, [...row.cells].slice(1).map(cell => cell.querySelector('data')?.value)])"""
        )
        shown = dict(shown)
        for heading, path in {
            "99th percentile of latency, µs": ("latency", "p99_us"),
            "Context switches for an operation": ("context_switches_per_op",),
            "Write amplification": ("write_amplification_since_open",),
            "Space amplification": ("space_amplification",),
        }.items():
            for column, engine in enumerate(["esker", "rocksdb", "lmdb", "mem"]):
                values = []
                for run in self.data["runs"]:
                    if run["engine"] == engine:
                        value = run["workloads"][0]
                        for key in path:
                            value = value[key]
                        values.append(value)
                if values[0] is None:
                    self.assertIsNone(shown[heading][column])
                else:
                    self.assertAlmostEqual(float(shown[heading][column]), statistics.median(values), 9)

    def test_no_page_is_wider_than_a_telephone(self):
        for name in self.pages:
            for width in (320, 360, 768):
                self.open(name, width=width, height=780, mobile=True)
                self.script("document.querySelectorAll('details').forEach(d => d.open = true)")
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

    def test_contrast_in_light_and_dark(self):
        grounds = {}
        for scheme in ("light", "dark"):
            self.open("made", scheme=scheme)
            self.script("document.querySelectorAll('details').forEach(d => d.open = true)")
            found = self.script(COLOURS)
            self.assertGreater(len([one for one in found if one[0] == "text"]), 200)
            self.assertGreater(len([one for one in found if one[0] == "shape"]), 20)
            for kind, name, colour, ground, *_ in found:
                least = TEXT_CONTRAST if kind == "text" else SHAPE_CONTRAST
                ratio = contrast(colour, ground)
                self.assertGreaterEqual(ratio, least, f"{scheme}: {name}: {colour} on {ground}")
            grounds[scheme] = self.script("return getComputedStyle(document.body).backgroundColor")
        light, dark = (
            luminance([int(n) for n in grounds[s].strip("rgb()").split(",")]) for s in ("light", "dark")
        )
        self.assertGreater(light, 0.7)
        self.assertLess(dark, 0.05)

    def test_the_keyboard_reaches_everything(self):
        self.open("made")
        controls = self.script(
            """
            const reachable = [...document.querySelectorAll('a, summary, input:checked, [tabindex]')];
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
            self.assertEqual(self.script(SEMANTICS), [], name)

    def test_pictures_are_kept(self):
        if ARGS.screenshots is None:
            self.skipTest("--screenshots was not given")
        ARGS.screenshots.mkdir(parents=True, exist_ok=True)
        for name, scheme, width in [("light", "light", 1280), ("dark", "dark", 1280), ("phone", "light", 360)]:
            self.open("made", scheme=scheme, width=width, mobile=width < 500)
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
    parser.add_argument("--screenshots", type=pathlib.Path, help="where to write pictures")
    ARGS, rest = parser.parse_known_args()
    ARGS.esker = ARGS.esker.resolve()
    unittest.main(argv=sys.argv[:1] + rest)
