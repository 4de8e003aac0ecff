#!/usr/bin/env python3
"""tests/rigs/task_networks.py gives each task of dflow-launch a network and an address of its own, and leaves none behind.

DFLOW_LAUNCH names the launcher.
"""

import argparse
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RIGS = Path(__file__).resolve().parents[2] / "rigs"
sys.path.insert(0, str(RIGS))
import task_networks  # noqa: E402

LAUNCH = os.environ.get("DFLOW_LAUNCH", "dflow-launch")
LIMIT = 60  # seconds, for what must end


def planned(tasks, delay=None, rate=None):
    names = [f"net{task}" for task in range(tasks)]
    return [f"{task}: {command}" for task, command, _ in task_networks.plan(names, delay, rate)]


class Plan(unittest.TestCase):
    def test_each_task_is_joined_to_one_bridge_in_a_network_of_its_own(self):
        self.assertEqual(
            planned(1),
            [
                "None: ip link set lo up",
                "None: ip link add dflow type bridge",
                "None: ip link set dflow up",
                "None: ip link add task0 type veth peer name eth0 netns net0",
                "None: ip link set task0 master dflow up",
                "0: ip link set lo up",
                "0: ip address add 10.77.0.1/16 dev eth0",
                "0: ip link set eth0 up",
            ],
        )
        lines = planned(300)
        self.assertEqual(len(lines), 3 + 5 * 300)
        self.assertEqual(len(set(lines)), len(lines))

    def test_addresses_of_tasks_are_all_different(self):
        hosts = [task_networks.host(task) for task in range(3003)]
        self.assertEqual([hosts[0], hosts[249], hosts[250]], ["10.77.0.1", "10.77.0.250", "10.77.1.1"])
        self.assertEqual(len(set(hosts)), len(hosts))

    def test_what_a_task_sends_is_delayed_slowed_down_or_both(self):
        for delay, rate, command in (
            (5000, None, "netem delay 5000us limit 100000"),
            (5000, 1000, "netem delay 5000us limit 100000 rate 1000bit"),
            (None, 10_000_000, "tbf rate 10000000bit burst 65536 latency 400ms"),
            (None, 8_000_000_000, "tbf rate 8000000000bit burst 10000000 latency 400ms"),
        ):
            self.assertEqual(planned(1, delay, rate)[-1], f"0: tc qdisc add dev eth0 root {command}")

    def test_delays_and_rates_are_numbers_with_units(self):
        for text, us in (("5ms", 5000), ("250us", 250), ("2s", 2_000_000)):
            self.assertEqual(task_networks.delay_us(text), us)
        for text, bits in (("10mbit", 10_000_000), ("1gbit", 1_000_000_000), ("8bit", 8)):
            self.assertEqual(task_networks.bits_per_second(text), bits)
        for text in ("", "5", "ms", "-5ms", "0ms", "5 ms", "5minutes", "9223372036854775807s"):
            with self.assertRaises(argparse.ArgumentTypeError, msg=text):
                task_networks.delay_us(text)


