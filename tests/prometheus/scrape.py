"""Metrics of a running database, as Prometheus scrapes them.

    /usr/bin/python3 tests/prometheus/scrape.py --esker target/release/esker

Needs prometheus (Debian's package of this name). One process writes, `esker serve-metrics` serves its
statistics, and Prometheus scrapes them. Prometheus must find the target up and the writes of the
other process in `esker_puts_total`. Then the writing process is killed: `esker_up` must become 0, and
Prometheus must have no present value of `esker_puts_total` left. All of it lies in a temporary
directory, on ports that are free.
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
CONFIG = """\
global:
  scrape_interval: 1s
  scrape_timeout: 1s
scrape_configs:
  - job_name: esker
    static_configs:
      - targets: ["{target}"]
"""


def free_port():
    """A port that nobody listens on. Prometheus cannot say which port it was given."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Prometheus:
    def __init__(self, program, place, target):
        (place / "prometheus.yml").write_text(CONFIG.format(target=target))
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

    def wait(self, what, holds):
        """Asks until `holds`; a scrape happens once per second and nobody tells of it."""
        while not holds():
            time.sleep(0.2)
        print(f"ok: {what}", flush=True)


def check(esker, program, place):
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
        prometheus = Prometheus(program, place, address)
        running.append(prometheus.process)

        prometheus.wait("the target is up",
                        lambda: any(t["health"] == "up" for t in prometheus.targets()))
        prometheus.wait(f"esker_puts_total is {PUTS}",
                        lambda: prometheus.value("esker_puts_total") == PUTS)
        prometheus.wait("esker_up is 1", lambda: prometheus.value("esker_up") == 1)
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
