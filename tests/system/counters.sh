#!/bin/bash
# What a model wanted of its file, hit, read and waited for: `cache`, `ps`, /metrics and the timings of answers agree.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model slow="$SLOW" --model moe="$MOE"
py <<'P'
import subprocess

KEYS = ("wanted", "hit", "read", "over_read", "read_ahead", "read_ahead_unused", "uses", "hits")
NAMES = {"wanted": "model_wanted_bytes_total", "hit": "model_hit_bytes_total", "read": "model_read_bytes_total",
         "over_read": "model_over_read_bytes_total", "read_ahead": "model_read_ahead_bytes_total",
         "read_ahead_unused": "model_read_ahead_unused_bytes_total", "uses": "model_expert_uses_total",
         "hits": "model_expert_hits_total"}
c = Rpc()

def metrics():
    text = http("GET", "/metrics").body.decode()
    helped = set(re.findall(r"^# HELP (\S+) ", text, re.M))
    typed = set(re.findall(r"^# TYPE (\S+) (?:counter|gauge)$", text, re.M))
    found = {m[0]: float(m[1]) for m in re.findall(r"^(rnbd_[^ ]+) (\S+)$", text, re.M)}
    named = {k.split("{")[0] for k in found}
    check(named <= helped and named <= typed, "every figure has its HELP and TYPE", named - helped, named - typed)
    return found

def ps(name):
    return [m for m in rpc("model.list", loaded=True)["models"] if m["name"] == name][0]["reads"]

def agree(name):
    """One model's figures, wherever they are asked for."""
    wait_for("the end of the work", idle)
    cache, reads, m = c.call("cache.report", model=name)["result"], ps(name), metrics()
    for k in KEYS:
        check(cache[k] == reads[k], f"cache and ps agree on {k} of {name}", cache[k], reads[k])
        check(reads[k] == m[f'rnbd_{NAMES[k]}{{model="{name}"}}'], f"ps and metrics agree on {k} of {name}", reads[k])
    check(abs(cache["wait_ms"] / 1e3 - m[f'rnbd_model_read_wait_seconds_total{{model="{name}"}}']) < 1e-9, "and on waiting")
    check(abs(cache["device_mb_per_s"] - reads["device_mb_per_s"]) < 1e-6, "and on the rate of the device", cache, reads)
    return cache

def squeeze(name, share):
    """Loads it with that share of what lies between its floor and all of it."""
    rpc("budget.set", ram=512 << 20)
    p = c.call("model.plan", target=name, ctx=512)["result"]
    rpc("budget.set", ram=int(p["floor"] + (p["peak"] - p["floor"]) * share))
    check("result" in c.call("model.load", target=name, ctx=512), f"{name} loads")

ASK = dict(prompt="Once upon a time there was a", max_tokens=24, temperature=0, ignore_eos=True)

# All resident: nothing is wanted of the file after the load, and an answer reads nothing.
check("result" in c.call("model.load", target="slow", ctx=512), "slow loads")
t = c.call("generate", model="slow", **ASK)["result"]["timings"]
check(t["bytes_read"] == 0 and t["bytes_wanted"] == 0 and t["wait_ms"] == 0 and t["hit_rate"] is None, "nothing is read", t)
r = agree("slow")
check(r["wanted"] == 0 and r["read"] >= r["weights"], "what was read is the load", r["read"], r["weights"])
c.call("model.unload", name="slow")

# Dense weights that stream.
squeeze("slow", 0.3)
before = agree("slow")
t = c.call("generate", model="slow", **ASK)["result"]["timings"]
r = agree("slow")
check(r["mode"] == "stream", "it streams", r["mode"])
check(t["bytes_read"] == r["read"] - before["read"] > 0, "its answer read what the model read", t, r["read"] - before["read"])
check(t["bytes_wanted"] == r["wanted"] - before["wanted"] > 0, "and wanted it", t)
check(t["hit_rate"] is None, "no experts, no hits", t)
check(sum(s["wanted"] for s in r["streamed"]) == r["wanted"], "layers sum to the model", r["wanted"])
check(sum(s["read"] for s in r["streamed"]) <= r["read"], "layers read no more than the model", r["read"])
check(len(r["streamed"]) > 1 and all(s["read"] > 0 for s in r["streamed"]), "every layer that streams says so", r["streamed"][:2])
check(0 < r["read_ahead"] <= r["read"] and r["read_ahead_unused"] <= r["read_ahead"], "some was read ahead", r["read_ahead"])
for k in ("read_ahead", "read_ahead_unused"):
    check(sum(s[k] for s in r["streamed"]) == r[k], f"{k} of layers sums to the model's", r[k])
