#!/bin/bash
# Resident memory stays below budget + 48 MiB through loads, requests of every kind and unloads; the ledger ends where
# it began.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

cat >"$T/rnbd.conf" <<C
[http]
body_max = 16MiB
C
start --ram 220MiB --model tiny="$TINY" --model slow="$SLOW"
py <<'P'
limit = (220 + 48) << 20
worst = rss()
stop = False
def watch():
    global worst
    while not stop:
        worst = max(worst, rss())
        time.sleep(0.02)
watcher = threading.Thread(target=watch)
watcher.start()
zero = used()
statuses = {}
def ask(path, body, **more):
    a = http("POST", path, body, **more)
    statuses[a.status] = statuses.get(a.status, 0) + 1
    return a
for _ in range(4):
    ask("/v1/chat/completions", chat_body(model="slow", max_tokens=30))
    ask("/v1/chat/completions", chat_body(max_tokens=30, n=4))
    ask("/v1/completions", {"model": "tiny", "prompt": "word " * 300, "max_tokens": 20, "logprobs": 5})
    ask("/v1/chat/completions", chat_body(text="x " * 200000))
    ask("/v1/chat/completions", chat_body(stop=["a" * 1000] * 16))
    ask("/v1/chat/completions", b'[' * 1000000, headers={"Content-Type": "application/json"})
    ask("/v1/chat/completions", b'{"a":' * 100000, headers={"Content-Type": "application/json"})
    ask("/v1/chat/completions", b'{"model":"tiny","messages":[' + b'{"role":"user","content":"x"},' * 200000 + b'{"role":"user","content":"x"}]}',
        headers={"Content-Type": "application/json"})
    ask("/v1/chat/completions", b'[' + b'0,' * 7000000 + b'0]', headers={"Content-Type": "application/json"})
threads = [threading.Thread(target=ask, args=("/v1/chat/completions", chat_body(text="y " * 1000000))) for _ in range(6)]
for t in threads:
    t.start()
for t in threads:
    t.join()
for name in ["slow", "tiny"]:
    Rpc().call("model.unload", name=name)
wait_for("the ledger to be back at its start", lambda: used() == zero)
check(used() == zero, "the ledger is back at its start", used(), zero)
stop = True
watcher.join()
peak = rpc("memory.report")["pools"][0]["peak"]
print(f"note: resident at most {worst >> 20} MiB, ledger at most {peak >> 20} MiB, budget 220 MiB; statuses {statuses}")
check(worst <= limit, f"resident memory {worst} within {limit}")
check(peak <= 220 << 20, "the ledger within the budget", peak)
check(rss() <= zero.get("x", 0) + (60 << 20), "after all is unloaded little stays", rss())
P
stop
start --ram 220MiB --model tiny="$TINY" --model slow="$SLOW"
py <<'P'
# What is kept of an answer until it can be sent is a request's memory.
def requests_peak():
    return {a["name"]: a["peak"] for a in rpc("memory.report")["pools"][0]["accounts"]}["requests"]
http("POST", "/v1/chat/completions", chat_body(max_tokens=1))
small = rss()
long = chat_body(n=8, max_tokens=100, logprobs=True, top_logprobs=20, ignore_eos=True)
for face, body in (("/v1/completions", {"model": "tiny", "prompt": "x", "n": 8, "max_tokens": 100, "logprobs": 5, "ignore_eos": True}),
                   ("/v1/chat/completions", long)):
    before = requests_peak()
    a = http("POST", face, body)
    check(a.status == 200, "a long answer with log probabilities", a.status, a.body[:300])
    check(requests_peak() > before + 4 * len(a.body), "is charged for while it is kept", face, before, requests_peak(), len(a.body))
    wait_for("the ledger without it", lambda: used().get("requests", 0) == 0)
wait_for("the memory of long answers to go back", lambda: rss() < small + (6 << 20), 5)
print("note: resident", small >> 10, "KiB before long answers,", rss() >> 10, "KiB after")
rpc("budget.set", ram=sum(used().values()) + (4 << 20))
a = http("POST", "/v1/chat/completions", long)
check(a.status == 503 and "requests" in a.error["message"], "without room for it the sentence says so", a.status, a.body[:300])
wait_for("the ledger without it", lambda: used().get("requests", 0) == 0)
P
stop
printf '[http]\nbody_max = 64MiB\n' >"$T/rnbd.conf"
start --ram 220MiB --model tiny="$TINY"
py <<'P'
def requests_peak():
    return {a["name"]: a["peak"] for a in rpc("memory.report")["pools"][0]["accounts"]}["requests"]
before = requests_peak()
one = {"model": "tiny", "prompt": "x", "max_tokens": 1, "ignore_eos": True, "logprobs": 5}
check(http("POST", "/v1/completions", one).status == 200, "an answer of one token")
check(before < 8192 < 16384 <= requests_peak(), "is charged for, its last token too", before, requests_peak())
rpc("model.unload", name="tiny")
# A body is in memory once until there is room for more, and what is refused goes back to the system.
def most_resident():
    with open(f"/proc/{PID}/status", encoding="ascii") as f:
        return int(re.search(r"VmHWM:\s*(\d+) kB", f.read()).group(1)) * 1024
text = json.dumps(chat_body("z" * (60 << 20))).encode()
for room, what in ((80 << 20, "for its copy"), (40 << 20, "for all of it")):
    rpc("budget.set", ram=sum(used().values()) + room)
    with open(f"/proc/{PID}/clear_refs", "w", encoding="ascii") as f:
        f.write("5")
    before = rss()
    a = http("POST", "/v1/chat/completions", text, headers={"Content-Type": "application/json"})
    check(a.status == 503, "a body without room is refused", what, a.status, a.body[:300])
    check(most_resident() < before + (70 << 20), "before it is copied", what, before, most_resident())
    wait_for("its memory to go back", lambda before=before: rss() < before + (8 << 20), 5)
    print("note: resident", before >> 10, "KiB before, at most", most_resident() >> 10, "KiB, then", rss() >> 10, "KiB")
    wait_for("the ledger without it", lambda: used().get("requests", 0) == 0)
P
finish
