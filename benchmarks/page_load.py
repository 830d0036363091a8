"""Load on `scae explore`: one person dragging an object, then 200 at once for a minute.

python benchmarks/page_load.py [--save]
"""

import argparse
import base64
import http.client
import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import machine
from sklearn.datasets import load_digits

OUT = Path(__file__).parents[1] / "results" / "reliability" / "page-load.json"
ALONE = 4  # seconds
DIGITS = load_digits().images


def picture(index: int) -> dict[str, str]:
    """A digit of scikit-learn's, every pixel repeated, padded to 28 x 28."""
    digit = (DIGITS[index] * 255 / 16).astype(np.uint8)
    pixels = np.pad(digit.repeat(3, 0).repeat(3, 1), 2)
    return {"pixels": base64.b64encode(pixels.tobytes()).decode()}


def drag(address: str, token: str, index: int, seconds: float) -> list[tuple[float, bool]]:
    """Explain a picture, then move an object without a pause: time and success of each answer."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    answers, question, until = [], picture(index), time.monotonic() + seconds
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)

    def ask(path: str, body: dict[str, Any]) -> None:
        begin = time.perf_counter()
        try:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            good = bool(response.read()) and response.status == 200
        except (OSError, http.client.HTTPException):
            connection.close()
            good = False
        answers.append((1000 * (time.perf_counter() - begin), good))

    ask("/api/explain", question)
    while time.monotonic() < until:
        place = float(np.sin(len(answers) / 10) / 2)
        moved = [{"object": index % 10, "pose": [0.5, 0, place, 0, 0.5, 0]}]
        ask("/api/move", {"image": question, "moved": moved})
    connection.close()
    return answers


def load(address: str, token: str, clients: int, seconds: float) -> dict[str, Any]:
    """Number of answers and errors, and milliseconds until an answer."""
    with ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(drag, address, token, i, seconds) for i in range(clients)]
        answers = [answer for client in running for answer in client.result()]
    p50, p95 = np.quantile([taken for taken, _ in answers], [0.5, 0.95]).round(1)
    return {
        "clients": clients,
        "seconds": seconds,
        "answers": len(answers),
        "errors": sum(not good for _, good in answers),
        "p50_ms": float(p50),
        "p95_ms": float(p95),
    }


def megabytes(process: int) -> int:
    """Memory of a process, Linux only."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) // 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--model", default="mnist")
    parser.add_argument("--save", action="store_true", help=f"write {OUT.name}")
    options = parser.parse_args()
    command = [sys.executable, "-m", "scae.cli", "explore", options.model, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address, _, token = server.stdout.readline().split()[1].partition("/?token=")
            alone = load(address, token, 1, ALONE)
            before = megabytes(server.pid)
            many = load(address, token, options.clients, options.seconds)
            after = megabytes(server.pid)
        finally:
            server.terminate()
    record = {
        "machine": machine(),
        "command": "python " + " ".join(["benchmarks/page_load.py", *sys.argv[1:]]),
        "model": options.model,
        "alone": alone,
        "together": many,
        "megabytes": {"before": before, "after": after},
    }
    text = json.dumps(record, indent=1)
    print(text)
    if options.save:
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(text + "\n")
    failed = many["errors"] or alone["errors"] or after > 2 * before
    sys.exit("errors, or memory doubled" if failed else 0)


if __name__ == "__main__":
    main()
