#!/usr/bin/env python3
"""Mixed load for a while on a private rnbd: loads, unloads, budget changes, cancels, long prompts, closed connections.

    soak.py BUILD [--minutes 30] [--ram 2GiB] [--low 512MiB] [--workers 4] [--seed 1] MODEL.gguf...

Looks at the resident set every 20 ms and at the page cache of the model files every few seconds: both together may never pass the
budget in force + 48 MiB (for a second after it was lowered, the old one).  Every answer must be one that the API knows; at the end
nothing runs, the ledger is as at the start, and no file descriptor is left.  Prints what was done; exit 1 with what did not hold.
"""
import argparse
import collections
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection, HTTPException

ALLOWANCE = 48 << 20
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
# What the API may say to such work: 413 and 422 as the models are, 409 a model that is leaving, 499 cancelled, 503 no memory now.
KNOWN_STATUS = {200, 409, 413, 422, 429, 499, 503}
PATIENCE = 1500  # seconds for an answer: long prompts queue behind each other
KNOWN_CODES = {-32009, -32013, -32022, -32029, -32099, -32001, -32002}  # the same by the control socket
TEXT = ("The library opens at nine. Whoever comes earlier may wait in the hall, where the clock is slow by a minute and nobody has "
        "ever minded. ")


def size_of(text):
    m = re.fullmatch(r"(\d+(?:\.\d+)?)(KiB|MiB|GiB)", text)
    if not m:
        raise argparse.ArgumentTypeError("a size such as 512MiB")
    return int(float(m.group(1)) * UNITS[m.group(2)])


