#!/usr/bin/env python3
"""A TCP proxy that treats what it forwards badly, by one seed.

usage: chaos_proxy.py --listen HOST:PORT --to HOST:PORT [--seed N] [--control HOST:PORT] [COMMAND ...]

Its first line on stdout is "listening HOST:PORT" (port 0 is a free one), the second, with --control, "control HOST:PORT".
Each COMMAND is one of the lines below, in quotes, done before anybody connects. Then lines come on stdin, and on any
connection to the control port; each is answered by "ok", "ok TEXT" or "error TEXT". The end of stdin ends the proxy,
unless there is a control port.

  set DIR NAME VALUE   a fault of one direction: DIR is up (from who connects), down (to it) or both
  clear [DIR]          no faults
  cut | reset          ends all connections now, by FIN or by RST
  half-open            forgets all connections: the sockets stay open, and nothing moves any more
  stats                JSON: connections, open, bytes and corrupted bytes each way, cuts, resets
  refuse on|off        new connections are reset at once
  quit

| NAME | VALUE | what |
|---|---|---|
| delay | seconds | each byte comes that much later |
| jitter | seconds | and up to that much more, in order still |
| bandwidth | bytes per second, 0 for no limit | what is beyond waits, and so does in the end who writes |
| cut_after, reset_after | bytes of a connection, counted from its start; -1 for never | a FIN, or an RST, after exactly these |
| cut_rate, reset_rate | 0 to 1 | the same, before a byte, by that chance for each byte |
| corrupt | 0 to 1 | the chance of a byte to have one bit flipped |
| stall | FROM TO, seconds after the connection began; or "on", "off" | nothing is read in that time |

Chance is drawn for each connection and direction from (seed, number of the connection, direction) and by position in its
bytes, so what happens to which byte does not hang on how bytes come in parts. Faults that are set hold for open connections
too.
"""

import argparse
import asyncio
import contextlib
import json
import math
import random
import socket
import struct
import sys
import time

CHUNK = 16 * 1024
# What is under way in one direction at most; beyond that nothing is read.
WINDOW = 256 * 1024
# Seconds in which what a side still sends after a cut is read away.
LINGER = 2.0
DIRECTIONS = ("up", "down")
NUMBERS = {
    "delay": (0.0, 86400.0), "jitter": (0.0, 86400.0), "bandwidth": (0.0, 1e12), "cut_after": (-1, 1 << 62),
    "reset_after": (-1, 1 << 62), "cut_rate": (0.0, 1.0), "reset_rate": (0.0, 1.0), "corrupt": (0.0, 1.0),
}  # fmt: skip


