#!/usr/bin/env python3
"""Processes of the library stand peers that mean them ill, before they have proved who they are and after it.

Usage: tests/wire/hostile_test.py SERVER CLIENT
SERVER is the program of wire_server.cpp, CLIENT that of tests/links/link_client.cpp.
"""

import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dflow_client as dflow  # noqa: E402

SERVER, CLIENT = None, None
SECRET = b"a secret of the test's own"
PATIENCE = 120  # seconds, for what must end


def frame(kind, request=0, payload=b"", flags=0, version=1, length=None):
    size = len(payload) if length is None else length
    header = struct.pack("<4sBBHQQI", b"dflw", version, kind, flags, size, request, dflow.crc32c(payload))
    return header + struct.pack("<I", dflow.crc32c(header)) + payload


def status(code, message):
    return dflow.u8(code) + dflow.string(message) + 4 * dflow.string("")


class Hostile(unittest.TestCase):
    def setUp(self):
        secret = tempfile.NamedTemporaryFile(delete=False)
        secret.write(SECRET + b"\n")
        secret.close()
        self.secret_file = secret.name
        self.addCleanup(os.unlink, secret.name)
        self.log = tempfile.TemporaryFile()
        self.addCleanup(self.log.close)

    def start(self, *command):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.stdin.close()
        try:
            self.assertEqual(process.wait(PATIENCE), 0)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def logged(self):
        self.log.seek(0)
        return self.log.read()

    def wait_for_log(self, text):
        until = time.monotonic() + PATIENCE
        while text not in self.logged():
            self.assertLess(time.monotonic(), until, (text, self.logged()))
            time.sleep(0.01)


