#!/bin/bash
# How long /health, /metrics and rnbctl's status take while a model loads and generates.  Times are printed, not judged:
# what must hold is that every call is answered.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model tiny="$TINY" --model slow="$SLOW"
py 200 <<'P'
def measure(name, one, n=200):
    times = []
    for _ in range(n):
        began = time.perf_counter()
        check(one(), f"{name} is answered")
        times.append((time.perf_counter() - began) * 1000)
        time.sleep(0.002)
    times.sort()
    print(f"note: {name:<28} p50 {times[n // 2]:7.2f} ms   p99 {times[n * 99 // 100]:7.2f} ms   max {times[-1]:7.2f} ms")

control = Rpc()
web = http_connection()
def all_of(when, n=200):
    measure("/health, " + when, lambda: http("GET", "/health", connection=web).status == 200, n)
    measure("server.status, " + when, lambda: "result" in control.call("server.status"), n)
    measure("/metrics, " + when, lambda: http("GET", "/metrics", connection=web).status == 200, n)

all_of("idle")
g = Rpc()
g.begin_long()
all_of("generating")
g.close()
wait_for("the end", idle)
g = Rpc()
g.send("generate", model="slow", prompt="word " * 1500, max_tokens=1)
wait_for("the prefill", lambda: "PREFILLING" in [r["step"] for r in requests()])
all_of("prefilling", 60)
g.close()
wait_for("the end", idle)
stop = False
loads = 0
def load():
    global loads
    c = Rpc()
    while not stop:
        c.call("model.unload", name="slow")
        c.call("model.load", target="slow")
        loads += 1
t = threading.Thread(target=load)
t.start()
all_of("loading")
stop = True
t.join()
print("note: loads meanwhile:", loads)
import subprocess
measure("rnbctl status, idle", lambda: subprocess.run(["rnbctl", "status"], capture_output=True).returncode == 0, 50)
P
finish
