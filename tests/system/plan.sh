#!/bin/bash
# plan: what it says is what a load holds; how fast it will be, what limits that, and how it knows.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model slow="$SLOW" --model moe="$MOE"
expect 0 rnbctl plan slow --ctx 512
has "$OUT" "decode about"
has "$OUT" "limited by"
has "$OUT" "was measured for it just now"
expect 0 rnbctl plan slow --ctx 512
has "$OUT" "prefill about"
lacks "$OUT" "just now"
py <<'P'
LIMITS = ("memory bandwidth", "compute", "drive", "per-token wait")
c = Rpc()

def plan(name, **more):
    return c.call("model.plan", target=name, ctx=512, **more)["result"]

def sound(p, what):
    s = p["speed"]
    for side in ("decode", "prefill"):
        check(s[side] and s[side]["tokens_per_second"] > 0 and s[side]["limit"] in LIMITS, f"{what}: {side} is told", s)
    check(s["why"] is None and s["ram_mb_per_s"] > 0, f"{what}: nothing is missing", s)
    return s

def accounts_of(p):
    return {k: v for k, v in p["accounts"].items() if k != "staging"}

zero = used()
whole = plan("slow")
s = sound(whole, "resident")
check(whole["mode"] == "all" and s["per_token"]["streamed"] == 0 and s["decode"]["read_bytes"] == 0, "nothing is read", s)
check("hit_rate" not in s, "without experts there are no hits", s)
check(os.path.exists(T + "/state/kernels.json"), "what was measured is kept")

# What plan says is what a load holds, at any budget, and what streams is told.
for name in ("slow", "moe"):
    w = plan(name)
    for share in (0.2, 0.5, 0.9):
        ram = int(w["floor"] + (w["all"] - w["floor"]) * share)
        rpc("budget.set", ram=ram)
        p = plan(name)
        check(plan(name, ram=ram)["total"] == p["total"], "the same for a budget that is only asked about", p["total"])
        before = rpc("memory.report")["pools"][0]["peak"]
        check("result" in c.call("model.load", target=name, ctx=512), f"{name} loads", ram)
        pool = rpc("memory.report")["pools"][0]
        check(pool["used"] == p["total"], f"{name} holds what was planned", share, pool["used"], p["total"])
        held = {a["name"]: a["bytes"] for a in pool["accounts"]}
        check(all(held[k] == v for k, v in accounts_of(p).items()), "account by account", held, p["accounts"])
        check(pool["peak"] <= max(before, p["peak"]), "and no more while it loads", pool["peak"], p["peak"])
        s = sound(p, f"{name} at {share}")
        token = s["per_token"]
        cache = c.call("cache.report", model=name)["result"]
        check(token["streamed"] == cache["ring"]["bytes_per_token"], "what streams is told", token, cache["ring"])
        check(p["mode"] in ("rows", "all") or s["drive_mb_per_s"] > 0, "the drive was measured", s)
        check(abs(s["decode"]["read_bytes"] - token["streamed"] - token["expert_misses"]) < 1 or p["mode"] == "rows", "reads are misses and what streams", s)
        c.call("model.unload", name=name)
        rpc("budget.set", ram=512 << 20)
check(used() == zero, "plans and loads leave nothing", used())

# Where the hit rate is from: nothing known, the model that runs, what it left behind.
w = plan("moe")
ram = int(w["floor"] + (w["all"] - w["floor"]) * 0.5)
first = plan("moe", ram=ram)["speed"]
check(first["hit_rate_from"] == "even" and 0 < first["hit_rate"] < 1, "nothing is known of its routing", first)
rpc("budget.set", ram=ram)
c.call("model.load", target="moe", ctx=512)
c.call("generate", model="moe", prompt="Once upon a time", max_tokens=64, temperature=0, ignore_eos=True)
running = plan("moe")["speed"]
check(running["hit_rate_from"] == "running" and running["hit_rate_tokens"] > 16, "the model that runs tells it", running)
c.call("model.unload", name="moe")
left = plan("moe")["speed"]
check(left["hit_rate_from"] == "recorded", "and leaves it behind", left)
check(abs(left["hit_rate"] - running["hit_rate"]) < 0.02, "the same", left["hit_rate"], running["hit_rate"])
rpc("budget.set", ram=512 << 20)

# How a model that does not fit is read, and why.
rpc("budget.set", ram=int(w["floor"] + (w["all"] - w["floor"]) * 0.95)) # with room for what measures a drive
c.call("model.load", target="moe", ctx=512)
said = os.popen("rnbctl cache moe").read()
check("moe: experts" in said and "the drive: " in said and "reads in flight" in said, "cache tells it", said)
c.call("model.unload", name="moe")
rpc("budget.set", ram=512 << 20)

# While something runs nothing is measured, and a plan waits for nobody.
for f in os.listdir(T + "/state"):
    os.unlink(T + "/state/" + f)
P
stop
start --model slow="$SLOW"
py <<'P'
g = Rpc()
n = g.begin_long()
c = Rpc()
began = time.monotonic()
p = c.call("model.plan", target="slow", ctx=512)["result"]
took = time.monotonic() - began
check(p["fits"] and p["speed"]["decode"] is None, "no speed", p["speed"])
check("when nothing runs" in (p["speed"]["why"] or ""), "but why", p["speed"])
check(len(requests()) == 1, "while it goes on", took)
g.close()
wait_for("the end of the work", idle)
p = c.call("model.plan", target="slow", ctx=512)["result"]
check(p["speed"]["decode"]["tokens_per_second"] > 0 and p["speed"]["measured_now"], "later it is measured", p["speed"])
P
stop
rm -f "$T"/state/*
start --model slow="$SLOW" --model moe="$MOE"
py <<'P'
# What a budget, or a client that leaves, asks for does not wait for a measurement.
c, p = Rpc(), Rpc()
rpc("budget.set", ram=256 << 20)
check("result" in c.call("model.load", target="moe", ctx=512), "moe is there")
w = c.call("cache.report", model="moe")["result"]["floor"]
zero = used()

def begin():
    p.send("model.plan", target="slow", ctx=512, ram=32 << 20)
    wait_for("something to be measured", lambda: used().get("staging", 0) > zero.get("staging", 0))

begin()
m = c.call("budget.set", ram=w + (2 << 20))
check("result" in m, "the buffers of a measurement keep no budget from being lowered", m)
speed = p.answer(1)["result"]["speed"]
check("broken off" in (speed["why"] or ""), "which breaks it off", speed)
rpc("budget.set", ram=256 << 20)
zero = used()
begin()
p.close()
wait_for("the end of what nobody waits for", lambda: used().get("staging", 0) <= zero.get("staging", 0))
check(not os.path.exists(T + "/state/kernels.json") or not any(f.startswith("drive") for f in os.listdir(T + "/state")),
      "nothing is known yet", os.listdir(T + "/state"))
p = Rpc()
begin()
g = Rpc()
g.send("model.plan", target="moe", ctx=512, ram=20 << 20)
one, two = p.answer(1)["result"]["speed"], g.answer(1)["result"]["speed"]
check(one["why"] is None and two["why"] is None, "one measurement waits for another", one, two)
P
finish
