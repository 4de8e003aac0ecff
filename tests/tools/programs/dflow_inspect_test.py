#!/usr/bin/env python3
"""dflow-inspect shows the tasks of a cluster of processes, by text and as JSON, and says which do not answer.

DFLOW_INSPECT names the program, DFLOW_TASK one that is a task of the job "ps" until it is killed.
"""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "rigs"))
from cluster_tasks import free_ports  # noqa: E402

INSPECT = os.environ.get("DFLOW_INSPECT", "dflow-inspect")
TASK = os.environ.get("DFLOW_TASK", "dflow_snippets_distributed")
LIMIT = 60  # seconds, for what must end


class DflowInspect(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        secret = os.path.join(folder.name, "secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(16) + "\n")
        os.chmod(secret, 0o600)
        addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
        self.cluster = ["--dflow_cluster", f"ps={addresses}", "--secret_file", secret]
        self.tasks = [self.start(index) for index in range(2)]

    def start(self, index):
        task = subprocess.Popen([TASK, *self.cluster, "--job", "ps", "--task", str(index)], stderr=subprocess.DEVNULL)
        self.addCleanup(task.wait, LIMIT)
        self.addCleanup(task.kill)
        return task

    def inspect(self, *flags):
        return subprocess.run([INSPECT, *self.cluster, *flags], capture_output=True, text=True, timeout=LIMIT, check=False)

    def inspect_when_all_answer(self, *flags):
        while (run := self.inspect(*flags)).returncode != 0:
            for task in self.tasks:
                self.assertIsNone(task.poll(), "a task has ended")
            self.assertEqual(run.returncode, 1, run.stderr)
        return run.stdout

    def test_all_tasks_answer(self):
        tasks = json.loads(self.inspect_when_all_answer("--json"))["tasks"]
        self.assertEqual([task["task"] for task in tasks], [f"/job:ps/replica:0/task:{i}" for i in range(2)])
        self.assertEqual([task["status"] for task in tasks], ["OK"] * 2)
        self.assertNotEqual(tasks[0]["incarnation"], tasks[1]["incarnation"])
        self.assertEqual(tasks[0]["waits"], [])
        self.assertIn("1 devices, 0 sessions, 0 steps run", self.inspect_when_all_answer())

    def test_one_that_was_killed_does_not(self):
        before = json.loads(self.inspect_when_all_answer("--json"))["tasks"]
        self.tasks[1].kill()
        self.tasks[1].wait(LIMIT)
        run = self.inspect("--json")
        self.assertEqual(run.returncode, 1, run.stderr)
        first, second = json.loads(run.stdout)["tasks"]
        self.assertEqual(first["incarnation"], before[0]["incarnation"])
        self.assertNotEqual(second["status"], "OK")
        self.assertIn("message", second)
        self.tasks[1] = self.start(1)
        after = json.loads(self.inspect_when_all_answer("--json"))["tasks"]
        self.assertNotEqual(after[1]["incarnation"], before[1]["incarnation"])

    def test_containers_are_reset(self):
        self.inspect_when_all_answer()
        run = self.inspect("--reset", "experiment", "--reset", "another")
        dropped = "dflow-inspect: what container '{}' held is dropped on all tasks\n"
        self.assertEqual((run.returncode, run.stderr), (0, dropped.format("experiment") + dropped.format("another")))
        run = self.inspect("--reset", "_files")
        self.assertEqual(run.returncode, 2)
        self.assertIn("the library's own", run.stderr)
        self.tasks[1].kill()
        self.tasks[1].wait(LIMIT)
        run = self.inspect("--reset", "experiment", "--timeout", "1")
        self.assertEqual(run.returncode, 2)
        self.assertIn("1 of 2 tasks are missing, and were not reset: /job:ps/replica:0/task:1", run.stderr)

    def test_logs_are_switched_shown_and_cleared(self):
        def states(*flags):
            return [task["is_on"] for task in json.loads(self.inspect_when_all_answer("--json", "--log", *flags))["tasks"]]

        self.assertEqual(states("show"), [False] * 2)
        self.assertEqual(states("on"), [True] * 2)
        self.assertEqual(states("show", "--steps", "1,2"), [True] * 2)
        self.assertIn("task:1 at ", self.inspect_when_all_answer("--log", "show"))
        self.assertEqual(states("clear"), [True] * 2)
        self.assertEqual(states("off"), [False] * 2)
        self.assertNotEqual(self.inspect("--log", "twice").returncode, 0)
        self.assertNotEqual(self.inspect("--steps", "1").returncode, 0)

    def test_wrong_flags_are_told(self):
        run = subprocess.run([INSPECT, "--dflow_cluster", "nonsense"], capture_output=True, text=True, timeout=LIMIT,
                             check=False)  # fmt: skip
        self.assertEqual(run.returncode, 2)
        self.assertIn("dflow-inspect: ", run.stderr)
        for flags in (["--secret-file", "x"], ["--jsn"], ["extra"]):
            run = self.inspect(*flags)
            self.assertNotIn(run.returncode, (0, 1))
            self.assertIn(flags[0], run.stderr)
        run = self.inspect("--timeout", "0")
        self.assertNotEqual(run.returncode, 0)
        self.assertLess(len(run.stderr), 200)

    def test_no_cluster_is_told(self):
        run = subprocess.run([INSPECT], capture_output=True, text=True, timeout=LIMIT, check=False,
                             env={"PATH": os.environ["PATH"]})  # fmt: skip
        self.assertEqual(run.returncode, 2)
        self.assertIn("no cluster is named", run.stderr)

    def test_the_flags_of_a_task_are_passed_over(self):
        self.inspect_when_all_answer()
        self.inspect_when_all_answer("--job", "ps", "--task=1", "--insecure=false", "--bind", "127.0.0.1:0")


class DflowInspectFile(unittest.TestCase):
    """A file, and what is none."""

    def inspect(self, *arguments):
        return subprocess.run([INSPECT, *arguments], capture_output=True, text=True, timeout=LIMIT, check=False)

    def test_tensors_of_a_file_are_listed_with_types_and_shapes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            header = json.dumps({"w\x1b[31m": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}).encode()
            with open(path, "wb") as file:
                file.write(len(header).to_bytes(8, "little") + header + bytes(8))
            shown = self.inspect(path)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"^tensors\n  w.*: float \[1,2\]\n$")
        self.assertNotIn("\x1b", shown.stdout)

    def test_a_folder_without_a_model_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            shown = self.inspect(folder)
        self.assertEqual(shown.returncode, 2)
        self.assertIn("the folder has no model.json", shown.stderr)


if __name__ == "__main__":
    unittest.main()
