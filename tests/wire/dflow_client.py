"""A client of dflow's servers, as docs/wire-format.md describes the protocol, with nothing but Python's standard library."""

import hashlib
import hmac
import os
import socket
import struct

HELLO, PROOF, REQUEST, REPLY, CANCEL, CHUNK, CREDIT, PING, PONG, GOODBYE = range(1, 11)
OF_REPLY, IS_ERROR, IS_POST = 1, 2, 4
LIST_DEVICES, REGISTER, FORGET, CLOSE, RUN, CANCEL_STEP, RECEIVE, PUSH = range(1, 9)
CREATE_SESSION, EXTEND_SESSION, RUN_SESSION, END_SESSION, LIST_CLUSTER_DEVICES, RESET_CLUSTER, RESET_TASK = range(10, 17)
BEGIN_PARTIAL_RUN, CONTINUE_PARTIAL_RUN, END_PARTIAL_RUN = range(18, 21)
CODES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED "
    "FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
).split()
FLOAT32, INT32, STRING = 1, 3, 7
FORMATS = {FLOAT32: "f", INT32: "i"}


class DflowError(Exception):
    def __init__(self, code, message, op="", node="", device="", task=""):
        super().__init__(f"{CODES[code] if code < len(CODES) else 'UNKNOWN'}: {message}")
        self.code, self.message, self.op, self.node, self.device, self.task = code, message, op, node, device, task


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


# ---- writing ----


def u8(n):
    return struct.pack("<B", n)


def u64(n):
    return struct.pack("<Q", n)


def i64(n):
    return struct.pack("<q", n)


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def signed_varint(n):
    return varint((n << 1 ^ n >> 63) & (1 << 64) - 1)


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return varint(len(data)) + data


def listed(items):
    return varint(len(items)) + b"".join(items)


def names(texts):
    return listed([string(text) for text in texts])


def elements_of(dtype, values):
    if dtype == STRING:
        return b"".join(string(value) for value in values)
    return struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)


def tensor(dtype, shape, values):
    head = b"\0" + u8(dtype) + u8(len(shape)) + b"".join(varint(dim) for dim in shape)
    return head + string(elements_of(dtype, values))


def share_name(session, share):
    return u64(session) + u64(share)


# Values of attributes.


def truth(value):
    return b"\1" + u8(value)


def integer(value):
    return b"\2" + i64(value - (1 << 64) if value >= 1 << 63 else value)


def text(value):
    return b"\4" + string(value)


def shape_value(dims):
    return b"\6" + (signed_varint(-1) if dims is None else signed_varint(len(dims)) + b"".join(map(signed_varint, dims)))


def tensor_value(dtype, dims, values):
    data = elements_of(dtype, values)
    return b"\7" + u8(dtype) + shape_value(dims)[1:] + (data if dtype == STRING else string(data))


def node(name, op, inputs=(), types=(), attrs=()):
    return (
        string(name)
        + string(op)
        + string("")
        + listed([string(param) + u8(dtype) for param, dtype in types])
        + listed([string(edge) for edge in inputs])
        + listed([string(attr) + value for attr, value in attrs])
        + string("")
        + string("")
        + varint(0)
    )


def graph(nodes):
    body = struct.pack("<I", 1) + u64(0) + listed(nodes) + varint(0)
    crc = crc32c(body)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return b"dfGRAPH\n" + struct.pack("<I", masked) + body


# ---- reading ----


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        if size > len(self.data) - self.at:
            raise ValueError("cut short")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def string(self):
        return self.take(self.varint())

    def text(self):
        return self.string().decode()

    def end(self):
        if self.at != len(self.data):
            raise ValueError("bytes left over")

    def rest(self):
        return self.take(len(self.data) - self.at)


def read_status(reader):
    code = reader.number("B")
    return None if code == 0 else DflowError(code, *[reader.text() for _ in range(5)])


def read_head(reader):
    """(type, shape) of a tensor, or None of a dead one."""
    if reader.number("B"):
        return None
    dtype, rank = reader.number("B"), reader.number("B")
    return dtype, [reader.varint() for _ in range(rank)]