check(all(s["read_ahead_unused"] <= s["read_ahead"] <= s["read"] for s in r["streamed"]), "no layer was read ahead of more than it read")
text = subprocess.run(["rnbctl", "cache", "slow"], capture_output=True, text=True).stdout
check(re.search(r"^LAYER STREAMED +WANTED +READ +AHEAD +UNUSED +WAITED$", text, re.M), "rnbctl tells of what streams", text)
check([int(n) for n in re.findall(r"^(\d+) .* ms$", text, re.M)] == [s["layer"] for s in r["streamed"]], "layer by layer", text)
c.call("model.unload", name="slow")

# All experts are there: nothing is counted, but what was chosen is known, and recorded where that is wanted.
check("result" in c.call("model.load", target="moe", ctx=512), "moe loads")
trace = os.path.join(T, "whole.trace")
check("result" in c.call("cache.report", model="moe", trace=trace), "a trace begins")
c.call("generate", model="moe", **dict(ASK, max_tokens=64))
r = c.call("cache.report", model="moe", curve=True, map=True, trace="")["result"]
check(r["mode"] == "all" and r["uses"] == 0 and r["wanted"] == 0, "no cache, nothing of it counted", r["mode"], r["uses"])
check([p["hit_rate"] for p in r["curve"][1:]] == [1, 1, 1, 1] and 0 < r["curve"][0]["hit_rate"] <= 1, "half of it is told, all of it hits", r["curve"])
check(any(h > 1 for l in r["map"] for h in l["heat"]) and all(l["resident"] == "1" * n["experts"] for l, n in zip(r["map"], r["layers"])), "the map shows what is used")
check(os.path.getsize(trace) > 64 * len(r["layers"]) * 2, "tokens were recorded", os.path.getsize(trace))
c.call("model.unload", name="moe")

# Experts in slots.
squeeze("moe", 0.5)
before = agree("moe")
a = http("POST", "/v1/completions", dict(model="moe", prompt=ASK["prompt"], max_tokens=24, temperature=0, ignore_eos=True))
t = a.json["timings"]
r = agree("moe")
check(r["mode"] in ("experts", "stream"), "experts are in slots", r["mode"])
uses, hits = r["uses"] - before["uses"], r["hits"] - before["hits"]
check(uses > 0 and 0 < hits <= uses, "decode used experts, some were there", uses, hits)
check(abs(t["hit_rate"] - hits / uses) < 1e-4, "the answer tells its hit rate", t, hits / uses)
check(t["bytes_read"] == r["read"] - before["read"], "and what it read", t)
check(t["bytes_wanted"] == r["wanted"] - before["wanted"], "and wanted", t)
layers = r["layers"]
check(sum(l["hit"] for l in layers) == r["hit"], "hits of layers sum to the model's")
check(sum(l["wanted"] for l in layers) + sum(s["wanted"] for s in r["streamed"]) == r["wanted"], "what layers want, too")
for l in layers:
    check(l["read"] - l["over_read"] == l["wanted"] - l["hit"], "a layer reads what it misses, and blocks around it", l)
check(all(l["resident"] <= l["quota"] <= l["experts"] for l in layers), "no layer holds more than its quota")
check("experts" not in r, "experts are told where they are asked for")
def experts(**ask):
    return c.call("cache.report", model="moe", experts=True, **ask)["result"]