class Soak:
    def __init__(self, args):
        self.args = args
        self.dir = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.dir.name, "control.sock")
        self.names = ["m%d" % i for i in range(len(args.models))]
        self.findings, self.done = [], collections.Counter()
        self.lock = threading.Lock()
        self.budgets = [(0.0, args.ram)]  # when it came into force, bytes
        self.stopping = False
        self.worst = (0, 0, 0)  # over the limit, resident, cached
        command = [os.path.join(args.build, "rnbd"), "--listen", "127.0.0.1:0", "--socket", self.socket, "--ram", str(args.ram)]
        for name, path in zip(self.names, args.models):
            command += ["--model", name + "=" + path]
        self.log = open(os.path.join(self.dir.name, "log"), "w", encoding="utf-8")
        self.process = subprocess.Popen(command, stderr=self.log)
        for _ in range(100):
            try:
                self.port = self.rpc("server.status")["result"]["port"]
                break
            except OSError:
                time.sleep(0.1)

    # -- faces ----------------------------------------------------------------------------------

    def rpc(self, method, timeout=PATIENCE, **params):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(timeout)
            s.connect(self.socket)
            s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
            with s.makefile("rb") as lines:
                for line in lines:
                    m = json.loads(line)
                    if m.get("id") == 1:
                        return m
        raise OSError("the control connection ended")

    def post(self, path, body, leave_after=None):
        c = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        c.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        if leave_after is not None:
            time.sleep(leave_after)
            c.close()
            return None
        a = c.getresponse()
        data = a.read()
        c.close()
        if a.status not in KNOWN_STATUS:
            self.find("%s answered %d: %s" % (path, a.status, data[:200]))
        return a.status

    def find(self, sentence):
        with self.lock:
            self.findings.append(sentence)
            if len(self.findings) < 20:
                print("finding:", sentence, flush=True)

    def used(self):
        pool = self.rpc("memory.report")["result"]["pools"][0]
        return {a["name"]: a["bytes"] for a in pool["accounts"]}

    # -- watching -------------------------------------------------------------------------------

    def limit(self):
        now = time.monotonic()
        with self.lock:
            in_force = self.budgets[-1][1]
            recent = [bytes_ for at, bytes_ in self.budgets[:-1]][-1:] if now - self.budgets[-1][0] < 1.0 else []
        return max([in_force] + recent) + ALLOWANCE

    def cached(self):
        """Bytes of the model files in the page cache, by fincore(1)."""
        done = subprocess.run(["fincore", "--bytes", "--noheadings", "--output", "RES"] + self.args.models, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        return sum(int(n) for n in done.stdout.split()) if done.returncode == 0 else 0

    def watch(self):
        page, cached, next_look = os.sysconf("SC_PAGE_SIZE"), 0, 0.0
        before = self.cached()
        while not self.stopping:
            if time.monotonic() >= next_look:
                cached = max(0, self.cached() - before)
                next_look = time.monotonic() + 5
            limit = self.limit()
            try:
                with open("/proc/%d/statm" % self.process.pid, encoding="ascii") as f:
                    resident = int(f.read().split()[1]) * page
            except (OSError, IndexError):
                self.find("rnbd is gone")
                return
            over = resident + cached - limit
            if not self.worst[1] or over > self.worst[0]:
                self.worst = (over, resident, cached)
            if over > 0:
                self.find("resident %d MiB + cached %d MiB pass the limit of %d MiB" % (resident >> 20, cached >> 20, limit >> 20))
                time.sleep(1)
            time.sleep(0.02)

    # -- work -----------------------------------------------------------------------------------

    def chat(self, r):
        return self.post("/v1/chat/completions", {"model": r.choice(self.names), "max_tokens": r.randint(1, 40),
                                                  "messages": [{"role": "user", "content": TEXT * r.randint(1, 4)}]})

    def long_prompt(self, r):
        return self.post("/v1/completions", {"model": r.choice(self.names), "max_tokens": r.randint(1, 8), "prompt": TEXT * 30})

    def talk(self, r):
        """An answer by the control socket."""
        answer = self.rpc("generate", model=r.choice(self.names), prompt=TEXT * r.randint(1, 3), max_tokens=r.randint(1, 20))
        code = answer.get("error", {}).get("code")
        if code is not None and code not in KNOWN_CODES:
            self.find("generate answered %s" % answer["error"])
        return code

    def leave(self, r):
        self.post("/v1/chat/completions", {"model": r.choice(self.names), "max_tokens": 400, "stream": True,
                                           "messages": [{"role": "user", "content": TEXT}]}, leave_after=r.uniform(0, 2))

    def cancel_all(self):
        for q in self.rpc("request.list")["result"]["requests"]:
            self.rpc("request.cancel", id=q["id"])

    def cancel(self, r):
        for q in self.rpc("request.list")["result"]["requests"]:
            if r.random() < 0.5:
                self.rpc("request.cancel", id=q["id"])

    def load(self, r):
        self.rpc("model.load", target=r.choice(self.names), ctx=r.choice([512, 2048, 8192]))

    def unload(self, r):
        self.rpc("model.unload", name=r.choice(self.names), force=r.random() < 0.3)

    def budget(self, r):
        wanted = r.randint(self.args.low, self.args.ram)
        if "result" in self.rpc("budget.set", ram=wanted, force=r.random() < 0.2):
            with self.lock:
                self.budgets.append((time.monotonic(), wanted))

    def look(self, r):
        for method in ("server.status", "model.list", "memory.report", "request.list"):
            if "result" not in self.rpc(method):
                self.find(method + " was refused")
        self.rpc("model.plan", target=r.choice(self.names), ctx=r.choice([512, 4096]))

    def work(self, number):
        r = random.Random(self.args.seed * 1000 + number)
        acts = [self.chat] * 8 + [self.long_prompt] * 3 + [self.talk] * 3 + [self.leave] * 3 + [self.cancel] + [self.load] * 2 + [self.unload] + \
            [self.budget] * 2 + [self.look] * 2
        while not self.stopping:
            act = r.choice(acts)
            try:
                status = act(r)
                with self.lock:
                    self.done[act.__name__ if status is None else "%s %d" % (act.__name__, status)] += 1
            except (OSError, HTTPException, ValueError) as e:
                if not self.stopping:
                    self.find("%s: %s %s" % (act.__name__, type(e).__name__, e))
                    time.sleep(0.5)

    # -- all of it ------------------------------------------------------------------------------

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def wait_idle(self):
        for _ in range(600):
            engine = self.rpc("server.status")["result"]["engine"]
            if engine["running"] == 0 and engine["waiting"] == 0:
                return
            time.sleep(0.1)
        self.find("work goes on a minute after its clients left")

    def run(self):
        self.rpc("server.status")
        before, fds = self.used(), self.descriptors()
        threads = [threading.Thread(target=self.watch)] + [threading.Thread(target=self.work, args=(i,)) for i in range(self.args.workers)]
        for t in threads:
            t.start()
        end = time.monotonic() + self.args.minutes * 60
        while time.monotonic() < end and self.process.poll() is None:
            time.sleep(1)
        self.stopping = True
        while any(t.is_alive() for t in threads) and self.process.poll() is None:
            self.cancel_all()
            time.sleep(0.2)
        for t in threads:
            t.join()
        if self.process.poll() is not None:
            self.find("rnbd ended with %s" % self.process.returncode)
        else:
            self.rest(before, fds)
        print("done:", ", ".join("%s %d" % item for item in sorted(self.done.items())))
        print("closest to the limit: %d MiB under it, with %d MiB resident and %d MiB cached; budget set %d times" %
              (-self.worst[0] >> 20, self.worst[1] >> 20, self.worst[2] >> 20, len(self.budgets) - 1))
        print("soak: %s" % ("%d findings" % len(self.findings) if self.findings else "ok"))
        return 1 if self.findings else 0

    def rest(self, before, fds):
        """All that is left must go: then things are as they were."""
        self.wait_idle()
        for name in self.names:
            self.rpc("model.unload", name=name, force=True)
        after = self.used()
        if after != before:
            self.find("the ledger is %s, and was %s" % (after, before))
        for _ in range(50):
            if self.descriptors() <= fds:
                break
            time.sleep(0.1)
        if self.descriptors() > fds:
            self.find("%d file descriptors, and %d at the start" % (self.descriptors(), fds))
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(30) != 0:
            self.find("rnbd ended with %d" % self.process.returncode)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--ram", type=size_of, default=size_of("2GiB"))
    parser.add_argument("--low", type=size_of, default=size_of("512MiB"))
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("models", nargs="+")
    soak = Soak(parser.parse_args())
    try:
        status = soak.run()
    finally:
        if soak.process.poll() is None:
            soak.process.kill()
            soak.process.wait()
    sys.exit(status)


if __name__ == "__main__":
    main()
