#!/usr/bin/env python3
"""dflow-launch runs tasks, shows their lines, passes signals on, ends as it says, and leaves nobody behind.

DFLOW_LAUNCH names the program.
"""

import os
import pty
import re
import select
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

LAUNCH = os.environ.get("DFLOW_LAUNCH", "dflow-launch")
LIMIT = 60  # seconds, for what must end


def python(code):
    """A program of Python that knows its flags and its task: argv, job, index."""
    head = (
        "import os, signal, sys, time\n"
        "flags = dict(a.lstrip('-').split('=', 1) if '=' in a else (a, '') for a in sys.argv[1:] if a.startswith('--'))\n"
        "job, index = flags['dflow_job'], int(flags['dflow_task'])\n"
    )
    return [sys.executable, "-u", "-c", head + code]


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class DflowLaunch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = dict(os.environ, TMPDIR=self.folder)

    def launch(self, flags, program):
        return subprocess.run([LAUNCH, *flags, "--", *program], capture_output=True, text=True, timeout=LIMIT,
                              env=self.environment)  # fmt: skip

    def start(self, flags, program):
        run = subprocess.Popen([LAUNCH, *flags, "--", *program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=self.environment)  # fmt: skip
        self.addCleanup(run.stdout.close)
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.wait, LIMIT)
        self.addCleanup(run.kill)
        return run

    def pids_of(self, run, count):
        """Reads lines '... pid N' of a launcher until there are `count`."""
        pids = []
        while len(pids) < count:
            line = run.stdout.readline()
            self.assertTrue(line, "the launcher ended early")
            pids += [int(pid) for pid in re.findall(r"pid (\d+)", line)]
        return pids

    def assert_gone(self, pids):
        # The end of a killed process is the kernel's business; a pidfd waits for it.
        for pid in pids:
            for _ in range(LIMIT * 10):
                if not is_alive(pid):
                    break
                try:
                    waiter = os.pidfd_open(pid)
                except ProcessLookupError:
                    break
                try:
                    select.select([waiter], [], [], 0.1)
                finally:
                    os.close(waiter)
            self.assertFalse(is_alive(pid), f"process {pid} is left")

    def test_tasks_get_their_flags(self):
        run = self.launch(["--ps", "1", "--workers", "2", "--dry-run"], ["prog", "--x=1", "it's; $HOME"])
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = run.stdout.splitlines()
        self.assertEqual([line.split(":")[0] for line in lines], ["ps 0", "worker 0", "worker 1"])
        name, command = lines[2].split(": ", 1)
        words = shlex.split(command)
        self.assertEqual(words[:3], ["prog", "--x=1", "it's; $HOME"])
        self.assertRegex(words[3], r"^--dflow_cluster=ps=127\.0\.0\.1:\d+;worker=127\.0\.0\.1:\d+,127\.0\.0\.1:\d+$")
        self.assertEqual(words[4:], ["--dflow_job=worker", "--dflow_task=1", "--dflow_secret_file=SECRET"])
        self.assertEqual(len(set(re.findall(r"127\.0\.0\.1:\d+", lines[0]))), 3)

    def test_the_flags_of_tasks_are_its_own_too_and_others_are_told(self):
        for flag in ("--secret-file", "--secret_file"):
            run = self.launch([flag, "/some/where", "--dry-run"], ["prog"])
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("--dflow_secret_file=/some/where", run.stdout)
        run = self.launch(["--on-failure", "never"], ["prog"])
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("--on-failure: never not in {stop,continue,restart}", run.stderr)

    def test_each_line_says_whose_it_is(self):
        run = self.launch(["--ps", "0", "--workers", "2", "--insecure"],
                          python("print('one', index); print('two', file=sys.stderr); sys.stdout.write('no end')"))  # fmt: skip
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(run.stdout.splitlines()),
                         ["[worker 0] no end", "[worker 0] one 0", "[worker 1] no end", "[worker 1] one 1"])  # fmt: skip
        self.assertEqual(sorted(run.stderr.splitlines()), ["[worker 0] two", "[worker 1] two"])

    def test_the_secret_is_private_and_removed(self):
        code = "s = os.stat(flags['dflow_secret_file']); print(oct(s.st_mode), s.st_size, flags['dflow_secret_file'])"
        run = self.launch(["--ps", "0"], python(code))
        mode, size, path = run.stdout.split("] ")[1].split()
        self.assertEqual(stat.S_IMODE(int(mode, 8)), 0o600)
        self.assertEqual(int(size), 65)
        self.assertTrue(path.startswith(self.folder))
        self.assertFalse(os.path.exists(path))

    def test_parameter_servers_end_with_the_last_worker(self):
        run = self.launch(["--ps", "2", "--workers", "2"], python("print('here')\nif job == 'ps': time.sleep(1000)"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr, "")

    def test_the_end_of_the_chief_is_the_end(self):
        code = "if job == 'chief': sys.exit(0)\ntime.sleep(1000)"
        self.assertEqual(self.launch(["--chief", "--evaluator"], python(code)).returncode, 0)

    def test_a_failure_stops_all_and_is_the_result(self):
        code = "if job == 'worker' and index == 1: sys.exit(7)\ntime.sleep(1000)"
        run = self.launch(["--workers", "3"], python(code))
        self.assertEqual(run.returncode, 7)
        self.assertIn("[worker 1] ended with status 7", run.stderr)
        run = self.launch(["--ps", "0"], python("os.kill(os.getpid(), signal.SIGSEGV)"))
        self.assertEqual(run.returncode, 128 + signal.SIGSEGV)
        self.assertIn("ended by signal 11", run.stderr)

    def test_the_others_may_go_on(self):
        code = "if index == 0: sys.exit(3)\nprint('done')"
        run = self.launch(["--ps", "0", "--workers", "3", "--on-failure=continue"], python(code))
        self.assertEqual(run.returncode, 3)
        self.assertEqual(run.stdout.count("done"), 2)

    def test_a_task_may_be_started_again(self):
        code = (
            f"path = {self.folder!r} + '/runs'\n"
            "runs = os.path.getsize(path) if os.path.exists(path) else 0\n"
            "open(path, 'a').write('x')\n"
            "if runs < 2: sys.exit(5)\n"
            "print('third run')"
        )
        run = self.launch(["--ps", "0", "--on-failure=restart"], python(code))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr.count("is started again"), 2)
        self.assertIn("third run", run.stdout)
        run = self.launch(["--ps", "0", "--on-failure=restart", "--max-restarts=1"], python("sys.exit(5)"))
        self.assertEqual(run.returncode, 5)

    def test_signals_reach_all_tasks(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            code = (
                "def stop(number, frame):\n  print('got', number); sys.exit(0)\n"
                "signal.signal(signal.SIGTERM, stop); signal.signal(signal.SIGINT, stop)\n"
                "print('pid', os.getpid()); time.sleep(1000)"
            )
            run = self.start(["--workers", "2"], python(code))
            pids = self.pids_of(run, 3)
            run.send_signal(number)
            output = run.communicate(timeout=LIMIT)[0]
            self.assertEqual(run.returncode, 128 + number)
            self.assertEqual(output.count(f"got {int(number)}"), 3)
            self.assert_gone(pids)

    def test_who_ignores_the_end_is_killed_after_the_grace_time(self):
        code = (
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('pid', os.getpid())\n"
            f"path = {self.folder!r} + '/ready'\n"
            "if job == 'worker':\n  open(path).read(); sys.exit(0)\n"
            "open(path, 'w').close()\ntime.sleep(1000)"
        )
        os.mkfifo(self.folder + "/ready")
        run = self.start(["--grace=0.2"], python(code))
        pids = self.pids_of(run, 2)
        self.assertEqual(run.wait(LIMIT), 0)
        self.assert_gone(pids)

    def test_children_of_tasks_end_with_them(self):
        code = (
            "child = os.fork()\n"
            "if child == 0:\n  signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)\n"
            "print('pid', child)\n"
        )
        run = self.start(["--ps", "0"], python(code))
        pids = self.pids_of(run, 1)
        self.assertEqual(run.wait(LIMIT), 0)
        self.assert_gone(pids)

    def test_nobody_is_left_when_the_launcher_is_killed(self):
        code = (
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "child = os.fork()\n"
            "if child == 0: time.sleep(1000)\n"
            "print('pid', os.getpid(), 'and pid', child); time.sleep(1000)"
        )
        run = self.start(["--workers", "2"], python(code))
        pids = self.pids_of(run, 6)
        self.assertEqual(sum(map(is_alive, pids)), 6)
        run.kill()
        run.wait(LIMIT)
        self.assert_gone(pids)

    def test_what_cannot_run_is_said(self):
        run = self.launch(["--ps", "0"], ["/nowhere/at/all"])
        self.assertEqual(run.returncode, 127)
        self.assertIn("cannot run /nowhere/at/all: No such file", run.stderr)
        self.assertNotEqual(self.launch(["--ps", "0", "--workers", "0"], ["true"]).returncode, 0)

    def test_a_terminal_shows_colours(self):
        master, slave = pty.openpty()
        run = subprocess.Popen([LAUNCH, "--ps", "0", "--", *python("print('hello')")], stdout=slave, stderr=slave,
                               env=self.environment)  # fmt: skip
        os.close(slave)
        shown = b""
        try:
            while part := os.read(master, 4096):
                shown += part
        except OSError:  # the other end is closed
            pass
        os.close(master)
        self.assertEqual(run.wait(LIMIT), 0)
        self.assertIn(b"\x1b[36m[worker 0]\x1b[0m hello", shown)


if __name__ == "__main__":
    unittest.main()
