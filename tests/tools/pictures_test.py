#!/usr/bin/env python3
"""tools/pictures.py: the picture of the README has the figures of benchmarks/README.md, and each op of a trace is drawn."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import pictures  # noqa: E402

CONTEST = """jax: sits out, give --jax PYTHON
training, threads: 2, rounds: 9 of 100 ms
tiny sgd                                       dflow      0.004 ms       one thread 0.004 (1.02) torch 0.265 (69.05) \
tensorflow xla 0.2 (56.45)  best 56.45  must 6  aim 15
lstm sgd                                       dflow     86.127 ms       torch 90.825 (1.10)  best 1.10  must 0.9  aim 1.2 (0.92 of it)
PyTorch runs eagerly.
"""


def event(name, tid, ts, dur, pid=0):
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": {"node": name.lower()}}


class Pictures(unittest.TestCase):
    def test_picture_of_the_speed_is_current(self):
        rows = pictures.rows_of_figures((ROOT / "benchmarks/README.md").read_text())
        self.assertEqual(pictures.draw_speed(rows), (ROOT / "docs/pictures/speed.svg").read_text(),
                         "tools/pictures.py speed >docs/pictures/speed.svg draws it anew")

    def test_pictures_are_small(self):
        for picture in (ROOT / "docs/pictures").iterdir():
            self.assertLess(picture.stat().st_size, 150_000, picture.name)

    def test_rows_of_a_contest(self):
        self.assertEqual(list(pictures.rows_of_contest(CONTEST)),
                         [("tiny sgd", "training", "XLA", 56.45), ("lstm sgd", "training", "PyTorch", 1.10)])

    def test_ops_of_a_lane_do_not_overlap(self):
        events = [event("A", 0, 0, 5), event("B", 0, 4, 3), event("_Recv", 0, 0, 9), event("C", 0, 5, 1), event("D", 1, 6, 1)]
        names = [[one["name"] for one in lane] for lane in pictures.lanes_of(events)]
        self.assertEqual(names, [["A", "C"], ["B"], ["D"], ["_Recv"]])

    def test_every_op_of_a_trace_is_drawn(self):
        tasks = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"/job:ps/replica:0/task:{pid}"}} for pid in (1, 0)]
        drawn = pictures.draw_step({"traceEvents": [*tasks, event("A<B>", 0, 10, 5), event("C", 0, 12, 1, pid=1)]})
        self.assertIn("<title>a&lt;b&gt;: 5.0 us</title>", drawn)
        self.assertIn("<title>c: 1.0 us</title>", drawn)
        self.assertLess(drawn.index("/job:ps/task:0"), drawn.index("/job:ps/task:1"))


if __name__ == "__main__":
    unittest.main()