def read_pushed(reader):
    """(key, elements) of a tensor that was sent unasked; None for the elements of a dead one."""
    key = reader.text()
    is_dead = reader.number("B")
    head = None if is_dead else read_head(reader)
    return key, None if is_dead else read_elements(head, reader.string())


def read_run_reply(reader):
    """The tensors, and the names of the nodes, in a RunShareReply."""
    reader.take(8 + 8)  # when the request came and was answered
    tensors = [read_pushed(reader) for _ in range(reader.varint())]
    nodes = []
    if not reader.number("B"):
        return tensors, nodes
    reader.take(8 + 8 + 8)
    for _ in range(reader.varint()):
        nodes.append(reader.text())
        reader.string(), reader.string()
        reader.take(8 + 8 + 4 + 8)
        reader.string()
    return tensors, nodes


def read_elements(head, data):
    dtype, shape = head
    count = 1
    for dim in shape:
        count *= dim
    if dtype == STRING:
        reader = Reader(data)
        values = [reader.string() for _ in range(count)]
        reader.end()
        return values
    return list(struct.unpack(f"<{count}{FORMATS[dtype]}", data))


# ---- the connection ----


class Client:
    """One control connection with one task. Blocks; for one thread."""

    def __init__(self, host, port, secret, task="/job:client/replica:0/task:7", window=1 << 16, wanted="", timeout=60):
        self.secret, self.task, self.window, self.wanted = secret, task, window, wanted
        self.incarnation = int.from_bytes(os.urandom(8), "little") or 1
        self.device = task + "/device:CPU:0"
        self.next_request, self.replies, self.errors, self.pushed = 1, {}, {}, {}
        self.payloads, self.taken, self.credit, self.credit_frames = {}, 0, 0, 0
        self.socket = socket.create_connection((host, port), timeout)
        try:
            self._shake_hands()
        except BaseException:
            self.socket.close()
            raise

    def _shake_hands(self):
        kind, _, _, theirs = self.read_frame()
        if kind != HELLO:
            raise ValueError("no hello")
        reader = Reader(theirs)
        role, _, _ = reader.number("B"), reader.number("B"), reader.take(32)
        if role != 2:
            raise ValueError("the server is no acceptor")
        self.cluster, self.server = reader.text(), reader.text()
        self.server_incarnation, fingerprint = reader.number("Q"), reader.number("Q")
        reader.string()
        self.credit = reader.number("Q")
        reader.end()
        mine = b"\1\1" + os.urandom(32) + string(self.cluster) + string(self.task)
        mine += u64(self.incarnation) + u64(fingerprint) + string(self.wanted) + u64(self.window)
        self.send(HELLO, 0, mine)
        self.send(PROOF, 0, self._proof(1, mine, theirs))
        kind, _, _, payload = self.read_frame()
        if kind == GOODBYE:
            raise read_status(Reader(payload))
        if kind != PROOF or not hmac.compare_digest(payload, self._proof(2, mine, theirs)):
            raise DflowError(16, "the server does not know the cluster's secret")

    def _proof(self, role, connectors, acceptors):
        said = b"dflow handshake 1" + u8(role) + u64(len(connectors)) + connectors + u64(len(acceptors)) + acceptors
        return hmac.new(self.secret, said, hashlib.sha256).digest()

    def send(self, kind, request, payload=b"", flags=0):
        header = struct.pack("<4sBBHQQI", b"dflw", 1, kind, flags, len(payload), request, crc32c(payload))
        self.socket.sendall(header + struct.pack("<I", crc32c(header)) + payload)

    def _receive(self, size):
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the server has gone")
            data += piece
        return bytes(data)

    def read_frame(self):
        """(type, flags, request, payload)"""
        header = self._receive(32)
        magic, version, kind, flags, length, request, crc, header_crc = struct.unpack("<4sBBHQQII", header)
        if magic != b"dflw" or version != 1 or header_crc != crc32c(header[:28]):
            raise ValueError("no frame of dflow")
        payload = self._receive(length)
        if crc != crc32c(payload):
            raise ValueError("a wrong checksum")
        return kind, flags, request, payload

    def pump(self):
        """Takes one frame."""
        kind, flags, request, payload = self.read_frame()
        reader = Reader(payload)
        if kind == REPLY and flags & IS_ERROR:
            self.errors[request] = read_status(reader)
        elif kind == REPLY:
            size = reader.number("Q")
            if size == 0:
                self.replies[request] = reader.rest(), b""
            else:
                self.payloads[request] = size, reader.rest(), bytearray()
        elif kind == CHUNK and flags & OF_REPLY:
            size, body, data = self.payloads[request]
            data += payload
            if len(data) == size:
                del self.payloads[request]
                self.replies[request] = body, bytes(data)
            self.taken += len(payload)
            if self.taken >= self.window // 4:
                self.send(CREDIT, 0, u64(self.taken))
                self.taken = 0
                self.credit_frames += 1
        elif kind == CREDIT:
            self.credit += reader.number("Q")
        elif kind == PING:
            self.send(PONG, request, payload)
        elif kind == GOODBYE:
            raise read_status(reader) or ConnectionError("the server has said goodbye")
        elif kind == REQUEST:
            self._serve(flags, request, reader)
        elif kind not in (PONG, CANCEL):
            raise ValueError(f"an unexpected frame of type {kind}")

    def _serve(self, flags, request, reader):
        method, size = reader.number("H"), reader.number("Q")
        if not flags & IS_POST:
            refusal = u8(12) + string(f"a thin client has no method {method}") + 4 * string("")
            self.send(REPLY, request, refusal, IS_ERROR)
        elif method == PUSH and size == 0:
            step = reader.number("Q")
            key, elements = read_pushed(reader)
            self.pushed[step, key] = elements

    def begin(self, method, body=b"", payload=b""):
        """Sends a request; returns its number."""
        request = self.next_request
        self.next_request += 1
        self.send(REQUEST, request, struct.pack("<HQ", method, len(payload)) + body)
        while payload:
            while self.credit == 0:
                self.pump()
            size = min(self.credit, 1 << 16, len(payload))
            self.send(CHUNK, request, payload[:size])
            payload, self.credit = payload[size:], self.credit - size
        return request

    def end(self, request):
        """Waits for its reply: (body, payload)."""
        while request not in self.replies:
            if request in self.errors:
                raise self.errors.pop(request)
            self.pump()
        return self.replies.pop(request)

    def end_run(self, request, step):
        """Waits for the end of a run; what comes with it is found in `pushed`. Returns how many tensors those are."""
        reader = Reader(self.end(request)[0])
        tensors, _ = read_run_reply(reader)
        reader.end()
        self.pushed.update({(step, key): elements for key, elements in tensors})
        return len(tensors)

    def call(self, method, body=b"", payload=b""):
        return self.end(self.begin(method, body, payload))

    def close(self):
        self.send(GOODBYE, 0, b"\0")
        self.socket.close()

    # ---- what is called ----

    def list_devices(self, method=LIST_DEVICES, body=b""):
        """[(name, type, incarnation, memory, attributes)]"""
        reader = Reader(self.call(method, body)[0])
        devices = []
        for _ in range(reader.varint()):
            name, kind, incarnation, memory = reader.text(), reader.text(), reader.number("Q"), reader.text()
            attributes = {}
            for _ in range(reader.varint()):
                attribute = reader.text()
                attributes[attribute] = reader.text()
            devices.append((name, kind, incarnation, memory, attributes))
        reader.end()
        return devices

    def list_cluster_devices(self, filters=()):
        return self.list_devices(LIST_CLUSTER_DEVICES, names(filters))

    def create_session(self, nodes, filters=()):
        """(session, version)"""
        body = i64(0) + b"\0" + b"\0" + names(filters)
        return self._version(self.call(CREATE_SESSION, body, graph(nodes)))

    def extend_session(self, session, version, nodes):
        return self._version(self.call(EXTEND_SESSION, u64(session) + u64(version), graph(nodes)))

    @staticmethod
    def _version(reply):
        reader = Reader(reply[0])
        session, version = reader.number("Q"), reader.number("Q")
        reader.end()
        return session, version

    def run_session(self, session, feeds, fetches, targets=(), time_left_ns=0, trace=False):
        """`feeds`: (edge, type, shape, values). Returns the fetches, (type, shape, values), and the names of nodes that ran."""
        described, payload = self._feeds(feeds)
        body = u64(session) + i64(time_left_ns) + u8(trace) + described + names(fetches) + names(targets)
        return self._fetched(self.call(RUN_SESSION, body, payload))

    @staticmethod
    def _feeds(feeds):
        described, payload = [], b""
        for edge, dtype, shape, values in feeds:
            data = elements_of(dtype, values)
            head = b"\0" + u8(dtype) + u8(len(shape)) + b"".join(varint(dim) for dim in shape)
            described.append(string(edge) + head + varint(len(data)))
            payload += data
        return listed(described), payload

    @staticmethod
    def _fetched(reply):
        reader, elements = Reader(reply[0]), Reader(reply[1])
        _, nodes = read_run_reply(reader)
        results = []
        for _ in range(reader.varint()):
            head = read_head(reader)
            results.append((*head, read_elements(head, elements.take(reader.varint()))))
        reader.end()
        elements.end()
        return results, nodes

    def begin_partial_run(self, session, feeds, fetches, targets=(), time_left_ns=0, trace=False):
        """`feeds`: edges. Returns the run."""
        body = u64(session) + i64(time_left_ns) + u8(trace) + names(feeds) + names(fetches) + names(targets)
        return self._version(self.call(BEGIN_PARTIAL_RUN, body))

    def continue_partial_run(self, run, feeds=(), fetches=(), until_end=False):
        """Takes feeds and returns fetches as `run_session` does."""
        described, payload = self._feeds(feeds)
        body = u64(run[0]) + u64(run[1]) + described + names(fetches) + u8(until_end)
        return self._fetched(self.call(CONTINUE_PARTIAL_RUN, body, payload))

    def end_partial_run(self, run):
        self.call(END_PARTIAL_RUN, u64(run[0]) + u64(run[1]))

    def end_session(self, session):
        self.call(END_SESSION, share_name(session, 0))

    def reset_cluster(self, containers=(), filters=()):
        self.call(RESET_CLUSTER, names(containers) + names(filters))

    def register(self, session, share, device, targets, nodes):
        partition = string(device) + listed([string(target) for target in targets]) + string(graph(nodes))
        self.call(REGISTER, share_name(session, share), listed([partition]))

    def start(self, session, share, step, feeds, time_left_ns=0, trace=False):
        """Begins a run; `feeds`: keys and tensors. Returns the number of the request."""
        body = share_name(session, share) + u64(step) + i64(time_left_ns) + u8(trace)
        return self.begin(RUN, body + listed([string(key) + b"\0" + value for key, value in feeds]))

    def receive(self, step, key):
        """(type, shape, values), or None of a dead tensor."""
        body, data = self.call(RECEIVE, u64(step) + string(key))
        reader = Reader(body)
        head = read_head(reader)
        reader.end()
        return None if head is None else (*head, read_elements(head, data))

    def recv_node(self, name, dtype, to_device, tensor_name, shape=None):
        """A node by which the server gets what this client feeds."""
        attrs = self._edge(tensor_name, self.device, to_device, self.incarnation, True)
        return node(name, "_Recv", types=[("tensor_type", dtype)], attrs=[*attrs, ("shape", shape_value(shape))])

    def send_node(self, name, dtype, source, from_device, tensor_name, pushed=False):
        """A node by which this client gets an output: pushed, or when it asks for it."""
        attrs = self._edge(tensor_name, from_device, self.device, self.server_incarnation, pushed)
        return node(name, "_Send", [source], [("T", dtype)], attrs)

    @staticmethod
    def _edge(tensor_name, source, destination, incarnation, pushed):
        return [
            ("tensor_name", text(tensor_name)),
            ("send_device", text(source)),
            ("recv_device", text(destination)),
            ("send_device_incarnation", integer(incarnation)),
            ("pushed", truth(pushed)),
        ]

    def feed_key(self, device, tensor_name):
        return f"{self.device};{self.incarnation:x};{device};{tensor_name};:0"

    def fetch_key(self, device, tensor_name):
        return f"{device};{self.server_incarnation:x};{self.device};{tensor_name};:0"
