#!/bin/bash
# A model that does not fit beside others: caches shrink, then idle models leave, and weights of those that stay come
# last; never in vain.  ps tells what has been given back, and it returns.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model moe="$MOE" --model tiny="$TINY" --model slow="$SLOW" --model twin="$SLOW"
py <<'P'
PLENTY = 512 << 20
c = Rpc()

def models():
    return {m["name"]: m for m in rpc("model.list", loaded=True)["models"]}

def load(name, **more):
    return c.call("model.load", target=name, ctx=512, **more)

def answer(name):
    m = c.call("generate", model=name, prompt="Once upon a time", max_tokens=24, temperature=0, ignore_eos=True)
    return m.get("result", m)["text"]

def alone(name):
    """what it takes, and says, when all is there"""
    rpc("budget.set", ram=PLENTY)
    m = load(name)["result"]
    check(m["stage"] == "whole", "a model comes whole", m)
    said = answer(name)
    floor = c.call("cache.report", model=name)["result"]["floor"]
    rpc("model.unload", name=name)
    return m["charged_bytes"], floor, said

tiny, tiny_floor, tiny_says = alone("tiny")
moe, moe_floor, moe_says = alone("moe")
slow, slow_floor, slow_says = alone("slow")
check(all(m["stage"] is None for m in rpc("model.list")["models"]), "what is not loaded has no stage")

def beside(name, room, **more):
    """loads it in the budget that it takes alone and so much more"""
    rpc("budget.set", ram=PLENTY)
    for other in models():
        rpc("model.unload", name=other)
    held = load(name, **more)["result"]["charged_bytes"]
    rpc("budget.set", ram=held + room)
    return held

# A cache gives for another to be whole, pinned or not, and what is missing alone.
for pin in (True, False):
    held = beside("moe", tiny - (2 << 20), pin=pin)
    check("result" in load("tiny"), "tiny finds room", pin)
    now = models()
    check(set(now) == {"moe", "tiny"}, "beside the model that was there", pin, set(now))
    check(now["moe"]["stage"] == "caches" and now["tiny"]["stage"] == "whole", "whose cache is smaller", pin, now)
    mode = c.call("cache.report", model="tiny")["result"]["mode"]
    check(mode in ("all", "rows"), "it reads nothing but rows of tables", mode)
    check(held - (6 << 20) < now["moe"]["charged_bytes"] < held, "by what was missing", held, now["moe"]["charged_bytes"])
    check("caches cut" in os.popen("rnbctl ps").read(), "ps says so")
    check(answer("moe") == moe_says and answer("tiny") == tiny_says, "both say what they say alone", pin)

# A cache that would have to give more than half makes room by leaving.
beside("moe", tiny - (moe - moe_floor))
check("result" in load("tiny"), "tiny finds room")
check(set(models()) == {"tiny"}, "instead of a model that would be left with little", set(models()))

# One that must stay gives all that it can for another to be there at all, dense weights too, and no more than that.
for name, floor, says in (("moe", moe_floor, moe_says), ("slow", slow_floor, slow_says)):
    held = beside(name, tiny_floor - min(held - floor, 4 << 20) + (256 << 10), pin=True)
    check("result" in load("tiny"), f"tiny finds room beside {name}", models())
    now = models()
    check(set(now) == {name, "tiny"}, "a pinned model stays", set(now))
    check(floor <= now[name]["charged_bytes"] < held, "with less", floor, now[name]["charged_bytes"], held)
    check(answer(name) == says and answer("tiny") == tiny_says, "both say what they say alone", name)
check(models()["slow"]["stage"] == "weights", "its weights stream", models()["slow"])
check("weights cut" in os.popen("rnbctl ps").read(), "ps says so")

# What others could give, and do not, is not counted on: a model takes what it would take of that room alone.
for room in range(slow_floor + (4 << 20), slow_floor + (12 << 20), 4 << 20):
    beside("moe", room, pin=True)
    took = load("slow")["result"]["charged_bytes"]
    check(models()["moe"]["stage"] == "whole", "moe gives nothing where that would not make slow whole", models()["moe"])
    for name in models():
        rpc("model.unload", name=name)
    rpc("budget.set", ram=room)
    by_itself = load("slow")["result"]["charged_bytes"]
    check(abs(took - by_itself) < 64 << 10, "and slow leaves as much for requests as in a budget of its own", room, took, by_itself)

# Nobody gives in vain.
for pin in (True, False):
    held = beside("moe", 0, pin=pin)
    rpc("budget.set", ram=min(held, slow_floor - (1 << 20)))
    before = models()["moe"]
    m = load("slow")
    check("error" in m, "slow does not fit into the budget", m)
    now = models()
    check(set(now) == {"moe"} and now["moe"]["charged_bytes"] == before["charged_bytes"] and
          now["moe"]["stage"] == before["stage"], "and took nothing", now)

