#!/usr/bin/env python3
"""What a task and its clients do over connections that are slow, stalled or half open, and with peers that say nothing.

Usage: tests/links/bad_links_test.py SERVER CLIENT
SERVER is the program of tests/wire/wire_server.cpp, CLIENT that of link_client.cpp.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SERVER, CLIENT = None, None
PROXY = Path(__file__).resolve().parent.parent / "rigs" / "chaos_proxy.py"
SILENCE_MS = 2000
TENSOR_MB = 32
# A window of 8 MiB each way, what the allocators and the system's buffers take, and what goes on beside.
ROOM_MB = 24
PATIENCE = 120  # seconds, for what must end


def resident_megabytes(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * 4096 >> 20


class Lines:
    """A process that answers lines by lines."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)

    def read(self):
        line = self.process.stdout.readline().strip()
        if not line:
            raise AssertionError(f"{self.process.args[0]} has ended")
        return line

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        self.tell(line)
        return self.read()

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


class BadLinks(unittest.TestCase):
    def setUp(self):
        secret = tempfile.NamedTemporaryFile(delete=False)
        secret.write(b"a secret of the test's own\n")
        secret.close()
        self.addCleanup(os.unlink, secret.name)
        self.log = tempfile.TemporaryFile("w+")
        self.addCleanup(self.log.close)
        self.server = self.start([SERVER, secret.name, str(SILENCE_MS)], stderr=self.log)
        self.address = self.server.read().removeprefix("tcp://")
        self.proxy = self.start([sys.executable, str(PROXY), "--listen", "127.0.0.1:0", "--to", self.address])
        listening = self.proxy.read().split()[1]
        client = [CLIENT, listening, secret.name, str(SILENCE_MS)]
        self.client = self.start(client, stderr=self.log)
        self.bystander = self.start([CLIENT, self.address, *client[2:]], stderr=self.log)
        for each in (self.client, self.bystander):
            self.assertEqual(each.read(), "ready")

    def start(self, command, **options):
        process = Lines(command, **options)
        self.addCleanup(process.end)
        return process

    def fault(self, command):
        self.assertEqual(self.proxy.ask(command).split()[0], "ok")

    def others_go_on(self, times=10):
        for _ in range(times):
            self.assertEqual(self.bystander.ask("sum 1 60000").split()[0], "OK")

    def ends_with(self, codes, command):
        """Asks, sees that others go on meanwhile, and returns the client's memory then."""
        self.client.tell(command)
        self.others_go_on()
        code, megabytes, text = self.client.read().split(maxsplit=2)
        self.assertIn(code, codes, text)
        return int(megabytes)

    def recovers(self, command="sum 1 60000"):
        until = time.monotonic() + PATIENCE
        while True:
            answer = self.client.ask(command)
            if answer.startswith("OK"):
                return
            self.assertIn(answer.split()[0], ("UNAVAILABLE", "DEADLINE_EXCEEDED"), answer)
            self.assertLess(time.monotonic(), until, answer)

    def memory(self):
        return resident_megabytes(self.server.process.pid), resident_megabytes(self.client.process.pid)

    def stays_small(self, before, tensors):
        for was, now, who in zip(before, self.memory(), ("the server", "the client")):
            self.assertLess(now, was + tensors * TENSOR_MB + ROOM_MB, f"{who} had {was} MiB, and has {now}")

    def test_a_sender_over_10_kilobytes_a_second_keeps_to_its_window_and_its_deadline(self):
        before = self.memory()
        self.fault("set both bandwidth 10000")
        for _ in range(3):
            self.ends_with(("DEADLINE_EXCEEDED", "UNAVAILABLE"), f"sum {TENSOR_MB} 1500")
            self.stays_small(before, 1)
        self.fault("clear")
        self.fault("cut")
        self.recovers()

    def test_a_task_that_sends_over_10_kilobytes_a_second_keeps_to_its_window(self):
        before = self.memory()
        self.fault("set down bandwidth 10000")
        for _ in range(6):
            self.ends_with(("DEADLINE_EXCEEDED", "UNAVAILABLE"), f"fetch {TENSOR_MB} 1500")
            self.stays_small(before, 2)  # the one whose chunk the system has not taken yet, and that of the step
        self.fault("clear")
        self.fault("cut")
        self.recovers()

    def test_a_peer_that_stops_reading_costs_a_window(self):
        before = self.memory()
        self.fault("set both stall on")
        self.ends_with(("DEADLINE_EXCEEDED",), f"sum {TENSOR_MB} 500")
        self.ends_with(("UNAVAILABLE",), f"fetch {TENSOR_MB} 60000")  # it is given up as silent
        self.stays_small(before, 1)
        self.fault("clear")
        self.recovers()

    def test_a_half_open_connection_is_given_up(self):
        self.fault("half-open")
        self.ends_with(("UNAVAILABLE",), "sum 1 60000")
        self.recovers()
        self.others_go_on()

    def test_five_hundred_that_say_nothing_are_kept_within_a_bound(self):
        descriptors = f"/proc/{self.server.process.pid}/fd"
        before = len(os.listdir(descriptors))
        host, port = self.address.rsplit(":", 1)
        idle = []
        for i in range(500):
            idle.append(socket.create_connection((host, int(port))))
            self.addCleanup(idle[-1].close)
            if i % 50 == 0:
                self.others_go_on(1)
        self.others_go_on()
        self.assertLess(len(os.listdir(descriptors)), before + 256 + 8)
        self.recovers()
        self.log.flush()
        self.log.seek(0)
        self.assertIn("have not proved yet who they are", self.log.read())


if __name__ == "__main__":
    SERVER, CLIENT = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
