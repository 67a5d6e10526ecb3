#!/bin/bash
# rnbctl verify: the digest of a sound file, a sentence for each fault of a damaged one, and nobody waits for it.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

mkdir "$T/models"
cp "$TINY" "$T/models/sound.gguf"
start --models-dir "$T/models"
expect 0 rnbctl verify sound
has "$OUT" "$(sha256sum <"$TINY" | cut -d' ' -f1)  $T/models/sound.gguf"
has "$OUT" 'sound: '
expect 0 rnbctl verify "$T/models/sound.gguf" --json
[ "$(field sound <<<"$OUT")" = True ] || fail "the file is not called sound: $OUT"
expect 2 rnbctl verify
expect 1 rnbctl verify "$T/nothing.gguf"
one_sentence "$ERR"
head -c 100000 "$TINY" >"$T/short.gguf"
expect 1 rnbctl verify "$T/short.gguf"
one_sentence "$ERR"
has "$ERR" short.gguf
py <<'P'
import shutil, struct

def tensors(path):
    shown = rpc("model.show", target=path)
    return {t["name"]: t for t in shown["tensors"]}, shown["file_bytes"]

# Tensors lie one behind another, padded to 32 bytes, up to the end of the file.
path = T + "/bad.gguf"
shutil.copy(T + "/models/sound.gguf", path)
there, size = tensors(path)
places, at = {}, size
for t in reversed(list(there.values())):
    at -= (t["bytes"] + 31) // 32 * 32
    places[t["name"]] = at
with open(path, "r+b") as f:
    q = there["blk.0.attn_q.weight"]
    check(q["type"] == "f16", "the tiny model is of f16", q)
    f.seek(places["blk.0.attn_q.weight"] + 2 * (3 * q["dims"][0] + 5))
    f.write(b"\x00\x7e\x00\x7c")  # NaN, infinity
    f.seek(places["blk.1.ffn_down.weight"])
    f.write(bytes(there["blk.1.ffn_down.weight"]["bytes"]))
notes = []
c = Rpc()
a = c.answer(c.send("model.verify", target=path), notes)["result"]
check(a["sound"] is False and a["n_findings"] == 2, "two faults", a)
check(any("'blk.0.attn_q.weight' has 2 values that are no numbers, the first in row 3, column 5" in s for s in a["findings"]), "no numbers", a)
check(any("'blk.1.ffn_down.weight' is zero throughout" in s for s in a["findings"]), "zero", a)
check(used()["staging"] == 0, "what reading took is given back", used())
# A large file: progress is told, others are answered meanwhile, and a call that is given up leaves nothing behind.
with open(T + "/large.gguf", "wb") as f, open(os.environ["SLOW"], "rb") as slow:
    shutil.copyfileobj(slow, f)
    f.seek(3 << 30)  # a hole behind the tensors is read like any byte
    f.write(b"x")
before = used()
c = Rpc()
c.send("model.verify", target=T + "/large.gguf")
while (m := c.read()) and m.get("method") != "progress":
    pass
check(m and m["params"]["step"] == "verifying" and m["params"]["done"] <= m["params"]["total"], "progress", m)
check(rpc("model.show", target="sound")["n_layers"] == 2, "show while a file is verified")
check(c.read().get("method") == "progress", "it was answered before the file was read")
c.close()
wait_for("the bytes of a call that was given up", lambda: used() == before)
P
expect 1 rnbctl verify "$T/bad.gguf"
has "$OUT" "tensor 'blk.1.ffn_down.weight' is zero throughout"
# One that runs when rnbd stops does not hold it up.
rnbctl verify "$T/large.gguf" >/dev/null 2>&1 &
sleep 0.5
stop
wait
finish
