#!/usr/bin/env python3
"""Clients that make a task keep bytes for them get no more than its budgets, and others are served meanwhile.

Usage: tests/wire/greedy_test.py [--seconds N] SERVER
SERVER is the program of wire_server.cpp. Prints the largest memory of the server and the rate of another client, before
the attack, during it, and while the greedy clients hold what they have got.
"""

import argparse
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dflow_client as dflow  # noqa: E402

SECRET = b"a secret of the test's own"
MIB = 1 << 20
OF_CLIENT, OF_TASK = 64 * MIB, 256 * MIB
OWN = 80 * MIB  # of the process, of steps (1 MiB for each under way), and blocks that the heap has not given back yet
BLOCK = bytes(1 << 16)
BLOCK_CRC = dflow.crc32c(BLOCK)
KEY = "k" * 65_000
DEVICE = "/job:ps/replica:0/task:0/device:CPU:0"


class Greedy(dflow.Client):
    """Sends long payloads without computing their checksums again."""

    def send_known(self, kind, request, payload, crc, flags=0):
        header = struct.pack("<4sBBHQQI", b"dflw", 1, kind, flags, len(payload), request, crc)
        self.socket.sendall(header + struct.pack("<I", dflow.crc32c(header)) + payload)

    def begin_long(self, method, size, left_out=0):
        """A request with a payload of so many blocks, of which the last are not sent."""
        request = self.next_request
        self.next_request += 1
        self.send(dflow.REQUEST, request, struct.pack("<HQ", method, size * len(BLOCK)))
        for _ in range(size - left_out):
            while self.credit < len(BLOCK):
                self.pump()
            self.credit -= len(BLOCK)
            self.send_known(dflow.CHUNK, request, BLOCK, BLOCK_CRC)


def requests_without_end(client, goes_on):
    while goes_on():
        client.begin_long(dflow.RUN_SESSION, 256, left_out=1)


def replies_that_nobody_takes(client, goes_on):
    dims = dflow.node("dims", "Const", types=[("dtype", dflow.INT32)], attrs=[("value", dflow.tensor_value(dflow.INT32, [1], [1 << 18]))])
    one = dflow.node("one", "Const", types=[("dtype", dflow.FLOAT32)], attrs=[("value", dflow.tensor_value(dflow.FLOAT32, [], [1.0]))])
    fill = dflow.node("fill", "Fill", ["dims:0", "one:0"], types=[("T", dflow.FLOAT32)])
    session, _ = client.create_session([dims, one, fill])
    body = dflow.u64(session) + dflow.i64(0) + b"\0" + dflow.varint(0) + dflow.names(["fill:0"]) + dflow.names([])
    while goes_on():
        client.begin(dflow.RUN_SESSION, body)


def graphs(client, goes_on):
    names = "n" * 60_000
    nodes = dflow.graph([dflow.node(f"{names}{i}", "NoOp") for i in range(4)])
    body = dflow.i64(0) + b"\0" + b"\0" + dflow.names([])
    while goes_on():
        client.begin(dflow.CREATE_SESSION, body, nodes)
        try:
            client.pump()
        except dflow.DflowError:
            return


def dead_tensor(client, step):
    key = f"{client.device};{client.incarnation:x};{DEVICE};{KEY}{client.next_request};:0"
    return dflow.u64(step) + dflow.string(key) + b"\1"


def pushes(client, goes_on):
    """Dead tensors with long keys, to a step that takes none of them."""
    never = client.recv_node("never", dflow.FLOAT32, DEVICE, "never")
    client.register(1, 1, DEVICE, ["never"], [never])
    step = 1 << 40 | client.incarnation & 0xFFFF
    client.start(1, 1, step, [])
    sent = 0
    while goes_on() and sent < 2 * OF_CLIENT:
        client.next_request += 1
        body = struct.pack("<HQ", dflow.PUSH, 0) + dead_tensor(client, step)
        client.send(dflow.REQUEST, client.next_request, body, dflow.IS_POST)
        sent += len(body)


KINDS = [requests_without_end, replies_that_nobody_takes, graphs, pushes]


def attack(port, number, seconds):
    """In a process of its own, and a slow one: it is about memory, and not about the processors of one machine."""
    os.nice(19)
    kind = KINDS[number % len(KINDS)]
    until = time.monotonic() + seconds
    client = Greedy("127.0.0.1", port, SECRET, task=f"/job:client/replica:0/task:{10 + number}", timeout=seconds)
    why = "held all that it could"
    try:
        kind(client, lambda: time.monotonic() < until)
    except (dflow.DflowError, ConnectionError, TimeoutError) as error:
        why = f"{type(error).__name__}: {error}"[:200]
    print(f"{kind.__name__}: {why}", flush=True)
    sys.stdin.read()  # holds it


class Bystander:
    """Calls as fast as it can."""

    def __init__(self, port):
        self.client = dflow.Client("127.0.0.1", port, SECRET, task="/job:client/replica:0/task:1")

    def rate(self, seconds):
        began = time.monotonic()
        calls = 0
        while time.monotonic() < began + seconds:
            assert len(self.client.list_devices()) == 1
            calls += 1
        return calls / (time.monotonic() - began)


def memory(process, field):
    with open(f"/proc/{process.pid}/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    parser.add_argument("server")
    args = parser.parse_args()
    if args.attack:
        port, number = args.attack.split(":")
        return attack(int(port), int(number), args.seconds)
    with tempfile.NamedTemporaryFile() as secret:
        secret.write(SECRET + b"\n")
        secret.flush()
        server = subprocess.Popen(
            [args.server, secret.name, "60000", "127.0.0.1:0", str(OF_CLIENT), str(OF_TASK)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        greedy = []
        try:
            port = int(server.stdout.readline().strip().rsplit(":", 1)[1])
            bystander = Bystander(port)
            before = bystander.rate(2)
            for number in range(args.clients):
                command = [sys.executable, __file__, f"--seconds={args.seconds}", f"--attack={port}:{number}", args.server]
                greedy.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            during = bystander.rate(args.seconds)
            said = [process.stdout.readline().strip() for process in greedy]
            held = bystander.rate(2)
            most, now = memory(server, "VmHWM"), memory(server, "VmRSS")
        finally:
            for process in greedy:
                process.kill()
                process.wait()
                process.stdout.close()
                process.stdin.close()
            assert server.poll() is None, "the server has ended"
            server.stdin.close()
            server.wait(60)
            server.stdout.close()
    for line in sorted(set(said)):
        print(f"{said.count(line)} of {line}")
    print(f"the server: {most / MIB:.0f} MiB at most, {now / MIB:.0f} MiB while all is held; {before:.0f} calls a second before, "
          f"{during / before:.0%} of it during the attack, {held / before:.0%} while all is held")
    assert most < OF_TASK + OWN, most
    return 0


if __name__ == "__main__":
    sys.exit(main())
