#!/bin/bash
# A model file that vanishes, shrinks or changes while it is known, and while it is loaded.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

mkdir "$T/models"
cp "$TINY" "$T/models/a.gguf"
cp "$TINY" "$T/models/b.gguf"
cp "$SLOW" "$T/models/c.gguf"
printf '[models]\ndir = %s\n' "$T/models" >"$T/rnbd.conf"
start
py <<'P'
def ask(name):
    return http("POST", "/v1/chat/completions", chat_body(model=name, max_tokens=8))

a0 = ask("a").json["choices"]
os.unlink(T + "/models/a.gguf")
a = ask("a")
check(a.status == 200 and a.json["choices"] == a0, "a loaded model runs on when its file is unlinked", a.status)
rpc("model.unload", name="a")
a = ask("a")
check(a.status in (404, 422, 500), "after that it cannot be loaded", a.status, a.body)
check("a.gguf" in a.error["message"], "the error names the file", a.body)
check(http("GET", "/health").status == 200, "alive")
# Shrinks while listed.
os.truncate(T + "/models/b.gguf", 1000000)
a = ask("b")
check(a.status == 422, "a file that ends early is refused", a.status, a.body)
check("cannot load 'b'" in a.error["message"], "the error names the model as it is known", a.body)
rpc("budget.set", ram=sum(used().values()) + (5 << 20))
a = ask("c")
check(a.status == 503 and "'c' needs" in a.error["message"], "and so does one that does not fit", a.status, a.body)
rpc("budget.set", ram=512 << 20)
m = next(x for x in rpc("model.list")["models"] if x["name"] == "b")
print("note: state of a model whose file is broken:", m["state"], "-", m["error"])
# Shrinks, or changes, while loaded.
rpc("model.load", target="c")
os.truncate(T + "/models/c.gguf", 1000000)
a = ask("c")
check(a.status in (200, 500, 422), "a loaded model whose file shrinks does no harm", a.status, a.body)
check(http("GET", "/health").status == 200, "alive after the file has shrunk")
rpc("model.unload", name="c", force=True)
a = ask("c")
check(a.status == 422, "and is refused when loaded again", a.status)
# While it is being loaded.
import shutil
for _ in range(10):
    shutil.copy(os.environ["SLOW"], T + "/models/c.gguf")
    c = Rpc()
    n = c.send("model.load", target="c")
    time.sleep(0.01)
    os.truncate(T + "/models/c.gguf", 2000000)
    m = c.answer(n)
    check(m is not None, "the daemon survives a file that shrinks during the load")
    c.call("model.unload", name="c", force=True)
    c.close()
# Repaired: it loads again.
shutil.copy(os.environ["TINY"], T + "/models/b.gguf")
a = ask("b")
check(a.status == 200, "a repaired file loads", a.status, a.body)
check(a.json["choices"] == a0, "and answers as its copy did")
# A new file is known after a reload, one that is gone is forgotten.
shutil.copy(os.environ["TINY"], T + "/models/d.gguf")
os.unlink(T + "/models/c.gguf")
rpc("server.reload")
names = {x["name"] for x in rpc("model.list")["models"]}
check("d" in names and "c" not in names, "the folder is read again by a reload", names)
rpc("model.unload", name="b")
check(sum(used().values()) == 0, "nothing is held", used())
P
finish
