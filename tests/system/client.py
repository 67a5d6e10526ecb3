"""What the Python parts of the system tests share: a client of each face, checks that count."""
import contextlib
import ctypes
from http.client import HTTPConnection
import json
import mmap
import os
import re
import signal
import socket
import sys
import threading
import time

PORT = int(os.environ.get("PORT", "0"))
SOCKET = os.environ["RNBD_SOCKET"]
PID = int(os.environ.get("PID") or 0)
T = os.environ["T"]
findings = 0


def check(good, sentence, *more):
    """Counts a finding unless good; goes on."""
    global findings
    if not good:
        findings += 1
        print("finding:", sentence, *[repr(m)[:600] for m in more])
    return bool(good)


def done():
    sys.exit(1 if findings else 0)


def wait_for(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return check(False, f"waited in vain for {what}")


# -- control ------------------------------------------------------------------------------------

class Rpc:
    """One connection to the control socket."""

    def __init__(self, timeout=60):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(timeout)
        self.sock.connect(SOCKET)
        self.file = self.sock.makefile("rb")
        self.last = 0

    def send(self, method, **params):
        self.last += 1
        self.raw(json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}))
        return self.last

    def raw(self, line):
        self.sock.sendall((line if isinstance(line, bytes) else line.encode()) + b"\n")

    def read(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def answer(self, number, notes=None):
        while True:
            m = self.read()
            if m is None or m.get("id") == number:
                return m
            if notes is not None and "method" in m:
                notes.append(m)

    def call(self, method, **params):
        return self.answer(self.send(method, **params))

    def begin_long(self, n=8000, **more):
        """Begins an answer of the slow model that goes on until n tokens or its end by somebody; returns the call's number."""
        number = self.send("generate", **{"model": "slow", "prompt": "x", "max_tokens": n, "ignore_eos": True, **more})
        while True:
            m = self.read()
            if m is None or m.get("id") == number:
                check(False, "a long answer begins", m)
                return number
            if m.get("method") == "text":
                return number

    def close(self):
        self.file.close()
        self.sock.close()


def rpc(method, **params):
    """Result of a call that must succeed."""
    c = Rpc()
    m = c.call(method, **params)
    c.close()
    if not check(m and "result" in m, f"{method} {params} was refused", m):
        return {}
    return m["result"]


def requests():
    return rpc("request.list")["requests"]


def used():
    """Bytes of the ledger by account."""
    return {a["name"]: a["bytes"] for a in rpc("memory.report")["pools"][0]["accounts"]}


def rss():
    with open(f"/proc/{PID}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s*(\d+) kB", f.read()).group(1)) * 1024


def idle():
    s = rpc("server.status")["engine"]
    return s["running"] == 0 and s["waiting"] == 0


class FullLog:
    """A pipe that rnbd logs to, full: a thread with a line for it stands there until it is emptied."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        for size in (4096, 1):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(self.fd, b"." * size)

    def empty(self):
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 65536):
                pass
        os.close(self.fd)


# -- HTTP ---------------------------------------------------------------------------------------

class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


def http(method, path, body=None, headers=None, connection=None):
    """One request; a body that is no bytes is sent as JSON."""
    c = connection or http_connection()
    headers = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        headers.setdefault("Content-Type", "application/json")
    c.request(method, path, body, headers)
    a = Answer(c.getresponse())
    if connection is None:
        c.close()
    return a


def http_connection(timeout=60):
    return HTTPConnection("127.0.0.1", PORT, timeout=timeout)


def chat_body(text="hello", **more):
    return {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": 16, "seed": 1, **more}


def long_body(n=4000, **more):
    """A chat with the slow model that goes on until it is ended."""
    return chat_body(model="slow", **{"max_tokens": n, "ignore_eos": True, **more})


def chat(text="hello", **more):
    return http("POST", "/v1/chat/completions", chat_body(text, **more))


def raw_request(body, path="/v1/chat/completions", headers=""):
    data = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{headers}"
            f"Content-Length: {len(data)}\r\n\r\n").encode() + data


def connect(timeout=60):
    s = socket.create_connection(("127.0.0.1", PORT), timeout)
    return s


def read_all(s):
    data = b""
    with contextlib.suppress(ConnectionError):
        while True:
            more = s.recv(65536)
            if not more:
                break
            data += more
    return data


def send_raw(data, timeout=60):
    """Sends bytes, reads until the other side closes."""
    with connect(timeout) as s:
        with contextlib.suppress(ConnectionError):
            s.sendall(data)
        return read_all(s)


def events(body, path="/v1/chat/completions"):
    """The data of a whole stream, and its headers."""
    a = http("POST", path, {**body, "stream": True})
    check(a.status == 200, "a stream begins with 200", a.status, a.body)
    check(a.headers.get("content-type") == "text/event-stream", "a stream is text/event-stream", a.headers)
    frames = [f for f in a.body.decode().split("\n\n") if f]
    check(frames[-1] == "data: [DONE]", "a stream ends with [DONE]", frames[-1])
    return [json.loads(f[6:]) for f in frames[:-1] if f.startswith("data: ")]


# -- the page cache -------------------------------------------------------------------------------

def forget(path):
    with open(path, "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cached(path):
    """Bytes of a file that are in the page cache: mincore(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    size, page = os.path.getsize(path), mmap.PAGESIZE
    there = ctypes.create_string_buffer((size + page - 1) // page)
    with open(path, "rb") as f:
        at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, f.fileno(), 0)
    libc.mincore(at, size, there)
    libc.munmap(at, size)
    return sum(b & 1 for b in there.raw) * page


def cached_counts(path):
    """Whether the file system drops and keeps pages as it is told (tmpfs does not)."""
    forget(path)
    if cached(path):
        return False
    with open(path, "rb") as f:
        f.read()
    whole = cached(path) >= os.path.getsize(path)
    forget(path)
    return whole and not cached(path)