# What would help is told: who stays and holds it, a narrower cache of the context, a budget that counts the others.
def mib(text, before):
    """the bytes that a sentence names behind some words"""
    n, unit = text.split(before)[1].split()[:2]
    return float(n) * {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit.strip(",;")]

held = beside("moe", 6 << 20, pin=True)  # to look at a file takes some
for m in (c.call("model.load", target="slow", ctx=4096)["error"]["message"],
          c.call("model.plan", target="slow", ctx=4096)["result"]["advice"]):
    check("unloading 'moe'" not in m, "what would not do is not advised", m)
    needs = mib(m, "a budget of ")
rpc("budget.set", ram=int(needs - (1 << 20)))
said = c.call("model.load", target="slow", ctx=4096)["error"]["message"]
plan = c.call("model.plan", target="slow", ctx=4096)["result"]
check(not plan["fits"], "plan says what load says", plan)
for m in (said, plan["advice"]):
    check("unloading 'moe', which holds" in m, "whose unloading would do", m)
    check("--kv q8_0 would need" in m and "--ctx" in m, "a narrower cache, and a shorter one", m)
    check(abs(mib(m, "a budget of ") - needs) < 1 << 20, "the same budget", m, needs)
print("note:", said)
rpc("budget.set", ram=int(needs + (1 << 20)))
plan = c.call("model.plan", target="slow", ctx=4096)["result"]
check(plan["fits"], "with that budget plan says it fits", plan)
check("result" in c.call("model.load", target="slow", ctx=4096), "and it does")
check(set(models()) == {"moe", "slow"}, "beside the other", set(models()))
rpc("model.unload", name="slow")
rpc("budget.set", ram=int(needs - (1 << 20)))
check("result" in c.call("model.load", target="slow", ctx=4096, kv="q8_0"), "the narrower cache would do, too")
rpc("model.unload", name="slow")
rpc("model.unload", name="moe")
check("result" in c.call("model.load", target="slow", ctx=4096), "or the place of the other")
rpc("model.unload", name="slow")

# Weights that have come home between two layers are held by their model, which can give them again.
held = beside("slow", 0)
rpc("budget.set", ram=max(slow_floor, held - (4 << 20)) + (256 << 10))
check(answer("slow") == slow_says and models()["slow"]["stage"] == "weights", "slow streams some of its weights", models()["slow"])
rpc("budget.set", ram=PLENTY)
for _ in range(3):
    check(answer("slow") == slow_says, "they come home as it answers")
now = models()["slow"]
check(now["stage"] == "whole" and now["charged_bytes"] == sum(used().values()), "and are told", now, used())
rpc("model.unload", name="slow")

# The bytes of a request, too, are a cache's before a model leaves.
rpc("budget.set", ram=PLENTY)
load("moe")
load("tiny")
held = sum(used().values())
rpc("budget.set", ram=held + (64 << 10))
check(answer("tiny") == tiny_says, "a request finds room")
now = models()
check(set(now) == {"moe", "tiny"} and now["tiny"]["stage"] == "whole", "and nobody leaves for it", now)

