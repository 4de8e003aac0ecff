#!/usr/bin/env python3
"""tests/rigs/chaos_proxy.py forwards what it is given, and each fault does what its line says."""

import asyncio
import contextlib
import hashlib
import json
import random
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from chaos_proxy import Chance, ChaosProxy  # noqa: E402

PROGRAM = Path(__file__).resolve().parent / "chaos_proxy.py"
LIMIT = 30  # seconds, for what must end


async def echo(reader, writer):
    with contextlib.suppress(OSError, asyncio.CancelledError):
        while data := await reader.read(4096):
            writer.write(data)
            await writer.drain()
        writer.close()


class Positions(unittest.TestCase):
    def test_chance_does_not_hang_on_the_parts(self):
        whole = list(Chance(1, "x").positions(0, 10000, 0.01))
        parts, chance = [], Chance(1, "x")
        for start in range(0, 10000, 7):
            parts += chance.positions(start, min(start + 7, 10000), 0.01)
        self.assertEqual(parts, whole)
        self.assertTrue(50 < len(whole) < 200, len(whole))
        self.assertEqual(list(Chance(1, "x").positions(0, 5, 1.0)), [0, 1, 2, 3, 4])
        self.assertEqual(list(Chance(1, "x").positions(0, 5, 0.0)), [])


