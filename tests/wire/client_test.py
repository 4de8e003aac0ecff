#!/usr/bin/env python3
"""A client written from docs/wire-format.md speaks with a server of the library over TCP.

Usage: tests/wire/client_test.py SERVER
SERVER is the program of tests/wire/wire_server.cpp.
"""

import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dflow_client as dflow  # noqa: E402

SERVER = None
SECRET = b"a secret of the test's own"


class WireTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        file = tempfile.NamedTemporaryFile(delete=False)
        file.write(SECRET + b"\n")
        file.close()
        cls.secret_file = file.name
        cls.server = subprocess.Popen([SERVER, file.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        address = cls.server.stdout.readline().strip()
        cls.host, port = address.removeprefix("tcp://").rsplit(":", 1)
        cls.port = int(port)

    @classmethod
    def tearDownClass(cls):
        cls.server.stdin.close()  # it ends with its input
        status = cls.server.wait(60)
        cls.server.stdout.close()
        os.unlink(cls.secret_file)
        assert status == 0, status

    def connect(self, **options):
        client = dflow.Client(self.host, self.port, options.pop("secret", SECRET), **options)
        self.addCleanup(client.socket.close)
        return client

    def share(self, client, device):
        """y = x w, large and asked for; z = -w, small and pushed."""
        return [
            client.recv_node("x", dflow.FLOAT32, device, "x:0", [-1, 2]),
            dflow.node("w", "Const", types=[("dtype", dflow.FLOAT32)],
                       attrs=[("value", dflow.tensor_value(dflow.FLOAT32, [2, 3], [1, 2, 3, 4, 5, 6]))]),
            dflow.node("y", "MatMul", ["x", "w"], [("T", dflow.FLOAT32)]),
            dflow.node("z", "Neg", ["w"], [("T", dflow.FLOAT32)]),
            client.send_node("send_y", dflow.FLOAT32, "y", device, "y:0"),
            client.send_node("send_z", dflow.FLOAT32, "z", device, "z:0", pushed=True),
        ]

    def test_runs_steps(self):
        client = self.connect()
        self.assertEqual(client.server, "/job:ps/replica:0/task:0")
        devices = client.list_devices()
        self.assertEqual([device[:3] for device in devices],
                         [("/job:ps/replica:0/task:0/device:CPU:0", "CPU", client.server_incarnation)])
        device = devices[0][0]
        client.register(1, 1, device, ["send_y", "send_z"], self.share(client, device))
        for step, rows in ((101, 1), (102, 3), (103, 30000), (104, 0)):
            x = [float(i % 17) for i in range(2 * rows)]
            run = client.start(1, 1, step, [(client.feed_key(device, "x:0"), dflow.tensor(dflow.FLOAT32, [rows, 2], x))])
            dtype, shape, y = client.receive(step, client.fetch_key(device, "y:0"))
            self.assertEqual((dtype, shape), (dflow.FLOAT32, [rows, 3]))
            expected = [x[2 * row] * w0 + x[2 * row + 1] * w1 for row in range(rows) for w0, w1 in ((1, 4), (2, 5), (3, 6))]
            self.assertEqual(y, expected)
            client.end_run(run, step)
            while (step, client.fetch_key(device, "z:0")) not in client.pushed:
                client.pump()
            self.assertEqual(client.pushed[step, client.fetch_key(device, "z:0")], [-1, -2, -3, -4, -5, -6])
        self.assertGreater(client.credit_frames, 3)  # 360 kB came through a window of 64 KiB
        client.call(dflow.FORGET, dflow.share_name(1, 1))
        with self.assertRaisesRegex(dflow.DflowError, "NOT_FOUND: share 1 is not registered"):
            client.end(client.start(1, 1, 105, []))
        client.call(dflow.CLOSE, dflow.share_name(1, 0))
        client.close()

    def test_master_keeps_a_session(self):
        client = self.connect()
        self.assertEqual([device[0] for device in client.list_cluster_devices()], [client.server + "/device:CPU:0"])
        session, version = client.create_session([
            dflow.node("x", "Placeholder", types=[("dtype", dflow.FLOAT32)], attrs=[("shape", dflow.shape_value([-1, 2]))]),
            dflow.node("w", "Const", types=[("dtype", dflow.FLOAT32)],
                       attrs=[("value", dflow.tensor_value(dflow.FLOAT32, [2, 3], [1, 2, 3, 4, 5, 6]))]),
            dflow.node("y", "MatMul", ["x", "w"]),
            dflow.node("words", "Const", types=[("dtype", dflow.STRING)],
                       attrs=[("value", dflow.tensor_value(dflow.STRING, [2], ["a", "bc"]))]),
        ])  # fmt: skip
        self.assertEqual(version, 0)
        x = ("x", dflow.FLOAT32, [1, 2], [1.0, 10.0])
        results, nodes = client.run_session(session, [x], ["y", "words", "x"])
        self.assertEqual(results[0], (dflow.FLOAT32, [1, 3], [41.0, 52.0, 63.0]))
        self.assertEqual(results[1], (dflow.STRING, [2], [b"a", b"bc"]))
        self.assertEqual(results[2], (dflow.FLOAT32, [1, 2], [1.0, 10.0]))
        self.assertEqual(nodes, [])
        # Through a window of 64 KiB, both ways.
        rows = 30000
        large = ("x", dflow.FLOAT32, [rows, 2], [float(i % 7) for i in range(2 * rows)])
        ((_, shape, values),), nodes = client.run_session(session, [large], ["y"], trace=True)
        self.assertEqual((shape, values[:3]), ([rows, 3], [4.0, 5.0, 6.0]))
        self.assertIn("y", " ".join(nodes))
        z = [dflow.node("z", "Neg", ["y"], [("T", dflow.FLOAT32)])]
        with self.assertRaisesRegex(dflow.DflowError, "ABORTED.*version"):
            client.extend_session(session, 1, z)
        self.assertEqual(client.extend_session(session, 0, z), (session, 1))
        results, _ = client.run_session(session, [x], ["z"], ["y"])
        self.assertEqual(results, [(dflow.FLOAT32, [1, 3], [-41.0, -52.0, -63.0])])
        with self.assertRaisesRegex(dflow.DflowError, "INVALID_ARGUMENT.*NoSuchOp") as caught:
            client.extend_session(session, 1, [dflow.node("n", "NoSuchOp")])
        self.assertEqual((caught.exception.node, caught.exception.task), ("n", client.server))
        with self.assertRaisesRegex(dflow.DflowError, "NOT_FOUND"):
            client.run_session(session, [x], ["nothing"])
        with self.assertRaisesRegex(dflow.DflowError, "INVALID_ARGUMENT"):
            client.run_session(session, [("x", dflow.FLOAT32, [2], [1.0, 2.0])], ["y"])
        client.reset_cluster(["a container"], ["/job:ps"])
        client.end_session(session)
        with self.assertRaisesRegex(dflow.DflowError, "NOT_FOUND: there is no session"):
            client.run_session(session, [x], ["z"])
        client.close()

    def test_master_keeps_a_partial_run(self):
        client = self.connect()
        scalar = [("shape", dflow.shape_value([]))]
        session, _ = client.create_session([
            dflow.node("a", "Placeholder", types=[("dtype", dflow.FLOAT32)], attrs=scalar),
            dflow.node("b", "Placeholder", types=[("dtype", dflow.FLOAT32)], attrs=scalar),
            dflow.node("y", "Neg", ["a"]),
            dflow.node("z", "Mul", ["y", "b"]),
        ])  # fmt: skip
        run = client.begin_partial_run(session, ["a", "b"], ["y", "z"], trace=True)
        with self.assertRaisesRegex(dflow.DflowError, "INVALID_ARGUMENT.*'y' needs 'a', not fed yet"):
            client.continue_partial_run(run, fetches=["y"])
        ((_, _, y),), _ = client.continue_partial_run(run, [("a", dflow.FLOAT32, [], [3.0])], ["y"])
        self.assertEqual(y, [-3.0])
        ((_, _, z),), nodes = client.continue_partial_run(run, [("b", dflow.FLOAT32, [], [y[0]])], ["z"], until_end=True)
        self.assertEqual(z, [9.0])
        self.assertIn("z", " ".join(nodes))
        client.end_partial_run(run)
        with self.assertRaisesRegex(dflow.DflowError, "NOT_FOUND.*has no partial run"):
            client.continue_partial_run(run, until_end=True)
        client.end_session(session)
        client.close()

    def test_large_request_goes_in_chunks(self):
        client = self.connect()
        device = client.list_devices()[0][0]
        values = [float(i) for i in range(50000)]
        nodes = [
            dflow.node("c", "Const", types=[("dtype", dflow.FLOAT32)],
                       attrs=[("value", dflow.tensor_value(dflow.FLOAT32, [50000], values))]),
            client.send_node("send", dflow.FLOAT32, "c", device, "c:0"),
        ]
        client.register(1, 1, device, ["send"], nodes)
        run = client.start(1, 1, 201, [])
        self.assertEqual(client.receive(201, client.fetch_key(device, "c:0")), (dflow.FLOAT32, [50000], values))
        client.end(run)
        client.close()

    def test_errors_come_back(self):
        client = self.connect()
        device = client.list_devices()[0][0]
        with self.assertRaisesRegex(dflow.DflowError, "NOT_FOUND: this task has no device"):
            client.register(1, 1, device + "7", [], [])
        with self.assertRaisesRegex(dflow.DflowError, "INVALID_ARGUMENT.*NoSuchOp"):
            client.register(1, 1, device, ["n"], [dflow.node("n", "NoSuchOp")])
        with self.assertRaisesRegex(dflow.DflowError, "DATA_LOSS"):
            client.call(dflow.RUN, b"cut")
        with self.assertRaisesRegex(dflow.DflowError, "UNIMPLEMENTED"):
            client.call(99)
        client.register(1, 1, device, ["send_y", "send_z"], self.share(client, device))
        wrong = dflow.tensor(dflow.FLOAT32, [1, 3], [1.0, 2.0, 3.0])
        run = client.start(1, 1, 301, [(client.feed_key(device, "x:0"), wrong)])
        with self.assertRaises(dflow.DflowError) as caught:
            client.end(run)
        self.assertEqual(caught.exception.code, 3)
        self.assertIn("received float[1,3] as 'x:0', wanted float[?,2]", caught.exception.message)
        self.assertEqual((caught.exception.node, caught.exception.task), ("x", client.server))
        # A step that waits for a feed which does not come is cancelled.
        run = client.start(1, 1, 302, [])
        why = dflow.u8(10) + dflow.string("enough") + 4 * dflow.string("")
        client.call(dflow.CANCEL_STEP, dflow.u64(302) + why)
        with self.assertRaisesRegex(dflow.DflowError, "ABORTED.*enough"):
            client.end(run)
        client.close()

    def test_refuses_strangers(self):
        for options, reason in (
            ({"secret": b"another secret of no use"}, "UNAUTHENTICATED.*secret"),
            ({"secret": b""}, "UNAUTHENTICATED.*secret"),
            ({"wanted": "/job:ps/replica:0/task:1"}, "FAILED_PRECONDITION.*was to be reached"),
            ({"task": "a\nb"}, "DATA_LOSS.*control characters"),
        ):
            with self.subTest(options), self.assertRaisesRegex(dflow.DflowError, reason):
                self.connect(**options)

    def test_nonsense_is_answered_with_a_goodbye(self):
        client = self.connect()
        client.socket.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with self.assertRaisesRegex(dflow.DflowError, "INVALID_ARGUMENT: what came is no frame of dflow"):
            client.pump()
        self.assertEqual(len(self.connect().list_devices()), 1)  # others go on


if __name__ == "__main__":
    SERVER = sys.argv.pop(1)
    unittest.main()