# … and come back to it when nothing is asked any more, also where another was used last.
for others in ((), ("tiny",)):
    rpc("budget.set", ram=PLENTY)
    for name in models():
        rpc("model.unload", name=name)
    for name in others:
        load(name, pin=True)
    rpc("budget.set", ram=sum(used().values()) + moe_floor + (moe - moe_floor) * 7 // 10)
    before = load("moe")["result"]
    check(before["stage"] == "whole" and before["charged_bytes"] < moe, "what it was loaded with is a part", before, moe)
    asked = (*others, "moe")[0]
    # what is kept of a whole answer with log probabilities takes some MiB
    m = http("POST", "/v1/completions", {"model": asked, "prompt": "x", "n": 8, "max_tokens": 100, "logprobs": 5, "ignore_eos": True})
    check(m.status == 200, "a long answer", m.status, m.body[:300])
    log = open(f"{T}/log").read()
    check("model gives back memory model='moe'" in log.split("loaded model model='moe'")[-1], "had moe give back", asked)
    wait_for("what was taken to come back", lambda: models()["moe"]["stage"] == "whole")
    check(models()["moe"]["charged_bytes"] >= before["charged_bytes"] - (1 << 20), "all of it", models()["moe"], before)

# What runs is ended for a budget that could not be without, and a pinned model gives beside that.
beside("moe", slow, pin=True)
load("slow")
g = Rpc()
n = g.begin_long()
m = c.call("budget.set", ram=moe_floor + (2 << 20), cancel=True)
check("result" in m, "both together do", m)
check("budget" in g.answer(n).get("error", {}).get("message", ""), "the request says why it ended")
check(set(models()) == {"moe"} and models()["moe"]["stage"] == "caches", "one is gone, one has less", models())
g.close()

# A load has planned with what is free before it reserves all of that: who could grow waits for its end.
rpc("budget.set", ram=PLENTY)
for name in models():
    rpc("model.unload", name=name)
rpc("budget.set", ram=load("twin", pin=True)["result"]["charged_bytes"] + moe_floor + (6 << 20))
load("moe", pin=True)
small = load("twin", pin=False) and models()["moe"]
check(small["charged_bytes"] < moe - (8 << 20), "moe could take more", small)
for f in os.listdir(T + "/state"):
    os.unlink(T + "/state/" + f)
loading = Rpc()
loading.send("model.load", target="slow", ctx=1024)
wait_for("the load to begin", lambda: any(m["state"] == "loading" for m in rpc("model.list")["models"]))
budget = rpc("memory.report")["pools"][0]["budget"]
rpc("budget.set", ram=budget + (64 << 10))
m = loading.read()
while "method" in m:
    m = loading.read()
check("result" in m, "what was free when it began is its own", m)
check(set(models()) == {"moe", "slow"}, "twin has made room", set(models()))
log = open(f"{T}/log").read().split("unloaded model model='twin'")[-1]
check("measur" in log or models()["slow"]["stage"] == "whole", "the drive was measured meanwhile", log)

# A load is not ended for a budget that could not be without it either.
for name in models():
    rpc("model.unload", name=name)
rpc("budget.set", ram=PLENTY)
load("moe", pin=True)
rpc("budget.set", ram=moe + slow_floor + (12 << 20))
for f in os.listdir(T + "/state"):
    os.unlink(T + "/state/" + f)
loading.send("model.load", target="slow", ctx=1024)
wait_for("the load to begin", lambda: any(m["state"] == "loading" for m in rpc("model.list")["models"]))
m = c.call("budget.set", ram=moe_floor - (1 << 20), cancel=True)
check("error" in m, "what is pinned needs more", m)
m = loading.read()
while "method" in m:
    m = loading.read()
check("result" in m, "and the load has not been ended in vain", m)

# plan tells what a load finds: caches of those that stay, where they make it whole.
for pin in (True, False):
    beside("moe", tiny - (2 << 20), pin=pin)
    p = c.call("model.plan", target="tiny", ctx=512)["result"]
    m = load("tiny")["result"]
    mode = c.call("cache.report", model="tiny")["result"]["mode"]
    whole = ("all", "rows")  # a cache gives by the slot, which may be enough for a table, too
    check(p["fits"] and p["mode"] in whole and mode in whole, "plan and load agree", pin, p, mode)
    check(0 <= m["charged_bytes"] - p["total"] < 512 << 10, "on what it takes", pin, p["total"], m["charged_bytes"])

# Without a context of its own, too, a budget that is advised is one that does.
for name in models():
    rpc("model.unload", name=name)
rpc("budget.set", ram=12 << 20)
advice = c.call("model.plan", target="slow")["result"]["advice"]
for words, whole in (("a budget of ", False), ("token; with ", True)):
    rpc("budget.set", ram=int(mib(advice, words)))
    m = c.call("model.load", target="slow")
    check("result" in m, "what was advised does", advice, m)
    mode = c.call("cache.report", model="slow")["result"]["mode"]
    check((mode in ("all", "rows")) == whole, "and the model is as it was said to be", advice, mode)
    rpc("model.unload", name="slow")
print("note:", advice)
P
stop

# While a model's file is being closed ps says so: the engine stands at the word that it is gone.
mkfifo "$T/pipe"
exec 9<>"$T/pipe"
printf '[daemon]\nlog_level = notice\n' >"$T/rnbd.conf"
LOG=$T/pipe start --model tiny="$TINY" --model moe="$MOE"
py <<'P'
c = Rpc()
for name in ("tiny", "moe"):
    check("result" in c.call("model.load", target=name, ctx=512), f"{name} loads")

def model(name):
    return [m for m in c.call("model.list")["result"]["models"] if m["name"] == name][0]

full = FullLog(f"{T}/pipe")
asker = Rpc()
n = asker.send("model.unload", name="tiny")
wait_for("the file to be closed", lambda: model("tiny")["stage"] == "closing")
check(model("tiny")["state"] == "draining" and model("moe")["stage"] == "whole", "the other stays", model("tiny"), model("moe"))
check(re.search(r"^tiny .*draining, closing", os.popen("rnbctl ps").read(), re.M), "rnbctl says so", os.popen("rnbctl ps").read())
full.empty()
check("result" in asker.answer(n), "then it is gone")
check(model("tiny")["state"] == "listed" and model("tiny")["stage"] is None, "and has no stage", model("tiny"))
P
finish
