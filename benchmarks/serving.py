"""A running server: cold start, and throughput and latency of searches under many clients at once.

The clients are `wrk` where it is installed, else a process of asynchronous ones. Run
`python benchmarks/serving.py --home HOME --queries FILE`, with a home that is indexed and queries as JSON lines with
`text`.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import quote

import httpx

MODES = ("vector", "fulltext", "hybrid", "two_step")
_UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


@contextmanager
def server(home: Path) -> Iterator[tuple[str, float]]:
    """Address of a server, and seconds from its start until it was ready."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "rag_assets.cli", "--home", str(home), "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "RAG_SERVE__REQUESTS_PER_MINUTE": "0"},
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[0]
        yield address, time.perf_counter() - began
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stdout.close()


def paths(queries: Sequence[str], mode: str, k: int) -> list[str]:
    """Path and query string of each search."""
    return [f"/api/v1/search?mode={mode}&k={k}&q={quote(query)}" for query in queries]


def load_by_wrk(address: str, asked: Sequence[str], clients: int, seconds: int) -> tuple[float, float, float, int]:
    """Requests a second, median and 99th percentile in milliseconds, and failures."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua", encoding="utf-8") as script:
        script.write(f"local paths = {{{', '.join(map(json.dumps, asked))}}}\nlocal at = 0\n")
        script.write("request = function() at = at % #paths + 1; return wrk.format('GET', paths[at]) end\n")
        script.flush()
        command = ["wrk", "-t", "1", "-c", str(clients), "-d", f"{seconds}s", "--latency", "-s", script.name, address]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", told)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", told)
    assert rate
    return float(rate[1]), _percentile(told, "50%"), _percentile(told, "99%"), int(failed[1]) if failed else 0


def _percentile(told: str, name: str) -> float:
    found = re.search(rf"^\s+{re.escape(name)}\s+([\d.]+)(us|ms|s|m)", told, re.MULTILINE)
    assert found
    return float(found[1]) * _UNITS[found[2]]


async def load_by_clients(
    address: str, asked: Sequence[str], clients: int, seconds: int
) -> tuple[float, float, float, int]:
    """As `load_by_wrk`, by asynchronous clients of this process."""
    times: list[float] = []
    failed = 0
    end = time.perf_counter() + seconds

    async def client(first: int) -> None:
        nonlocal failed
        async with httpx.AsyncClient(base_url=address, timeout=60) as session:
            at = first
            while time.perf_counter() < end:
                began = time.perf_counter()
                response = await session.get(asked[at % len(asked)])
                times.append((time.perf_counter() - began) * 1000)
                failed += response.status_code != 200
                at += clients

    await asyncio.gather(*map(client, range(clients)))
    return len(times) / seconds, median(times), quantiles(times, n=100)[98], failed


def measure(home: Path, queries: Sequence[str], clients: int, seconds: int, k: int, starts: int) -> None:
    """Print cold start, and throughput and latency of each mode."""
    ready = []
    for _ in range(starts - 1):
        with server(home) as (_, took):
            ready.append(took)
    by_wrk = shutil.which("wrk") is not None
    with server(home) as (address, took):
        ready.append(took)
        print(f"ready after {median(ready):.1f} s (median of {len(ready)} starts)")
        for mode in MODES:
            asked = paths(queries, mode, k)
            for path in asked[:4]:
                httpx.get(f"{address}{path}", timeout=60).raise_for_status()
            if by_wrk:
                found = load_by_wrk(address, asked, clients, seconds)
            else:
                found = asyncio.run(load_by_clients(address, asked, clients, seconds))
            rate, p50, p99, failed = found
            print(
                f"{mode:<10} {clients} clients: {rate:7.1f} a second   median {p50:7.1f} ms   99th percentile "
                f"{p99:7.1f} ms = {p99 / p50:.2f} x   {failed} failed"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="Folder of a knowledge base that is indexed.")
    parser.add_argument("--queries", type=Path, required=True, help="JSON lines with `text`.")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=int, default=10, help="Of load for each mode.")
    parser.add_argument("--starts", type=int, default=3, help="Starts of the server.")
    parser.add_argument("-k", type=int, default=10)
    arguments = parser.parse_args()
    queries = [json.loads(line)["text"] for line in arguments.queries.read_text("utf-8").splitlines()]
    measure(arguments.home, queries, arguments.clients, arguments.seconds, arguments.k, arguments.starts)


if __name__ == "__main__":
    main()