r = experts(map=True)
check([x["layer"] for x in r["experts"]] == [l["layer"] for l in layers], "every layer with experts tells of them")
for x, l, row in zip(r["experts"], r["layers"], r["map"]):
    check(all(len(x[k]) == l["experts"] for k in ("tier", "heat", "last_use", "reads", "read")), "a column has all experts", x)
    check(sum(x["read"]) == l["read"], "bytes of experts sum to the layer's", x, l)
    check(x["tier"].count("ram") == l["resident"] and x["tier"].count("drive") == l["experts"] - l["resident"], "tiers are told", x, l)
    check([t == "ram" for t in x["tier"]] == [d == "1" for d in row["resident"]], "as the map shows them", x, row)
    check(x["heat"] == row["heat"] and x["layer"] == row["layer"], "and so is heat", x, row)
    check(all((n > 0) == (b > 0) and (n == 0 or u is not None) for n, b, u in zip(x["reads"], x["read"], x["last_use"])), "what was read was used", x)
    check(min(u for u in x["last_use"] if u is not None) == 0, "the last token used some", x)
text = subprocess.run(["rnbctl", "cache", "moe", "--map"], capture_output=True, text=True).stdout
signs = ["".join("." if d == "0" else "-" if h < .5 else str(min(9, int(h / 10 + 1))) for d, h in zip(l["resident"], l["heat"])) for l in r["map"]]
check(re.findall(r"^ *(\d+) ([-.1-9]+)$", text, re.M) == [(str(i), s) for i, s in enumerate(signs)], "rnbctl draws it", text, signs)
check(len(set("".join(signs))) > 2, "with several signs", signs)
rest = experts(map=True, **{"from": 5})
check("next" not in r and rest["experts"] == r["experts"][5:] and rest["map"] == r["map"][5:], "layers can be asked for from one on", rest)
check(experts(map=True, **{"from": 99})["map"] == [], "there may be none", rest)
r = experts()
check("map" not in r, "the map is told where it is asked for")
n = [x["reads"] for x in r["experts"]]
c.call("generate", model="moe", prompt=ASK["prompt"] * 2, max_tokens=1, temperature=0)
wait_for("the end of the work", idle)
chunk = [[b - a for a, b in zip(was, x["reads"])] for was, x in zip(n, experts()["experts"])]
check(max(map(max, chunk)) == 1, "a prompt of one chunk reads no expert twice", chunk)
text = subprocess.run(["rnbctl", "cache", "moe", "--experts"], capture_output=True, text=True).stdout
check(re.search(r"^LAYER +EXPERT +TIER +HEAT +LAST USED +READS +READ$", text, re.M), "rnbctl has a table of experts", text)
check(len(re.findall(r"^ *\d+ +\d+ +(?:ram|drive) ", text, re.M)) == sum(l["experts"] for l in layers), "with a line for each", text)
rpcs = c.call("generate", model="moe", **ASK)["result"]["timings"]
check({"bytes_read", "bytes_wanted", "wait_ms", "hit_rate"} <= set(rpcs) & set(t), "both faces tell the same", rpcs, t)
# What another size of the cache would give: what a token took, with the bytes of other misses at the rate of the drive.
wait_for("the end of the work", idle)
r = c.call("cache.report", model="moe", curve=True)["result"]
tg = [m for m in rpc("model.list", loaded=True)["models"] if m["name"] == "moe"][0]["tg_per_second"]
n_used = r["uses"] / sum(sum(l["missed"]) for l in r["layers"]) # each choice of decode is one of so many
all_missed = n_used * sum(l["slot_bytes"] for l in r["layers"]) / (r["device_mb_per_s"] * 1e6)
rest = max(1 / tg - all_missed * (1 - r["hit_rate"]), 1e-4)
points = r["curve"]
check([p["factor"] for p in points] == [0.5, 1, 1.5, 2, 4] and points[1]["slots"] == r["slots"], "half to four times what there is", points)
for p in points:
    want = 1 / (rest + all_missed * (1 - p["hit_rate"]))
    check(abs(p["tg_per_s"] - want) <= 1e-6 * want, "a hit rate has its speed", p, want, tg, r["hit_rate"])
for a, b in zip(points, points[1:]):
    check(a["bytes"] <= b["bytes"] and a["hit_rate"] <= b["hit_rate"] and a["tg_per_s"] <= b["tg_per_s"], "more cache is no slower", a, b)
