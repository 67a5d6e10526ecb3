#!/bin/bash
# Several clients at once: each gets its own answers and notes; closing gives up what was asked.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model tiny="$TINY" --model slow="$SLOW"
py <<'P'
# Two calls on one connection: the short one is not kept waiting by the long one.
c = Rpc()
long = c.begin_long(500)
notes = []
m = c.answer(c.send("server.status"), notes)
check("result" in m, "status while generating on the same connection")
m = c.answer(c.send("model.show", target="tiny"), notes)
check("result" in m, "show while generating")
check(all(n["params"]["call"] == long for n in notes), "notes name their call", notes[:2])
m = c.answer(long, notes)
check(m["result"]["text"].endswith("".join(n["params"]["text"] for n in notes if n["method"] == "text")), "the text is the sum of its notes")
# Many clients ask the same: the same answer.
answers, errors = [], []
def ask(i):
    try:
        for _ in range(5):
            if i % 2:
                answers.append(chat("the same", temperature=0.7).json["choices"][0]["message"]["content"])
            else:
                r = rpc("generate", model="tiny", messages=[{"role": "user", "content": "the same"}], max_tokens=16, seed=1, temperature=0.7)
                answers.append(r["text"])
    except Exception as e:
        errors.append(repr(e))
threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
check(not errors and len(answers) == 40, "all are answered", errors, len(answers))
check(len(set(answers)) == 1, "HTTP and RPC, alone and in a crowd: one answer", set(answers))
# Two clients of two models do not starve each other.
count = {"tiny": 0, "slow": 0}
stop = time.monotonic() + 6
def use(name):
    while time.monotonic() < stop:
        if http("POST", "/v1/chat/completions", chat_body(model=name, max_tokens=2)).status == 200:
            count[name] += 1
threads = [threading.Thread(target=use, args=(n,)) for n in count]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("note: answers in 6 s of two clients of two models:", count)
check(min(count.values()) >= 3, "both get answers", count)
# Closing gives up a load and a bench.
rpc("model.unload", name="slow")
for _ in range(10):
    c = Rpc()
    c.send("model.load", target="slow")
    c.close()
    c = Rpc()
    c.send("bench.run", target="slow", prompt=2000, gen=2000, repeats=50)
    time.sleep(0.05)
    c.close()
wait_for("the end of what was given up", lambda: chat(max_tokens=1).status == 200 and idle(), 30)
# Load, unload and requests in a tangle.
stop = time.monotonic() + 6
seen = {}
def tangle(i):
    import random
    r = random.Random(i)
    c = Rpc()
    while time.monotonic() < stop:
        name = r.choice(["tiny", "slow"])
        what = r.randrange(6)
        if what == 0:
            m = c.call("model.load", target=name)
        elif what == 1:
            m = c.call("model.unload", name=name, force=r.random() < 0.5)
        elif what == 2:
            m = c.call("generate", model=name, prompt="x", max_tokens=3)
        elif what == 3:
            m = c.call("budget.set", ram=r.choice([60, 300, 512]) << 20, force=r.random() < 0.3)
        elif what == 4:
            m = c.call("model.plan", target=name)
        else:
            n = c.send("generate", model=name, prompt="x", max_tokens=500)
            time.sleep(r.random() / 10)
            c.close()
            c = Rpc()
            continue
        kind = m["error"]["data"]["kind"] if "error" in m else "done"
        seen[kind] = seen.get(kind, 0) + 1
        if kind not in ("done", "CONFLICT", "NOMEM", "CANCELLED", "BUSY"):
            check(False, "an error that none of this explains", what, m)
    c.close()
threads = [threading.Thread(target=tangle, args=(i,)) for i in range(6)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("note: of a tangle of calls:", seen)
wait_for("the end of the tangle", idle, 30)
for name in ["tiny", "slow"]:
    Rpc().call("model.unload", name=name, force=True)
check(sum(used().values()) == 0, "the ledger is back at its start", used())
P
finish
