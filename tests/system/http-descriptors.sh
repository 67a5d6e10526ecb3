#!/bin/bash
# More clients than descriptors: the rest wait, nothing spins, and all is well when they have gone.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model tiny="$TINY"
py <<'P'
import resource

def cpu_ms():
    with open(f"/proc/{PID}/stat") as f:
        numbers = f.read().rsplit(")", 1)[1].split()
    return (int(numbers[11]) + int(numbers[12])) * 1000 // os.sysconf("SC_CLK_TCK")

resource.prlimit(PID, resource.RLIMIT_NOFILE, (48, 48))
check(http("POST", "/v1/chat/completions", chat_body(max_tokens=2)).status == 200, "it answers with few descriptors")
clients = [connect() for _ in range(60)]
time.sleep(0.5)
before = cpu_ms()
time.sleep(1)
check(cpu_ms() - before < 500, "it rests while no descriptor is left", cpu_ms() - before)
for c in clients:
    c.close()
wait_for("an answer when they have gone", lambda: http("GET", "/health").status == 200)
check(rpc("server.status")["version"], "control answers")
with open(T + "/log") as f:
    lines = [line for line in f if "cannot take a connection" in line]
check(len(lines) == 1, "it is said once", lines[:3])
P
finish