check(points[0]["tg_per_s"] < points[-1]["tg_per_s"], "and one with more hits is faster", points)
if rest > 1e-4: # else reads took longer than tokens, for some were of a prompt
    check(all((p["tg_per_s"] >= tg * (1 - 1e-9)) == (p["hit_rate"] >= r["hit_rate"]) for p in points),
          "faster than it was with more hits than it had, and slower with fewer", points, tg, r["hit_rate"])
text = subprocess.run(["rnbctl", "cache", "moe", "--curve"], capture_output=True, text=True).stdout
check(re.findall(r"^ *([0-9.]+) x .* (\S+)$", text, re.M) == [(f"{p['factor']:.1f}", f"{p['tg_per_s']:.2f}") for p in points],
      "rnbctl shows it in TOK/S", text, points)
held = {m["name"]: m["charged_bytes"] for m in rpc("model.list", loaded=True)["models"]}
check(c.call("cache.report", model="moe")["result"]["held"] == held["moe"] == sum(used().values()), "cache, ps and memory agree",
      held, used())
# What is read leaves no page cache; what somebody else reads of the file is told.
def page_cache():
    return rpc("memory.report")["page_cache"]

size = os.path.getsize(os.environ["MOE"])
forget(os.environ["MOE"])
time.sleep(1.2)
page_cache()
if wait_for("the page cache to be looked at", lambda: page_cache() < size // 2):
    c.call("generate", model="moe", **dict(ASK, prompt="Another one"))
    time.sleep(1.2)
    check(page_cache() < size // 2, "reads of experts leave no copy behind", page_cache(), size)
    def is_told():
        # again each time: a kernel that drops cold pages by itself may do so between two looks
        with open(os.environ["MOE"], "rb") as f:
            f.read()
        return page_cache() >= size and metrics()["rnbd_page_cache_bytes"] >= size

    wait_for("it to be told, also to monitors", is_told)
# A name with signs that a label cannot have.
squeeze("moe", 1)
c.call("model.unload", name="moe")
check("result" in c.call("model.load", target=os.environ["MOE"], name='a"b\\c', ctx=512), "an odd name loads")
check('rnbd_model_read_bytes_total{model="a\\"b\\\\c"}' in http("GET", "/metrics").body.decode(), "and is escaped")
P

# More experts than a line of the control protocol has room for: their layers come in several.
python3 "$HERE/wide_gguf.py" "$MOE" "$T/wide.gguf" 40 1024 || fail 'no wide model'
expect 0 rnbctl budget ram=512MiB
expect 0 rnbctl load "$T/wide.gguf" --name wide --ctx 512
py <<'P'
import subprocess

c = Rpc()
m = c.call("cache.report", model="wide", map=True)
rows = m.get("result", {"map": []})["map"]
check([len(l["resident"]) for l in rows] == [len(l["heat"]) for l in rows] == [1024] * 40, "a line has room for the map", str(m)[:200])
told, m = [], {"next": 0}
while "next" in m and len(told) < 40:
    m = c.call("cache.report", model="wide", map=True, experts=True, **{"from": m["next"]}).get("result", {"experts": [], "map": []})
    check(0 < len(m["experts"]) == len(m["map"]) < 40, "some layers", len(m["experts"]), len(m["map"]), m.get("next"))
    told += m["experts"]
    check(m.get("next", 40) == len(told), "and where to go on", m.get("next"), len(told))
check([l["layer"] for l in told] == list(range(40)) and all(len(l["tier"]) == 1024 for l in told), "every layer once", len(told))
for option, line, n in (("--map", r"^ *\d+ \.{1024}$", 40), ("--experts", r"^\d+ +\d+ +drive +0.0 +never +0 ", 40 * 1024)):
    ran = subprocess.run(["rnbctl", "cache", "wide", option], capture_output=True, text=True)
    check(len(re.findall(line, ran.stdout, re.M)) == n, f"rnbctl has all of {option}", ran.stdout[:600], ran.stderr)
said = subprocess.run(["rnbctl", "--json", "cache", "wide", "--experts"], capture_output=True, text=True).stdout
whole = json.loads(said or "{}")
check(whole.get("experts") == told and "next" not in whole, "also as JSON", said[:200])
P
finish
