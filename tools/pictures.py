#!/usr/bin/env python3
"""Draws the pictures of README.md, in docs/pictures/.

usage: tools/pictures.py speed [CONTEST...] >docs/pictures/speed.svg
       tools/pictures.py step TRACE >docs/pictures/step.svg
       tools/pictures.py tensorboard PROGRAM LOGS PICTURE

speed        How many times as fast as the fastest peer dflow is, a bar a row. CONTEST are files with the output of
             benchmarks/contest.py, all of whose rows are drawn. Without a file: rows of the table "Figures" in benchmarks/README.md,
             which contest.py measured on an idle machine.
step         The ops of one step, by tasks and threads, of a Chrome trace: `scripts/demo --trace TRACE`.
tensorboard  What TensorBoard shows of the event files in LOGS, for example those of examples/16_tensorboard.cpp: PROGRAM is
             TensorBoard (`pip install tensorboard "setuptools<81"`). Needs Chromium, which runs without a screen.
"""

import json
import math
import re
import subprocess
import sys
import time
import urllib.request
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FONT = "font-family='Helvetica, Arial, sans-serif'"
COLORS = {"training": "#2f6fb5", "graphs": "#6a8d3a", "input": "#b5762f", "kernels": "#7a5aa6", "cluster": "#a63d57"}

# Rows of the table of figures: the beginning of a row there, which of the ratios between slashes, a name and a group.
FIGURES = [
    ("tiny 16-16-10 training step", 0, "tiny model, SGD", "training"),
    ("MLP 784-512-512-10, SGD", 0, "MLP 784-512-512-10, SGD", "training"),
    ("the same with Adam", 0, "MLP 784-512-512-10, Adam", "training"),
    ("LeNet-like", 0, "LeNet, batch 64, SGD", "training"),
    ("LSTM of 256 units", 0, "LSTM of 256 units, SGD", "training"),
    ("batches of 64 records", 0, "batches of 64 records, read and shuffled", "input"),
    ("MLP trained from such batches", 0, "MLP trained from such batches", "input"),
    ("null chain", 0, "10,000 nodes, one behind the other", "graphs"),
    ("null random graph", 0, "10,000 nodes, a random graph", "graphs"),
    ("an iteration of a loop", 0, "a loop in the graph", "graphs"),
    ("first run of a graph", 0, "first run of a graph of 10,000 nodes", "graphs"),
    ("matrix products 256 to 2048", 0, "matrix products", "kernels"),
    ("convolution forward, 16 channels and more", 0, "convolutions", "kernels"),
    ("max pool forward", 0, "max pool", "kernels"),
    ("batch norm forward", 0, "batch normalisation", "kernels"),
    ("row / column sums", 0, "row sums", "kernels"),
    ("transpose [4096,4096]", 0, "transpose", "kernels"),
    ("gather / scatter-add", 0, "gather", "kernels"),
    ("null step, scalar, 1 x 1", 1, "null step, scalars, 4 servers x 4 workers", "cluster"),
    ("null step, 32 sparse rows", 1, "null step, 32 rows, 4 servers x 4 workers", "cluster"),
    ("null step, dense, 1 x 1", 1, "null step, 100 MB, 4 servers x 4 workers", "cluster"),
]


def rows_of_figures(page):
    """(name, group, peer, ratio) of each row of FIGURES. Of a range the lower end counts."""
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    for begin, place, name, group in FIGURES:
        found = [cells for cells in table if cells[0].startswith(begin) and len(cells) == 5]
        if not found:
            sys.exit(f"pictures: benchmarks/README.md has no row {begin!r}")
        _, _, peers, ratios, _ = found[0]
        ratio = float(re.match(r"[\d.]+", ratios.split(" / ")[place].strip())[0])
        yield name, group, re.match(r"[A-Za-z]+", peers)[0], ratio


def rows_of_contest(text):
    """The same of the output of benchmarks/contest.py."""
    group = re.search(r"^(\w+), threads: ", text, re.MULTILINE)[1]
    for line in text.splitlines():
        match = re.match(r"(.+?)\s+dflow\s+[\d.]+ \S+\s+(.*?)\s+best ([\d.]+)", line)
        if not match:
            continue
        sides = re.findall(r"([a-z][\w ]*?) [\d.]+ \(([\d.]+)\)", match[2], re.IGNORECASE)
        peers = [(float(ratio), side) for side, ratio in sides if side not in ("one thread", "dflow over TCP")]
        names = {"tensorflow": "TensorFlow", "tensorflow xla": "XLA", "jax": "JAX", "torch": "PyTorch", "tbb": "oneTBB", "sockets": "sockets"}
        yield match[1], {"dispatch": "graphs"}.get(group, group), names.get(min(peers)[1], min(peers)[1]), float(match[3])


def text(x, y, content, size=12, color="#222", anchor="start", more=""):
    return f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' fill='{color}' text-anchor='{anchor}' {more}>{escape(content)}</text>"


def svg(width, height, parts):
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {width} {height}' {FONT}>\n"
            f"<rect width='{width}' height='{height}' fill='#fff'/>\n" + "\n".join(parts) + "\n</svg>\n")