class Faults:
    """The faults of one direction; all connections share them."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.delay = self.jitter = self.bandwidth = 0.0
        self.cut_rate = self.reset_rate = self.corrupt = 0.0
        self.cut_after = self.reset_after = -1
        self.stall = None  # (from, to)

    def set(self, name, values):
        if name == "stall":
            self.stall = read_stall(values)
            return
        if name not in NUMBERS or len(values) != 1:
            raise ValueError(f"'{name}' with {len(values)} values is no fault; these are: {', '.join(NUMBERS)}, stall")
        least, most = NUMBERS[name]
        value = (int if isinstance(least, int) else float)(values[0])
        if not least <= value <= most:
            raise ValueError(f"{name} is {values[0]}, not {least} to {most}")
        setattr(self, name, value)


def read_stall(values):
    if values == ["off"]:
        return None
    if values == ["on"]:
        return (0.0, math.inf)
    start, end = map(float, values)
    if not 0 <= start <= end:
        raise ValueError(f"stall from {start} to {end}")
    return (start, end)


class Chance:
    """Positions in a stream at which something of a rate happens, the same for however it is read."""

    def __init__(self, seed, what):
        self.random = random.Random(f"{seed}/{what}")
        self.rate = None
        self.next = math.inf

    def positions(self, start, end, rate):
        """Of [start, end), in order."""
        if rate != self.rate:
            self.rate = rate
            self.next = start + self.gap()
        while self.next < end:
            yield int(self.next)
            self.next += 1 + self.gap()

    def gap(self):
        """How many bytes go by before the next one, of the geometric distribution."""
        if self.rate <= 0:
            return math.inf
        if self.rate >= 1:
            return 0
        gap = math.log(1.0 - self.random.random()) / math.log1p(-self.rate)
        return math.floor(gap) if gap < 1 << 62 else math.inf


class Ended(Exception):
    """A fault ends the connection: "cut" or "reset"."""


class Pipe:
    """One direction of one connection."""

    def __init__(self, link, direction, reader, writer):
        self.link, self.faults = link, link.proxy.faults[direction]
        self.direction, self.reader, self.writer = direction, reader, writer
        seed = f"{link.proxy.seed}/{link.number}/{direction}"
        self.chances = {what: Chance(seed, what) for what in ("cut", "reset", "corrupt", "bit")}
        self.jitter = random.Random(f"{seed}/jitter")
        self.position = 0
        self.free_at = 0.0  # when the line has sent what it was given
        self.due = 0.0  # when the last byte arrives
        self.queue = asyncio.Queue()
        self.held = 0
        self.room = asyncio.Condition()

    def ending(self, size):
        """How many of the next `size` bytes pass before a fault ends the connection, and which: (size, None) if none."""
        passed, how = size, None
        for name in ("cut", "reset"):
            after = getattr(self.faults, name + "_after")
            places = [max(after - self.position, 0)] if after >= 0 else []
            end = self.position + size
            places += [at - self.position for at in self.chances[name].positions(
                self.position, end, getattr(self.faults, name + "_rate"))]  # fmt: skip
            if places and (min(places) < passed or (min(places) == passed and how is None)):
                passed, how = min(places), name
        return passed, how

    def changed(self, data):
        data = bytearray(data)
        start = self.position
        for at in self.chances["corrupt"].positions(start, start + len(data), self.faults.corrupt):
            data[at - start] ^= 1 << self.chances["bit"].random.randrange(8)
            self.link.proxy.corrupted[self.direction] += 1
        self.position += len(data)
        return bytes(data)

    async def wait_for_stall(self):
        while self.faults.stall:
            age = time.monotonic() - self.link.began
            start, end = self.faults.stall
            if not start <= age < end:
                return
            # Faults may change meanwhile.
            await asyncio.sleep(min(end - age, 0.02))

    async def read(self):
        while True:
            await self.wait_for_stall()
            async with self.room:
                await self.room.wait_for(lambda: self.held < WINDOW)
            data = await self.reader.read(CHUNK)
            await self.wait_for_stall()  # one that began while nothing came
            if not data:
                await self.queue.put((self.due, b"", None))
                return
            passed, how = self.ending(len(data))
            data = self.changed(data[:passed])
            now = time.monotonic()
            if data:
                self.free_at = max(self.free_at, now)
                # A slow line sends small parts, or its first byte would come as late as its last.
                slow = self.faults.bandwidth
                step = max(1, min(len(data), int(slow / 50))) if slow > 0 else len(data)
                for at in range(0, len(data), step):
                    part = data[at : at + step]
                    if slow > 0:
                        self.free_at += len(part) / slow
                    late = self.faults.delay + self.faults.jitter * self.jitter.random()
                    self.due = max(self.due, self.free_at + late)
                    self.held += len(part)
                    await self.queue.put((self.due, part, None))
            if how:
                await self.queue.put((self.due, b"", how))
                return

    async def write(self):
        while True:
            due, data, how = await self.queue.get()
            late = due - time.monotonic()
            if late > 0:
                await asyncio.sleep(late)
            if how:
                raise Ended(how)
            if not data:
                if self.writer.can_write_eof():
                    self.writer.write_eof()
                return
            self.writer.write(data)
            await self.writer.drain()
            self.link.proxy.bytes[self.direction] += len(data)
            async with self.room:
                self.held -= len(data)
                self.room.notify_all()


class Link:
    """A connection and the one that is made for it."""

    def __init__(self, proxy, number, client):
        self.proxy, self.number, self.client, self.server = proxy, number, client, None
        self.began = time.monotonic()
        self.stop = asyncio.get_running_loop().create_future()
        self.task = asyncio.current_task()

    async def run(self):
        reader, writer = self.client
        try:
            self.server = await asyncio.open_connection(*self.proxy.target)
        except OSError:
            self.reset()
            return
        pipes = [Pipe(self, "up", reader, self.server[1]), Pipe(self, "down", self.server[0], writer)]
        steps = [asyncio.ensure_future(step) for pipe in pipes for step in (pipe.read(), pipe.write())]
        work = asyncio.gather(*steps)
        how = "end"
        try:
            await asyncio.wait({work, self.stop}, return_when=asyncio.FIRST_COMPLETED)
            if self.stop.done():
                how = self.stop.result()
            else:
                work.result()
        except Ended as fault:
            how = str(fault)
        except OSError:  # one side is gone, and so the other
            how = "gone"
        finally:
            for step in steps:
                step.cancel()
            await asyncio.gather(work, *steps, return_exceptions=True)
        await self.end(how)

    async def end(self, how):
        if how in self.proxy.ends:
            self.proxy.ends[how] += 1
        if how == "half-open":
            self.proxy.forgotten.append(self)  # or its sockets would be closed
            for writer in self.sides():
                with contextlib.suppress(RuntimeError):  # it is closing
                    writer.transport.pause_reading()
        elif how in ("reset", "gone"):
            self.reset()
        else:
            if how == "cut":
                await self.discard()
            self.close()

    async def discard(self):
        """Says the end to both sides, and reads what still comes: a socket that is closed before that sends an RST."""

        async def read_away(reader):
            while await reader.read(CHUNK):
                pass

        async def one(reader, writer):
            with contextlib.suppress(OSError, RuntimeError, asyncio.TimeoutError):
                writer.write_eof()
                await asyncio.wait_for(read_away(reader), LINGER)

        await asyncio.gather(*(one(*side) for side in (self.client, self.server)))

    def sides(self):
        return [side[1] for side in (self.client, self.server) if side]

    def close(self):
        for writer in self.sides():
            writer.close()

    def reset(self):
        for writer in self.sides():
            reset(writer)


def reset(writer):
    """Closes with an RST: with a lingering time of zero."""
    raw = writer.get_extra_info("socket")
    if raw is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class ChaosProxy:
    def __init__(self, target, seed=0):
        self.target, self.seed = target, seed
        self.faults = {direction: Faults() for direction in DIRECTIONS}
        self.bytes = dict.fromkeys(DIRECTIONS, 0)
        self.corrupted = dict.fromkeys(DIRECTIONS, 0)
        self.ends = {"cut": 0, "reset": 0}
        self.count = 0
        self.is_refusing = False
        self.links = set()
        self.forgotten = []
        self.servers = []
        self.ended = asyncio.Event()

    async def listen(self, host, port):
        """Returns the address."""
        server = await asyncio.start_server(self.serve, host, port, limit=CHUNK)
        self.servers.append(server)
        return server.sockets[0].getsockname()[:2]

    async def listen_for_control(self, host, port):
        async def serve(reader, writer):
            with contextlib.suppress(asyncio.CancelledError, OSError, ValueError):
                while line := await reader.readline():
                    writer.write((self.command(line.decode(errors="replace")) + "\n").encode())
                    await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, host, port)
        self.servers.append(server)
        return server.sockets[0].getsockname()[:2]

    async def serve(self, reader, writer):
        number, self.count = self.count, self.count + 1
        if self.is_refusing:
            reset(writer)
            return
        link = Link(self, number, (reader, writer))
        self.links.add(link)
        try:
            await link.run()
        except asyncio.CancelledError:
            link.reset()
        finally:
            self.links.discard(link)

    def command(self, line):
        """Does what a line says, and answers."""
        try:
            text = self.do(line.split())
            return f"ok {text}" if text else "ok"
        except (ValueError, TypeError) as error:
            return f"error {error}"

    def do(self, words):
        name, *rest = words or [""]
        if name == "set" and len(rest) >= 2:
            for direction in directions(rest[0]):
                self.faults[direction].set(rest[1], rest[2:])
        elif name == "clear" and len(rest) <= 1:
            for direction in directions(*rest or ["both"]):
                self.faults[direction].clear()
        elif name in ("cut", "reset", "half-open") and not rest:
            self.end_all(name)
        elif name == "refuse" and rest in (["on"], ["off"]):
            self.is_refusing = rest == ["on"]
        elif name == "stats" and not rest:
            return json.dumps({"connections": self.count, "open": len(self.links), "bytes": self.bytes,
                               "corrupted": self.corrupted, "cuts": self.ends["cut"], "resets": self.ends["reset"]})  # fmt: skip
        elif name == "quit" and not rest:
            self.ended.set()
        else:
            raise ValueError(f"'{' '.join(words)}' is no command")
        return ""

    def end_all(self, how):
        for link in self.links:
            if not link.stop.done():
                link.stop.set_result(how)

    async def close(self):
        for server in self.servers:
            server.close()
        tasks = [link.task for link in self.links]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for link in self.forgotten:
            link.reset()


def directions(name):
    if name == "both":
        return DIRECTIONS
    if name not in DIRECTIONS:
        raise ValueError(f"'{name}' is no direction: up, down and both are")
    return (name,)


def address(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)


async def follow_stdin(proxy, ends_proxy):
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        print(proxy.command(line.decode(errors="replace")), flush=True)
    if ends_proxy:
        proxy.ended.set()


async def run(options):
    proxy = ChaosProxy(options.to, options.seed)
    for command in options.command:
        answer = proxy.command(command)
        if answer.startswith("error"):
            sys.exit(f"chaos_proxy: {command}: {answer}")
    print("listening %s:%d" % await proxy.listen(*options.listen), flush=True)
    if options.control:
        print("control %s:%d" % await proxy.listen_for_control(*options.control), flush=True)
    follower = asyncio.ensure_future(follow_stdin(proxy, not options.control))
    await proxy.ended.wait()
    follower.cancel()
    await proxy.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", type=address, required=True, metavar="HOST:PORT")
    parser.add_argument("--to", type=address, required=True, metavar="HOST:PORT")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--control", type=address, metavar="HOST:PORT")
    parser.add_argument("command", nargs="*")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