class Faults(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.server = await asyncio.start_server(echo, "127.0.0.1", 0)
        self.proxies = []

    async def asyncTearDown(self):
        for proxy in self.proxies:
            await proxy.close()
        self.server.close()

    async def proxy(self, *commands, seed=7):
        proxy = ChaosProxy(self.server.sockets[0].getsockname()[:2], seed)
        self.proxies.append(proxy)
        self.address = await proxy.listen("127.0.0.1", 0)
        for command in commands:
            self.assertEqual(proxy.command(command), "ok")
        return proxy

    async def connect(self):
        reader, writer = await asyncio.open_connection(*self.address)
        self.addCleanup(writer.close)
        return reader, writer

    async def echoed(self, data):
        """What comes back of `data`, and how it ended: "end" or "reset"."""
        reader, writer = await self.connect()
        got, how = b"", "end"
        try:
            writer.write(data)
            writer.write_eof()
            while part := await asyncio.wait_for(reader.read(65536), LIMIT):
                got += part
        except ConnectionError:
            how = "reset"
        return got, how

    def stats(self, proxy):
        return json.loads(proxy.command("stats")[3:])

    async def test_without_faults_all_is_forwarded_both_ways(self):
        proxy = await self.proxy()
        data = random.Random(1).randbytes(1_000_000)
        self.assertEqual(await self.echoed(data), (data, "end"))
        results = await asyncio.gather(*(self.echoed(data[:i]) for i in range(1, 30)))
        self.assertEqual([len(got) for got, _ in results], list(range(1, 30)))
        self.assertEqual(self.stats(proxy)["connections"], 30)
        self.assertEqual(self.stats(proxy)["bytes"]["up"], self.stats(proxy)["bytes"]["down"])

    async def test_a_cut_and_a_reset_come_after_their_bytes(self):
        proxy = await self.proxy("set down cut_after 12345")
        self.assertEqual(await self.echoed(b"x" * 100_000), (b"x" * 12345, "end"))
        await self.proxy("set down reset_after 1000")
        got, how = await self.echoed(b"x" * 100_000)
        self.assertEqual(how, "reset")
        self.assertLessEqual(len(got), 1000)
        await self.proxy("set up cut_after 0")
        self.assertEqual((await self.echoed(b"x"))[0], b"")
        self.assertEqual(self.stats(proxy)["cuts"], 1)

    async def test_a_cut_by_rate_is_the_same_for_the_same_seed(self):
        lengths = []
        for seed in (1, 1, 2):
            await self.proxy("set up cut_rate 0.0001", seed=seed)
            before = self.proxies[-1]
            await self.echoed(b"x" * 500_000)
            lengths.append(self.stats(before)["bytes"]["up"])
        self.assertEqual(lengths[0], lengths[1])
        self.assertNotEqual(lengths[0], lengths[2])

    async def test_corrupt_bytes_have_one_bit_flipped_and_hang_on_the_seed(self):
        data, digests = bytes(200_000), []
        for seed in (3, 3, 4):
            proxy = await self.proxy("set up corrupt 0.001", seed=seed)
            got, _ = await self.echoed(data)
            self.assertEqual(len(got), len(data))
            bad = [byte for byte in got if byte]
            self.assertEqual(len(bad), self.stats(proxy)["corrupted"]["up"])
            self.assertTrue(100 < len(bad) < 400, len(bad))
            self.assertTrue(all(byte.bit_count() == 1 for byte in bad))
            digests.append(hashlib.sha256(got).digest())
        self.assertEqual(digests[0], digests[1])
        self.assertNotEqual(digests[0], digests[2])

    async def test_delay_and_bandwidth_take_at_least_their_time(self):
        await self.proxy("set both delay 0.1", "set up jitter 0.05")
        began = time.monotonic()
        self.assertEqual(await self.echoed(b"ping" * 1000), (b"ping" * 1000, "end"))
        self.assertGreaterEqual(time.monotonic() - began, 0.2)
        await self.proxy("set up bandwidth 100000")
        began = time.monotonic()
        self.assertEqual((await self.echoed(b"x" * 30_000))[0], b"x" * 30_000)
        self.assertGreaterEqual(time.monotonic() - began, 0.29)

    async def test_a_stall_stops_reading_until_it_ends(self):
        proxy = await self.proxy("set up stall on")
        reader, writer = await self.connect()
        writer.write(b"x" * 50_000_000)  # more than all buffers on the way hold
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(writer.drain(), 0.2)
        self.assertEqual(self.stats(proxy)["bytes"]["up"], 0)
        proxy.command("set up stall off")
        self.assertEqual(await asyncio.wait_for(reader.readexactly(1000), LIMIT), b"x" * 1000)
        writer.transport.abort()
        await self.proxy("set up stall 0 0.3")
        began = time.monotonic()
        self.assertEqual(await self.echoed(b"late"), (b"late", "end"))
        self.assertGreaterEqual(time.monotonic() - began, 0.28)

    async def test_open_connections_are_ended_at_once(self):
        for command, how in (("cut", "end"), ("reset", "reset")):
            proxy = await self.proxy()
            reader, writer = await self.connect()
            writer.write(b"hello")
            self.assertEqual(await asyncio.wait_for(reader.readexactly(5), LIMIT), b"hello")
            self.assertEqual(proxy.command(command), "ok")
            got = "end"
            try:
                self.assertEqual(await asyncio.wait_for(reader.read(1), LIMIT), b"")
            except ConnectionError:
                got = "reset"
            self.assertEqual(got, how)

    async def test_a_half_open_connection_moves_nothing_and_does_not_end(self):
        proxy = await self.proxy()
        reader, writer = await self.connect()
        writer.write(b"hello")
        await asyncio.wait_for(reader.readexactly(5), LIMIT)
        proxy.command("half-open")
        writer.write(b"again")
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.2)
        self.assertEqual(await self.echoed(b"new one"), (b"new one", "end"))

    async def test_connections_may_be_refused(self):
        proxy = await self.proxy("refuse on")
        self.assertEqual((await self.echoed(b"x"))[0], b"")
        proxy.command("refuse off")
        self.assertEqual((await self.echoed(b"x"))[0], b"x")

    async def test_commands_that_are_none_are_errors(self):
        proxy = await self.proxy()
        for line in ("", "set", "set up", "set up delay", "set up delay x", "set up delay -1", "set side delay 1",
                     "set up corrupt 2", "set up stall 2 1", "set up stall", "set up color 1", "cut 3", "refuse",
                     "set up delay nan"):  # fmt: skip
            self.assertTrue(proxy.command(line).startswith("error "), line)

    async def test_the_program_is_led_by_lines(self):
        host, port = self.server.sockets[0].getsockname()[:2]
        run = await asyncio.create_subprocess_exec(
            sys.executable, PROGRAM, "--listen=127.0.0.1:0", f"--to={host}:{port}", "--control=127.0.0.1:0", "--seed=3",
            "set down cut_after 3", stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        try:
            lines = [(await asyncio.wait_for(run.stdout.readline(), LIMIT)).decode().split() for _ in range(2)]
            self.assertEqual([line[0] for line in lines], ["listening", "control"])
            self.address = tuple(lines[0][1].split(":"))
            self.assertEqual(await self.echoed(b"abcdef"), (b"abc", "end"))
            run.stdin.write(b"clear\nwrong\n")
            self.assertEqual(await asyncio.wait_for(run.stdout.readline(), LIMIT), b"ok\n")
            self.assertEqual(await asyncio.wait_for(run.stdout.readline(), LIMIT), b"error 'wrong' is no command\n")
            self.assertEqual(await self.echoed(b"abcdef"), (b"abcdef", "end"))
            reader, writer = await asyncio.open_connection(*lines[1][1].split(":"))
            writer.write(b"stats\nquit\n")
            self.assertEqual(json.loads((await asyncio.wait_for(reader.readline(), LIMIT))[3:])["connections"], 2)
            self.assertEqual(await asyncio.wait_for(run.wait(), LIMIT), 0)
            writer.close()
        finally:
            if run.returncode is None:
                run.kill()
                await run.wait()


if __name__ == "__main__":
    unittest.main()