class Networks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        run = self.run_rig([], ["--ps", "0"], ["true"])
        if run.returncode == 2:
            self.skipTest(run.stderr)

    def command(self, flags, launch, program):
        return [sys.executable, str(RIGS / "task_networks.py"), *flags, "--", LAUNCH, *launch, "--", *program]

    def run_rig(self, flags, launch, program):
        environment = dict(os.environ, TMPDIR=self.folder)
        return subprocess.run(self.command(flags, launch, program), capture_output=True, text=True, timeout=LIMIT,
                              env=environment)  # fmt: skip

    # Connects with all other tasks at their addresses, and says in which network it is.
    meet = [
        sys.executable,
        "-u",
        "-c",
        "import os, signal, socket, sys\n"
        "flags = dict(a.lstrip('-').split('=', 1) for a in sys.argv[1:] if '=' in a)\n"
        "jobs = dict(j.split('=', 1) for j in flags['dflow_cluster'].split(';'))\n"
        "all = sorted(a for j in jobs.values() for a in j.split(','))\n"
        "own = jobs[flags['dflow_job']].split(',')[int(flags['dflow_task'])]\n"
        "def place(a): return (a.rsplit(':', 1)[0], int(a.rsplit(':', 1)[1]))\n"
        "listener = socket.create_server(place(own))\n"
        "def join(a):\n"
        "  while True:\n"
        "    try: return socket.create_connection(place(a))\n"
        "    except ConnectionRefusedError: pass\n"
        "out = [join(a) for a in all if a != own]\n"
        "seen = sorted(listener.accept()[1][0] for _ in out)\n"
        "print('net', os.readlink('/proc/self/ns/net'), own.split(':')[0], *seen, 'pid', os.getpid())\n"
        "if sys.argv[1] == 'stay': signal.pause()\n",
    ]

    def test_each_task_has_a_network_and_reaches_the_others(self):
        devices = os.listdir("/sys/class/net")
        run = self.run_rig(["--tasks", "4"], ["--ps", "1", "--workers", "3"], self.meet)
        self.assertEqual(run.returncode, 0, run.stderr)
        met = {own: (net, seen.split()) for net, own, seen in
               re.findall(r"net (\S+) (\S+) ([\d. ]+) pid", run.stdout)}  # fmt: skip
        hosts = [f"10.77.0.{i}" for i in range(1, 5)]
        self.assertEqual(sorted(met), hosts)
        self.assertEqual(len({net for net, _ in met.values()} | {os.readlink("/proc/self/ns/net")}), 5)
        for own, (_, seen) in met.items():
            self.assertEqual(seen, [host for host in hosts if host != own])
        self.assertEqual(os.listdir("/sys/class/net"), devices)

    def test_no_network_is_left_however_the_launcher_ends(self):
        devices = os.listdir("/sys/class/net")
        for end in (signal.SIGINT, signal.SIGKILL):
            with subprocess.Popen(self.command([], [], [*self.meet, "stay"]), stdout=subprocess.PIPE, text=True,
                                  env=dict(os.environ, TMPDIR=self.folder)) as run:  # fmt: skip
                lines = [run.stdout.readline() for _ in range(2)]
                pids = [int(re.search(r"pid (\d+)", line)[1]) for line in lines]
                networks = {re.search(r"net (\S+)", line)[1] for line in lines}
                waiters = [os.pidfd_open(pid) for pid in pids]
                run.send_signal(end)
                run.wait(LIMIT)
                for waiter in waiters:
                    self.assertTrue(select.select([waiter], [], [], LIMIT)[0], "a task is left")
                    os.close(waiter)
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    self.assertNotIn(os.readlink(f"/proc/{pid}/ns/net"), networks)
                except OSError:  # it has ended
                    pass
            self.assertEqual(os.listdir("/sys/class/net"), devices)

    def test_a_task_that_is_killed_comes_back_in_its_network(self):
        code = (
            "readlink /proc/self/ns/net\n"
            f"if [ ! -e {self.folder}/been ]; then touch {self.folder}/been; kill -KILL $$; fi\n"
        )
        run = self.run_rig([], ["--ps", "0", "--on-failure", "restart"], ["sh", "-c", code])
        self.assertEqual(run.returncode, 0, run.stderr)
        first, second = re.findall(r"net:\S+", run.stdout)
        self.assertEqual(first, second)

    def test_a_link_is_slower_where_the_kernel_can_or_a_reason_is_given(self):
        for flags, module in ((["--delay", "5ms"], "sch_netem"), (["--rate", "10mbit"], "sch_tbf")):
            run = self.run_rig(flags, ["--ps", "0"], ["sh", "-c", "ip link show eth0"])
            if run.returncode == 2:
                self.assertIn(module, run.stderr)
            else:
                self.assertIn(module[4:], run.stdout)

    def test_more_tasks_than_networks_are_an_error(self):
        run = self.run_rig(["--tasks", "1"], ["--ps", "0", "--workers", "2"], ["sh", "-c", "sleep 1000"])
        self.assertEqual(run.returncode, 2)
        self.assertIn("there are 1 networks and more tasks", run.stderr)


if __name__ == "__main__":
    unittest.main()
