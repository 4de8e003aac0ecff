"""A side of a contest that benchmarks/contest.py referees; the protocol is that of benchmarks/contestant.hpp."""
import statistics
import sys
import time


class Contestant:
    def __init__(self):
        self.rows = {}
        self.prepared = {}

    def row(self, name, prepare):
        """`prepare()` returns what is timed; it is called when the row is first run."""
        self.rows[name] = prepare, None

    def timed(self, name, measure_seconds):
        """A row that times itself, once per run."""
        self.rows[name] = None, measure_seconds

    def measured(self, name, prepare):
        """A row that times itself for as many seconds as what `prepare()` returns is told; that is closed in the end."""
        self.rows[name] = prepare, "measured"

    def _run(self, name, seconds):
        prepare, measure = self.rows[name]
        if measure == "measured":
            if name not in self.prepared:
                self.prepared[name] = prepare()
            return self.prepared[name](seconds) * 1e9
        if measure:
            return measure() * 1e9
        if name not in self.prepared:
            self.prepared[name] = prepare()
            for _ in range(5):
                self.prepared[name]()
        step = self.prepared[name]
        start = time.perf_counter()
        step()
        once = time.perf_counter() - start
        together = 1 if once > 20e-6 else int(100e-6 / (once + 1e-9)) + 1
        times, begin = [], time.perf_counter()
        while not times or time.perf_counter() - begin < seconds:
            start = time.perf_counter()
            for _ in range(together):
                step()
            times.append((time.perf_counter() - start) / together)
        return statistics.median(times) * 1e9

    def serve(self):
        for line in sys.stdin:
            command, _, rest = line.strip().partition(" ")
            if command == "rows":
                answer = "\t".join(self.rows)
            elif command == "run":
                milliseconds, _, name = rest.partition(" ")
                answer = self._run(name, float(milliseconds) / 1e3)
            else:
                dropped = self.prepared.pop(rest, None)
                if hasattr(dropped, "close"):
                    dropped.close()
                answer = "dropped"
            print(answer, flush=True)