def draw_speed(rows):
    rows = list(rows)
    left, right, top, step, width = 290, 110, 66, 19, 860
    low, high = 0.5, max(100.0, 1.2 * max(ratio for *_, ratio in rows))

    def x(ratio):
        return left + (width - left - right) * math.log(ratio / low) / math.log(high / low)

    height = top + step * len(rows) + 12
    parts = [text(16, 24, "Speed beside the fastest peer of each row", 16, more="font-weight='bold'"),
             text(16, 42, "One thread a process. Right of the line 1x dflow is faster; the axis is logarithmic.", 11, "#666")]
    at = width - 16
    for group in reversed([group for group in COLORS if any(group == row[1] for row in rows)]):
        parts.append(text(at, 24, group, 11, COLORS[group], "end", "font-weight='bold'"))
        at -= 7.5 * len(group) + 12
    for mark in (0.5, 1, 2, 5, 10, 20, 50, 100):
        if mark <= high:
            parts.append(f"<line x1='{x(mark):.1f}' y1='{top - 2}' x2='{x(mark):.1f}' y2='{height - 10}' "
                         f"stroke='{'#444' if mark == 1 else '#ddd'}'/>")
            parts.append(text(x(mark), top - 6, f"{mark:g}x", 10, "#666", "middle"))
    for i, (name, group, peer, ratio) in enumerate(rows):
        y = top + step * i
        begin, end = sorted((x(1), x(ratio)))
        parts.append(text(left - 10, y + 13, name, 12, anchor="end"))
        parts.append(f"<rect x='{begin:.1f}' y='{y + 3}' width='{max(end - begin, 1):.1f}' height='{step - 6}' "
                     f"fill='{COLORS.get(group, '#555')}'/>")
        parts.append(text(max(end, x(1)) + 6, y + 13, f"{ratio:g}x  {peer}", 11, "#444"))
    return svg(width, height, parts)


def lanes_of(events):
    """Events by lanes, in none of which two overlap; ops of a thread stay together, and waits for tensors come last."""
    lanes = []
    for key in sorted({(event["name"] == "_Recv", event["tid"]) for event in events}):
        own = []
        for event in sorted(events, key=lambda event: event["ts"]):
            if (event["name"] == "_Recv", event["tid"]) != key:
                continue
            lane = next((lane for lane in own if lane[-1]["ts"] + lane[-1]["dur"] <= event["ts"]), None)
            if lane is None:
                own.append([event])
            else:
                lane.append(event)
        lanes += own
    return lanes


def color_of(name):
    """The same for one op everywhere; grey for waits."""
    if name in ("_Recv", "_Send"):
        return "#c9ced6" if name == "_Recv" else "#8f99a8"
    hue = sum(ord(letter) * (i + 7) for i, letter in enumerate(name)) * 47 % 360
    return f"hsl({hue},52%,62%)"


def draw_step(trace):
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    tasks = {event["pid"]: event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "process_name"}
    ops = [event for event in events if event["ph"] == "X"]
    begin = min(event["ts"] for event in ops)
    span = max(event["ts"] + event["dur"] for event in ops) - begin
    left, width, y = 12, 860, 70
    scale = (width - 2 * left) / span
    parts = [text(left, 24, "One step of a cluster", 16, more="font-weight='bold'"),
             text(left, 42, "Every op of the step on each task, as Perfetto shows the trace file. Grey: waits for tensors, and sending them.", 11, "#666")]
    unit = next(unit for unit in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if span / 1000 / unit < 12)
    marks = [unit * i for i in range(int(span / 1000 / unit) + 1)]
    boxes = []
    for pid in sorted(tasks, key=tasks.get):
        boxes.append(text(left, y + 11, re.sub(r"/replica:\d+", "", tasks[pid]), 11, more="font-weight='bold'"))
        y += 16
        for lane in lanes_of([event for event in ops if event["pid"] == pid]):
            lane_height = 5 if lane[0]["name"] == "_Recv" else 15
            for event in lane:
                wide = max(event["dur"] * scale, 0.7)
                at = left + (event["ts"] - begin) * scale
                boxes.append(f"<rect x='{at:.1f}' y='{y}' width='{wide:.1f}' height='{lane_height - 1.5}' fill='{color_of(event['name'])}'>"
                             f"<title>{escape(event['args'].get('node', event['name']))}: {event['dur']:.1f} us</title></rect>")
                name = event["name"].lstrip("_")
                if lane_height > 10 and wide > 5.2 * len(name) + 4:
                    boxes.append(text(at + 3, y + 10, name, 9))
            y += lane_height
        y += 8
    for mark in marks:
        at = left + 1000 * mark * scale
        parts.append(f"<line x1='{at:.1f}' y1='62' x2='{at:.1f}' y2='{y}' stroke='#e4e4e4'/>")
        parts.append(text(at, 60, f"{mark:g} ms", 9, "#666", "start" if at < width - 40 else "end"))
    return svg(width, y + 4, parts + boxes)


def show_tensorboard(program, logs, picture):
    port = 16006
    server = subprocess.Popen([program, "--logdir", logs, "--port", str(port), "--load_fast=false"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://localhost:{port}/"
        for _ in range(120):
            try:
                if json.load(urllib.request.urlopen(url + "data/runs")):
                    break
            except OSError:
                pass
            time.sleep(0.5)
        subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1160,680",
                        "--virtual-time-budget=30000", f"--screenshot={picture}", url + "#timeseries"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=180)
    finally:
        server.terminate()
        server.wait()


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["speed"]:
        contests = [row for path in arguments[1:] for row in rows_of_contest(Path(path).read_text())]
        sys.stdout.write(draw_speed(contests or rows_of_figures((ROOT / "benchmarks/README.md").read_text())))
    elif arguments[:1] == ["step"] and len(arguments) == 2:
        sys.stdout.write(draw_step(json.loads(Path(arguments[1]).read_text())))
    elif arguments[:1] == ["tensorboard"] and len(arguments) == 4:
        show_tensorboard(*arguments[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
