"""Metrics of a running database, as Prometheus scrapes them.

    /usr/bin/python3 tests/prometheus/scrape.py --esker target/release/esker

Needs prometheus (Debian's package of this name). One process writes, `esker serve-metrics` serves its
statistics, and Prometheus scrapes them. Prometheus must find the target up and the writes of the
other process in `esker_puts_total`. Then the writing process is killed: `esker_up` must become 0, and
Prometheus must have no present value of `esker_puts_total` left. The configuration, the query and the
alert are those that docs/operations.md shows: the query must have a value, and the alert must be
raised when the process is gone, not before. All of it lies in a temporary directory, on ports that
are free.
"""

import argparse
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

PUTS = 1000
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "operations.md"
# Where `esker serve-metrics` listens if nothing else is said, which the page has.
USUAL = "127.0.0.1:9464"
CONFIG = """\
global:
  scrape_interval: 1s
  scrape_timeout: 1s
  evaluation_interval: 1s
rule_files: [rules.yml]
"""
RULES = """\
groups:
  - name: esker
    rules:
"""


def of_the_page():
    """What docs/operations.md shows: the configuration, the rule of an alert, and a query."""
    text = PAGE.read_text()
    scrape, alert = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert USUAL in scrape, scrape
    # The example waits for a minute, to be sure; nobody has to here.
    alert, changed = re.subn(r"for: \d+m", "for: 1s", alert)
    assert changed == 1, alert
    queries = re.findall(r"^    (rate\(.*\))$", text, re.MULTILINE)
    assert queries, "the page shows no query"
    return scrape, alert, queries


def free_port():
    """A port that nobody listens on. Prometheus cannot say which port it was given."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Prometheus:
    def __init__(self, program, place, target, scrape, alert):
        (place / "prometheus.yml").write_text(CONFIG + scrape.replace(USUAL, target))
        rule = "".join(f"      {line}\n" for line in alert.splitlines())
        (place / "rules.yml").write_text(RULES + rule)
        self.address = f"127.0.0.1:{free_port()}"
        self.log = open(place / "prometheus.log", "w+b")
        self.process = subprocess.Popen(
            [program, f"--config.file={place}/prometheus.yml", f"--storage.tsdb.path={place}/data",
             f"--web.listen-address={self.address}"],
            stdout=self.log, stderr=subprocess.STDOUT,
        )

    def ask(self, path, **parameters):
        """The data of an answer; None as long as Prometheus does not answer yet."""
        if self.process.poll() is not None:
            self.log.seek(0)
            sys.exit(f"Prometheus ended: {self.log.read().decode(errors='replace')}")
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url) as answer:
                return json.load(answer)["data"]
        except (urllib.error.URLError, ConnectionError):
            return None

    def value(self, query):
        """The only value of a query; None if it has none."""
        data = self.ask("query", query=query)
        result = data["result"] if data else []
        return float(result[0]["value"][1]) if result else None

    def targets(self):
        data = self.ask("targets")
        return data["activeTargets"] if data else []

    def alerts(self):
        """The names of the alerts that are raised."""
        data = self.ask("alerts")
        raised = [alert for alert in data["alerts"] if alert["state"] == "firing"] if data else []
        return [alert["labels"]["alertname"] for alert in raised]

    def wait(self, what, holds):
        """Asks until `holds`; a scrape happens once per second and nobody tells of it."""
        while not holds():
            time.sleep(0.2)
        print(f"ok: {what}", flush=True)


def check(esker, program, place):
    scrape, alert, queries = of_the_page()
    (alert_name,) = re.findall(r"alert: (\w+)", alert)
    running = []
    try:
        database = place / "database"
        writer = subprocess.Popen([esker, "shell", database], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        running.append(writer)
        for number in range(PUTS):
            print(f"put key{number} value", file=writer.stdin, flush=True)
            answer = writer.stdout.readline()
            assert answer == "ok\n", answer
        server = subprocess.Popen(
            [esker, "serve-metrics", database, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, text=True)
        running.append(server)
        address = re.fullmatch(r"http://(.*)/metrics\n", server.stdout.readline()).group(1)
        prometheus = Prometheus(program, place, address, scrape, alert)
        running.append(prometheus.process)

        prometheus.wait("the target is up",
                        lambda: any(t["health"] == "up" for t in prometheus.targets()))
        prometheus.wait(f"esker_puts_total is {PUTS}",
                        lambda: prometheus.value("esker_puts_total") == PUTS)
        prometheus.wait("esker_up is 1", lambda: prometheus.value("esker_up") == 1)
        known = prometheus.ask("label/__name__/values")
        unknown = set(re.findall(r"esker_\w+", " ".join([alert, *queries]))) - set(known)
        assert not unknown, f"{PAGE} names {unknown}, which are not there"
        for query in queries:
            prometheus.wait(f"{query} has a value", lambda: prometheus.value(query) is not None)
        assert prometheus.alerts() == [], prometheus.alerts()
        (target,) = prometheus.targets()
        assert target["lastError"] == "", target
        metadata = prometheus.ask("metadata", metric="esker_puts_total") or prometheus.ask(
            "metadata", metric="esker_puts")
        print(f"ok: metadata {json.dumps(metadata)}")
        names = prometheus.ask("label/__name__/values")
        ours = [name for name in names if name.startswith("esker_")]
        print(f"ok: {len(ours)} names of time series, such as {', '.join(ours[:5])}")

        writer.kill()
        writer.wait()
        prometheus.wait("esker_up is 0 after the process was killed",
                        lambda: prometheus.value("esker_up") == 0)
        prometheus.wait(f"the alert {alert_name} is raised",
                        lambda: prometheus.alerts() == [alert_name])
        prometheus.wait("esker_puts_total has no present value",
                        lambda: prometheus.value("esker_puts_total") is None)
        server.terminate()
        assert server.wait() == 0, server.returncode
        print("ok: serve-metrics ended")
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--esker", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    program = shutil.which("prometheus")
    if program is None:
        sys.exit("there is no prometheus: install Debian's package of this name")
    with tempfile.TemporaryDirectory() as place:
        check(arguments.esker.resolve(), program, pathlib.Path(place))


if __name__ == "__main__":
    main()