class ServerTest(Hostile):
    def setUp(self):
        super().setUp()
        self.server = self.start(SERVER, self.secret_file)
        host, port = self.server.stdout.readline().strip().removeprefix("tcp://").rsplit(":", 1)
        self.address = host, int(port)
        self.bystander = self.connect(task="/job:client/replica:0/task:1")

    def connect(self, **options):
        client = dflow.Client(*self.address, SECRET, **options)
        self.addCleanup(client.socket.close)
        return client

    def stranger(self):
        connection = socket.create_connection(self.address, PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def goes_on(self):
        self.assertEqual(len(self.bystander.list_devices()), 1)
        self.assertEqual(len(self.connect().list_devices()), 1)

    def ends(self, connection, reason):
        """All that it sends back, of which the last frame says why it ends."""
        data = b""
        try:
            while piece := connection.recv(1 << 16):
                data += piece
        except ConnectionResetError:
            pass
        self.assertIn(reason, data)
        return data

    # ---- who has not proved who it is ----

    def test_what_a_stranger_says_is_one_line_of_the_log(self):
        said = status(3, "bad\n/job:ps/replica:0/task:0: all is well\x1b[2J\0\x9b31m")
        self.stranger().sendall(frame(dflow.GOODBYE, payload=said))
        self.wait_for_log(b"INVALID_ARGUMENT: bad")
        lines = self.logged().splitlines()
        self.assertEqual(len(lines), 1)
        self.assertIn(rb"bad\x0a/job:ps/replica:0/task:0: all is well\x1b[2J\x00\xc2\x9b31m", lines[0])
        self.goes_on()

    def test_handshakes_that_prove_nothing_are_refused_and_logged(self):
        def hello_of(connection):
            header = connection.recv(32, socket.MSG_WAITALL)
            return connection.recv(struct.unpack("<Q", header[8:16])[0], socket.MSG_WAITALL)

        # What the server has said itself.
        mirror = self.stranger()
        mirror.sendall(frame(dflow.HELLO, payload=hello_of(mirror)))
        self.ends(mirror, b"our own part in the handshake")
        mirror = self.stranger()
        mirror.sendall(frame(dflow.HELLO, payload=b"\1" + hello_of(mirror)[1:]))
        self.ends(mirror, b"our own hello back")
        # What another client has said before.
        said = []

        class Recorded(dflow.Client):
            def send(self, kind, request, payload=b"", flags=0):
                said.append(frame(kind, request, payload, flags))
                super().send(kind, request, payload, flags)

        Recorded(*self.address, SECRET).close()
        replayed = self.stranger()
        replayed.sendall(b"".join(said[:2]) + frame(dflow.REQUEST, 1, struct.pack("<HQ", 1, 0)))
        self.ends(replayed, b"were given different secrets of the cluster")
        # Other ops, and what comes before the proof.
        other = self.stranger()
        hello_of(other)
        mine = b"\1\1" + os.urandom(32) + dflow.string("") + dflow.string("/job:client/replica:0/task:9")
        mine += dflow.u64(1) + dflow.u64(12345) + dflow.string("") + dflow.u64(1 << 16)
        other.sendall(frame(dflow.HELLO, payload=mine))
        self.ends(other, b"both must be built with the same op table")
        early = self.stranger()
        early.sendall(frame(dflow.REQUEST, 1, struct.pack("<HQ", 1, 0)))
        self.ends(early, b"has not proved who it is")
        reasons = (b"our own part", b"our own hello", b"secrets of the cluster", b"same op table", b"not proved who it is")
        for reason in reasons:
            self.wait_for_log(reason)
        self.goes_on()

    def test_frames_that_are_none_end_their_connection_alone(self):
        ping = frame(dflow.PING, 1)
        bad = {
            b"no frame of dflow": b"x" + ping[1:],
            b"version 2": frame(dflow.PING, 1, version=2),
            b"a frame of 9223372036854775808 bytes": frame(dflow.PING, 1, length=1 << 63),
            b"unknown type 77": frame(77, 1),
            b"the header of a frame": ping[:30] + bytes([ping[30] ^ 1]) + ping[31:],
            b"the payload of a frame": frame(dflow.PING, 1, b"payload")[:-1] + b"x",
            b"input ends early": frame(dflow.REQUEST, 1),
            b"more credit than its window": frame(dflow.CREDIT, payload=dflow.u64((1 << 64) - 1)),
            b"belongs to nothing": frame(dflow.CHUNK, 9, b"x"),
        }
        for reason, data in bad.items():
            with self.subTest(reason):
                client = self.connect(task="/job:client/replica:0/task:2")
                client.socket.sendall(data)
                self.ends(client.socket, reason)
                self.goes_on()
        for seed in range(4):
            client = self.connect(task="/job:client/replica:0/task:2") if seed % 2 else None
            connection = client.socket if client else self.stranger()
            try:
                connection.sendall(random.Random(seed).randbytes(1_000_000))
            except (BrokenPipeError, ConnectionResetError):
                pass
            self.ends(connection, b"")
            self.goes_on()

    def test_an_exchange_that_is_cut_anywhere_leaves_nothing(self):
        body = dflow.string(dflow.names(["x"]))
        for cut in range(0, 70, 3):
            client = self.connect(task="/job:client/replica:0/task:2")
            request = frame(dflow.REQUEST, 1, struct.pack("<HQ", 10, 100) + body) + frame(dflow.CHUNK, 1, b"y" * 50)
            client.socket.sendall(request[:cut])
            client.socket.close()
        self.leaves_nothing()

    # ---- who has ----

    def numbers(self):
        """Sessions, runs and waits of the server."""
        return struct.unpack("<QQQ", self.bystander.call(9)[0][-24:])

    def leaves_nothing(self):
        until = time.monotonic() + PATIENCE
        while self.numbers() != (0, 0, 0):
            self.assertLess(time.monotonic(), until, self.numbers())
        self.goes_on()

    def test_requests_in_any_order_cut_damaged_and_half_closed_leave_nothing(self):
        device = self.bystander.list_devices()[0][0]
        failed = []

        def attack(seed):
            chance = random.Random(seed)
            try:
                for _ in range(25):
                    self.attack(chance, device)
            except (OSError, dflow.DflowError, ValueError, KeyError):
                pass
            except BaseException as error:  # threads hide what is wrong with the test itself
                failed.append(error)

        threads = [threading.Thread(target=attack, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.leaves_nothing()

    def attack(self, chance, device):
        client = dflow.Client(*self.address, SECRET, task=f"/job:client/replica:0/task:{chance.randrange(10, 14)}")
        with client.socket:
            for number in range(1, chance.randrange(60)):
                method = chance.randrange(1, 21)
                body, payload = self.request(chance, client, device, method)
                damage = chance.random()
                if damage < 0.1:
                    body = body[: chance.randrange(len(body) + 1)]
                elif damage < 0.2:
                    body += chance.randbytes(3)
                elif damage < 0.3 and body:
                    at = chance.randrange(len(body))
                    body = body[:at] + bytes([body[at] ^ 1 << chance.randrange(8)]) + body[at + 1 :]
                is_post = method == dflow.PUSH
                head = struct.pack("<HQ", method, 0 if is_post else len(payload))
                client.send(dflow.REQUEST, number, head + body, dflow.IS_POST if is_post else 0)
                if payload:
                    client.send(dflow.CHUNK, number, payload)
                if chance.random() < 0.2:
                    client.send(dflow.CANCEL, chance.randrange(1, number + 1))
                if chance.random() < 0.02:  # replies to what was never asked
                    client.send(dflow.REPLY, number, dflow.u64(chance.choice([0, 5, 1 << 63])))
            end = chance.random()
            if end < 0.3:
                client.socket.shutdown(socket.SHUT_WR)
                while client.socket.recv(1 << 16):
                    pass
            elif end < 0.5:
                client.close()
            elif end < 0.7:
                client.list_devices()

    def request(self, chance, client, device, method):
        session, share, step = chance.randrange(1, 4), chance.randrange(4), chance.randrange(1, 20)
        name, time_left = dflow.share_name(session, share), dflow.i64(chance.choice([0, 1, 10**9]))
        vector, scalar = dflow.tensor(dflow.FLOAT32, [2], [1, 2]), [("shape", dflow.shape_value([]))]
        fed = client.feed_key(device, "x:0")
        placeholders = [
            dflow.node(each, "Placeholder", types=[("dtype", dflow.FLOAT32)], attrs=scalar) for each in ("a", "b")
        ]
        nodes = [*placeholders, dflow.node("y", "Neg", ["a"]), dflow.node("z", "Mul", ["y", "b"])]
        feeds = chance.choice([[("a", dflow.FLOAT32, [], [1.0])], [("b", dflow.FLOAT32, [], [2.0])], []])
        described, elements = client._feeds(feeds)
        traced, fetches = dflow.u8(chance.randrange(2)), dflow.names(chance.choice([["y"], ["z"], []]))
        if method == dflow.REGISTER:
            part = [
                client.recv_node("x", dflow.FLOAT32, device, "x:0", [-1]),
                dflow.node("n", "Neg", ["x"], [("T", dflow.FLOAT32)]),
                client.send_node("s", dflow.FLOAT32, "n", device, "n:0", pushed=chance.random() < 0.5),
            ]
            target = dflow.string(device) + dflow.listed([dflow.string("s")])
            return name, dflow.listed([target + dflow.string(dflow.graph(part))])
        return {
            dflow.RUN: (
                name + dflow.u64(step) + time_left + traced
                + dflow.listed([dflow.string(fed) + b"\0" + vector] * chance.randrange(3)), b""),
            dflow.CANCEL_STEP: (dflow.u64(step) + dflow.u8(chance.randrange(18)), b""),
            dflow.RECEIVE: (dflow.u64(step) + dflow.string(chance.choice([client.fetch_key(device, "n:0"), fed, "x"])), b""),
            dflow.PUSH: (dflow.u64(step) + dflow.string(fed) + b"\0" + vector, b""),
            dflow.CREATE_SESSION: (dflow.i64(0) + b"\0\0\0", dflow.graph(nodes)),
            dflow.EXTEND_SESSION: (name, dflow.graph([dflow.node("more", "Neg", ["a"])])),
            dflow.RUN_SESSION: (dflow.u64(session) + time_left + traced + described + fetches + dflow.names([]), elements),
            dflow.BEGIN_PARTIAL_RUN: (
                dflow.u64(session) + time_left + traced + dflow.names(["a", "b"]) + dflow.names(["y", "z"]) + b"\0", b""),
            dflow.CONTINUE_PARTIAL_RUN: (name + described + fetches + dflow.u8(chance.randrange(2)), elements),
            dflow.RESET_CLUSTER: (dflow.names(["a"]) + dflow.names([]), b""),
            16: (dflow.names([]), b""),
            17: (dflow.u8(chance.randrange(3)) + b"\0\1" + dflow.varint(0), b""),
            dflow.LIST_CLUSTER_DEVICES: (dflow.names([]), b""),
        }.get(method, (name, b""))  # fmt: skip

    def post(self, client, body, payload_size=0):
        client.send(dflow.REQUEST, 1, struct.pack("<HQ", dflow.PUSH, payload_size) + body, dflow.IS_POST)

    def test_a_push_that_cannot_be_read_ends_its_connection(self):
        device = self.bystander.list_devices()[0][0]
        vector = dflow.tensor(dflow.FLOAT32, [2], [1, 2])
        for what, body_of, payload_size, reason in (
            ("nothing", lambda key: b"", 0, b"input ends early"),
            ("cut short", lambda key: dflow.u64(1) + dflow.string(key) + b"\0" + vector[:-1], 0, b"input ends early"),
            ("too long", lambda key: dflow.u64(1) + dflow.string(key) + b"\0" + vector + b"x", 0, b"1 bytes left over"),
            ("no key", lambda key: dflow.u64(1) + dflow.string("x") + b"\0" + vector, 0, b"rendezvous key 'x' is malformed"),
            ("a payload", lambda key: dflow.u64(1) + dflow.string(key) + b"\0" + vector, 5, b"cannot have a payload"),
        ):
            with self.subTest(what):
                client = self.connect(task="/job:client/replica:0/task:2")
                self.post(client, body_of(client.feed_key(device, "x:0")), payload_size)
                self.ends(client.socket, reason)
                self.goes_on()
        self.leaves_nothing()

    def test_a_push_of_what_is_not_its_senders_ends_its_step_alone(self):
        client = self.connect(task="/job:client/replica:0/task:5")
        device = client.list_devices()[0][0]
        part = [
            client.recv_node("x", dflow.FLOAT32, device, "x:0", [-1]),
            dflow.node("n", "Neg", ["x"], [("T", dflow.FLOAT32)]),
            client.send_node("s", dflow.FLOAT32, "n", device, "n:0", pushed=True),
        ]
        client.register(1, 1, device, ["s"], part)
        runs = [client.start(1, 1, step, []) for step in (1, 2)]
        vector = dflow.tensor(dflow.FLOAT32, [2], [1, 2])
        self.post(client, dflow.u64(1) + dflow.string(self.bystander.feed_key(device, "x:0")) + b"\0" + vector)
        with self.assertRaisesRegex(dflow.DflowError, "INVALID_ARGUMENT: .* is not /job:client/replica:0/task:5's to send"):
            client.end(runs[0])
        self.post(client, dflow.u64(2) + dflow.string(client.feed_key(device, "x:0")) + b"\0" + vector)
        client.end_run(runs[1], 2)
        self.assertEqual(client.pushed, {(2, client.fetch_key(device, "n:0")): [-1, -2]})
        client.close()
        self.leaves_nothing()

    def test_one_client_opens_so_much_and_no_more(self):
        client = self.connect(task="/job:client/replica:0/task:3")
        node = dflow.node("a", "Placeholder", types=[("dtype", dflow.FLOAT32)], attrs=[("shape", dflow.shape_value([]))])
        sessions = [client.begin(dflow.CREATE_SESSION, dflow.i64(0) + b"\0\0\0", dflow.graph([node])) for _ in range(300)]
        made = []
        for request in sessions:
            try:
                made.append(client._version(client.end(request))[0])
            except dflow.DflowError as refused:
                self.assertIn("more than 256 sessions of one client", refused.message)
        self.assertEqual(len(made), 256)
        begin = dflow.u64(made[0]) + dflow.i64(0) + b"\0" + dflow.names(["a"]) + dflow.names([]) + dflow.names(["a"])
        runs = [client.begin(dflow.BEGIN_PARTIAL_RUN, begin) for _ in range(300)]
        refusals = 0
        for request in runs:
            try:
                client.end(request)
            except dflow.DflowError as refused:
                self.assertIn("more than 256 partial runs of one session", refused.message)
                refusals += 1
        self.assertEqual(refusals, 300 - 256)
        many = dflow.varint(1 << 20) + bytes(1 << 20)
        for method, body in ((14, many), (15, many + b"\0"), (15, b"\0" + many), (16, many)):
            with self.assertRaisesRegex(dflow.DflowError, "OUT_OF_RANGE: 1048576 names"):
                client.call(method, body)
        client.socket.close()
        self.leaves_nothing()

    def test_steps_that_never_begin_and_steps_by_the_thousand_end_with_their_client(self):
        client = self.connect(task="/job:client/replica:0/task:4")
        device = client.list_devices()[0][0]
        part = [
            client.recv_node("x", dflow.FLOAT32, device, "x:0", [-1]),
            dflow.node("n", "Neg", ["x"], [("T", dflow.FLOAT32)]),
            client.send_node("s", dflow.FLOAT32, "n", device, "n:0"),
        ]
        client.register(1, 1, device, ["s"], part)
        runs = [client.start(1, 1, step, []) for step in range(1, 5001)]
        for step in range(10_001, 40_001):  # more than a task keeps
            client.begin(dflow.RECEIVE, dflow.u64(step) + dflow.string(client.fetch_key(device, "n:0")))
        for _ in range(100):
            client.start(1, 1, 7, [])  # one number, many runs
        for step in range(1, 2501):  # a storm
            client.begin(dflow.CANCEL_STEP, dflow.u64(step) + status(10, "enough"))
        for run in runs[:2500]:
            with self.assertRaisesRegex(dflow.DflowError, "ABORTED"):
                client.end(run)
        self.assertEqual(self.numbers()[1], 2500)
        self.goes_on()
        client.socket.close()
        self.leaves_nothing()


class LostServerTest(Hostile):
    def serve(self, address="127.0.0.1:0"):
        command = [SERVER, self.secret_file, "60000", address]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.addCleanup(self.kill, server)
        return server, server.stdout.readline().strip().removeprefix("tcp://")

    @staticmethod
    def kill(server):
        server.kill()
        server.wait()
        server.stdin.close()
        server.stdout.close()

    def test_one_that_is_killed_is_named_at_once_and_one_that_is_back_is_another(self):
        server, address = self.serve()
        client = self.start(CLIENT, address, self.secret_file, "60000")
        self.assertEqual(client.stdout.readline().strip(), "ready")

        def asks(line):
            client.stdin.write(line + "\n")
            client.stdin.flush()
            code, _, text = client.stdout.readline().split(maxsplit=2)
            return code, text

        for line in ("sum 1 60000", "fetch 1 60000"):
            self.assertEqual(asks(line)[0], "OK")
        # While a step runs, and when none does: the end of the connection says it, not a minute of silence.
        client.stdin.write("fetch 256 600000\n")
        client.stdin.flush()
        self.kill(server)
        answers = [client.stdout.readline().split(maxsplit=2), ["UNAVAILABLE", "", asks("sum 1 600000")[1]]]
        for code, _, text in answers:
            self.assertEqual(code, "UNAVAILABLE", text)
            self.assertIn("/job:ps/replica:0/task:0", text)
            self.assertNotIn("silent", text)
        # What it held is gone: no step of the old session computes with anything else.
        self.serve(address)
        until = time.monotonic() + PATIENCE
        code = "UNAVAILABLE"
        while code == "UNAVAILABLE":
            code, text = asks("sum 1 60000")
            self.assertLess(time.monotonic(), until, text)
        for _ in range(3):
            self.assertEqual((code, "started anew" in text), ("ABORTED", True), text)
            code, text = asks("sum 1 60000")

    def test_an_address_that_another_process_has_is_taken(self):
        _, address = self.serve()
        second = subprocess.run([SERVER, self.secret_file, "60000", address], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"cannot listen at 'tcp://{address}'", second.stderr)
        # Also where only the Unix socket of its name is.
        host, port = address.split(":")
        with socket.create_server((host, 0)) as listener:
            free = listener.getsockname()[1]
        with socket.socket(socket.AF_UNIX) as squatter:
            squatter.bind(f"\0dflow {host} {free}")
            squatter.listen()
            command = [SERVER, self.secret_file, "60000", f"{host}:{free}"]
            second = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(second.returncode, 1)
        self.assertIn("another process listens at the Unix socket", second.stderr)


class FalseServer:
    """A parameter server that shakes hands, knows what it is to send, and sends what the test wants it to."""

    task = "/job:ps/replica:0/task:0"
    device = task + "/device:CPU:0"

    def __init__(self, fingerprint):
        self.fingerprint, self.incarnation = fingerprint, 5
        # (request, key) -> bytes; for a run and for a tensor that is asked for. None: what is right, of 1 MiB.
        self.run_reply = self.tensor_reply = None
        self.value = 2.0
        self.names = {}  # of what a share sends, by whether it is a scalar
        self.open = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "%s:%d" % self.listener.getsockname()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            self.open.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def cut(self):
        # Those that there are, and not one that is made meanwhile by who has lost another.
        connections, self.open = self.open, []
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)  # a thread that reads would hold it open
            except OSError:
                pass  # it has ended
            connection.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()

    def serve(self, connection):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.shake_hands(connection)
            payloads = {}
            while True:
                kind, request, payload = self.read(connection)
                if kind == dflow.GOODBYE:
                    return
                if kind == dflow.PING:
                    connection.sendall(frame(dflow.PONG, request, payload))
                elif kind == dflow.REQUEST:
                    method, size = struct.unpack("<HQ", payload[:10])
                    payloads[request] = [method, size, payload[10:], b""]
                elif kind == dflow.CHUNK:
                    payloads[request][3] += payload
                waits = payloads.get(request)
                if kind in (dflow.REQUEST, dflow.CHUNK) and len(waits[3]) == waits[1]:
                    del payloads[request]
                    connection.sendall(self.answer(request, waits[0], waits[2], waits[3]))
        except (OSError, struct.error):
            pass
        finally:
            connection.close()

    def read(self, connection):
        def take(size):
            data = b""
            while len(data) < size:
                piece = connection.recv(size - len(data))
                if not piece:
                    raise ConnectionError
                data += piece
            return data

        _, _, kind, _, length, request, _, _ = struct.unpack("<4sBBHQQII", take(32))
        return kind, request, take(length)

    def shake_hands(self, connection):
        mine = b"\2\1" + os.urandom(32) + dflow.string("") + dflow.string(self.task) + dflow.u64(self.incarnation)
        mine += dflow.u64(self.fingerprint) + dflow.string("") + dflow.u64(8 << 20)
        connection.sendall(frame(dflow.HELLO, payload=mine))
        theirs = self.read(connection)[2]
        proof = dflow.Client._proof
        connection.sendall(frame(dflow.PROOF, payload=proof(self, 2, theirs, mine)))

    secret = SECRET

    def answer(self, request, method, body, payload):
        if method == dflow.LIST_DEVICES:
            device = dflow.string(self.device) + dflow.string("CPU") + dflow.u64(self.incarnation) + dflow.string("") + b"\0"
            return self.reply(request, dflow.listed([device]))
        if method == dflow.REGISTER:
            self.learn(body, payload)
            return self.reply(request)
        if method == dflow.RUN:
            share = body[:16]
            key = self.names[share]
            return self.run_reply(request, key) if self.run_reply else self.right_run(request, key)
        if method == dflow.RECEIVE:
            size = 1 << 18
            return self.tensor_reply(request) if self.tensor_reply else self.right_tensor(request, size)
        return self.reply(request)

    def learn(self, share, part):
        """The key of what a share sends to its client; None for one that is asked for."""
        sends = part.index(b"\5_Send")

        def text(name):
            at = part.index(name + b"\4", sends) + len(name) + 1
            return part[at + 1 : at + 1 + part[at]].decode()

        pushed = part.find(b"pushed\1", sends)  # left out where it is not
        is_pushed = pushed >= 0 and part[pushed + 7]
        key = f"{self.device};{self.incarnation:x};{text(b'recv_device')};{text(b'tensor_name')};:0"
        self.names[share] = key if is_pushed else None

    def reply(self, request, body=b"", size=0):
        return frame(dflow.REPLY, request, dflow.u64(size) + body)

    def right_run(self, request, key):
        return self.run_of(request, [(key, dflow.FLOAT32, [], [self.value])] if key else [])

    def run_of(self, request, tensors, rest=b"\0"):
        pushed = [dflow.string(key) + b"\0" + dflow.tensor(*tensor) for key, *tensor in tensors]
        return self.reply(request, dflow.i64(1) + dflow.i64(2) + dflow.listed(pushed) + rest)

    def head(self, dims, dtype=dflow.FLOAT32):
        return b"\0" + dflow.u8(dtype) + dflow.u8(len(dims)) + b"".join(map(dflow.varint, dims))

    def right_tensor(self, request, size):
        return self.reply(request, self.head([size]), 4 * size) + self.chunks(request, 4 * size)

    def chunks(self, request, size):
        return b"".join(
            frame(dflow.CHUNK, request, bytes(min(size - at, 1 << 16)), dflow.OF_REPLY) for at in range(0, size, 1 << 16)
        )


class ClientTest(Hostile):
    def setUp(self):
        super().setUp()
        honest = self.start(SERVER, self.secret_file)
        host, port = honest.stdout.readline().strip().removeprefix("tcp://").rsplit(":", 1)
        with socket.create_connection((host, int(port))) as connection:
            header = connection.recv(32, socket.MSG_WAITALL)
            hello = dflow.Reader(connection.recv(struct.unpack("<Q", header[8:16])[0], socket.MSG_WAITALL))
        hello.take(34), hello.string(), hello.string(), hello.number("Q")
        self.ps = FalseServer(hello.number("Q"))
        self.addCleanup(self.ps.close)
        self.client = self.start(CLIENT, self.ps.address, self.secret_file, "10000")
        self.assertEqual(self.client.stdout.readline().strip(), "ready")
        self.ps.value = float(1 << 18)
        self.first = self.asks("sum 1 60000", ("OK",))

    def answer_of(self, line, codes):
        self.client.stdin.write(line + "\n")
        self.client.stdin.flush()
        code, megabytes, text = self.client.stdout.readline().split(maxsplit=2)
        self.assertIn(code, codes, text[:2000])
        return code, int(megabytes)

    def code_of(self, line, codes):
        return self.answer_of(line, codes)[0]

    def asks(self, line, codes):
        """Returns how much the client then holds."""
        return self.answer_of(line, codes)[1]

    def goes_on(self):
        """A step that begins while a connection ends may end with it, by the same reason; none computes anything else."""
        self.ps.run_reply = self.ps.tensor_reply = None
        for line in ("sum 1 60000", "fetch 1 60000"):
            until = time.monotonic() + PATIENCE
            code = None
            while code != "OK":
                self.client.stdin.write(line + "\n")
                self.client.stdin.flush()
                code, megabytes, text = self.client.stdout.readline().split(maxsplit=2)
                self.assertNotEqual(code, "INTERNAL", text[:2000])
                self.assertLess(time.monotonic(), until, text[:2000])
                self.assertLess(int(megabytes), self.first + 128)

    def test_a_run_is_not_answered_by_what_is_no_answer(self):
        ps = self.ps
        escape = "\x1b[2J" + 100 * "x"
        refused = ("INVALID_ARGUMENT", "INTERNAL")
        for what, answer, codes in (
            ("twice", lambda r, key: 2 * ps.right_run(r, key), ("OK",)),
            ("to nobody", lambda r, key: ps.reply(r + 12345, b"x") + ps.right_run(r, key), ("OK",)),
            ("requests of all methods, and damaged", lambda r, key: self.requests() + ps.right_run(r, key), ("OK",)),
            ("cancelled by the thousand", lambda r, key: 1000 * frame(dflow.CANCEL, r, b"", 1), ("CANCELLED",)),
            ("cancels of what it has not asked", lambda r, key: self.storm(r) + ps.right_run(r, key), ("OK",)),
            ("another type", lambda r, key: ps.run_of(r, [(key, dflow.INT32, [], [1])]), refused),
            ("another shape", lambda r, key: ps.run_of(r, [(key, dflow.FLOAT32, [2], [1, 2])]), refused),
            ("two of one key", lambda r, key: ps.run_of(r, 2 * [(key, dflow.FLOAT32, [], [1])]), ("ABORTED",)),
            ("no key", lambda r, key: ps.run_of(r, [("x", dflow.FLOAT32, [], [1])]), ("INVALID_ARGUMENT",)),
            ("not its own", lambda r, key: ps.run_of(r, [(key.replace("ps", "worker", 1), dflow.FLOAT32, [], [1])]),
             ("INVALID_ARGUMENT",)),
            ("statistics of 2^60 nodes", lambda r, key: ps.run_of(r, [], b"\1" + bytes(24) + dflow.varint(1 << 60)),
             ("DATA_LOSS", "OUT_OF_RANGE")),
            ("bytes that nobody has asked for", lambda r, key: ps.reply(r, b"", 1 << 63), ("INTERNAL",)),
            ("an error of escapes", lambda r, key: frame(dflow.REPLY, r, status(10, escape), 2), ("ABORTED",)),
            ("an error of 15 MiB", lambda r, key: frame(dflow.REPLY, r, status(10, "x" * (15 << 20)), 2), ("ABORTED",)),
            ("a frame of 100 MB", lambda r, key: frame(dflow.REPLY, r, length=100_000_000), ("OUT_OF_RANGE",)),
            ("credit beyond the window", lambda r, key: frame(dflow.CREDIT, payload=dflow.u64(1 << 63)),
             ("INVALID_ARGUMENT",)),
            ("a chunk of nothing", lambda r, key: frame(dflow.CHUNK, r, b"x", 1), ("INVALID_ARGUMENT",)),
            ("a hello", lambda r, key: frame(dflow.HELLO), ("INVALID_ARGUMENT",)),
            ("a goodbye", lambda r, key: frame(dflow.GOODBYE, payload=status(10, escape)), ("ABORTED",)),
        ):  # fmt: skip
            with self.subTest(what):
                ps.run_reply = answer
                self.asks("sum 1 60000", codes)
                self.goes_on()

    def test_a_tensor_that_is_asked_for_is_not_believed(self):
        ps, size = self.ps, 4 << 18
        right = ps.head([1 << 18])
        for what, answer, codes in (
            ("fewer bytes", lambda r: ps.reply(r, right, size - 4), ("DATA_LOSS",)),
            ("2^63 bytes", lambda r: ps.reply(r, right, 1 << 63), ("DATA_LOSS",)),
            ("2^42 bytes", lambda r: ps.reply(r, ps.head([1 << 40]), 1 << 42), ("RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED")),
            ("2^62 elements", lambda r: ps.reply(r, ps.head([1 << 62]), 5), ("DATA_LOSS",)),
            ("rank 9", lambda r: ps.reply(r, ps.head([1] * 9), 4), ("DATA_LOSS",)),
            ("another type", lambda r: ps.reply(r, ps.head([1 << 18], dflow.INT32), size) + ps.chunks(r, size),
             ("INVALID_ARGUMENT", "INTERNAL")),
            ("none", lambda r: ps.reply(r, right), ("DATA_LOSS",)),
            ("dead, with bytes", lambda r: ps.reply(r, b"\1", 5), ("DATA_LOSS",)),
            ("half of it", lambda r: ps.reply(r, right, size) + ps.chunks(r, size // 2), ("DEADLINE_EXCEEDED",)),
            ("half of it, and a cancel",
             lambda r: ps.reply(r, right, size) + ps.chunks(r, size // 2) + frame(dflow.CANCEL, r, b"", 1), ("CANCELLED",)),
            ("more of it", lambda r: ps.reply(r, right, size) + ps.chunks(r, size + 4), ("OK", "INVALID_ARGUMENT")),
            ("a chunk too long", lambda r: ps.reply(r, right, 1 << 20) + ps.chunks(r, 983040) + ps.chunks(r, 1 << 17),
             ("OK", "INVALID_ARGUMENT")),
            ("an empty chunk", lambda r: ps.reply(r, right, size) + frame(dflow.CHUNK, r, b"", 1), ("INVALID_ARGUMENT",)),
            ("twice", lambda r: 2 * ps.reply(r, right, size), ("INVALID_ARGUMENT",)),
        ):  # fmt: skip
            with self.subTest(what):
                ps.tensor_reply = answer
                self.asks("fetch 1 1500" if "DEADLINE_EXCEEDED" in codes else "fetch 1 60000", codes)
                self.goes_on()

    def test_starts_that_go_backwards_are_not_let_in_and_later_ones_are_others(self):
        ps = self.ps
        ps.incarnation = 4
        ps.cut()
        until = time.monotonic() + PATIENCE
        while b"no connection with incarnation 4" not in self.logged():
            self.asks("sum 1 60000", ("ABORTED", "UNAVAILABLE"))
            self.assertLess(time.monotonic(), until)
        ps.incarnation = 5
        self.goes_on()
        ps.incarnation = 6
        ps.cut()
        # Steps that begin while the connection ends may end with it; whatever comes then is told of another start.
        until = time.monotonic() + PATIENCE
        while self.code_of("sum 1 60000", ("ABORTED", "UNAVAILABLE")) != "ABORTED":
            self.assertLess(time.monotonic(), until)
        self.asks("sum 1 60000", ("ABORTED",))

    def requests(self):
        chance = random.Random(3)
        return b"".join(
            frame(dflow.REQUEST, 1000 + i, struct.pack("<HQ", i % 21, 0) + chance.randbytes(i % 40)) for i in range(1000)
        )

    @staticmethod
    def storm(request):
        return b"".join(frame(dflow.CANCEL, request + i) for i in range(10_000))


if __name__ == "__main__":
    SERVER, CLIENT = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
