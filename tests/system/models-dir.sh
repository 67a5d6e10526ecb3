#!/bin/bash
# A folder of models with anything in it: what can be a model is known by its name, the rest ends nothing.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

mkdir "$T/models"
cp "$TINY" "$T/models/plain.gguf"
python3 - <<'P'
import os
os.chdir(os.environ["T"] + "/models")
for name in [b"\xff\xfe.gguf", b"new\nline.gguf", b"esc\x1b[31m.gguf", b"sp ace.gguf", b"x" * 240 + b".gguf", b"quote'.gguf", b".gguf", b".hidden.gguf", b"UPPER.GGUF",
             "\u00fc\u4e16.gguf".encode(), b"%s%n.gguf", b"split-00001-of-00002.gguf", b"split-00002-of-00002.gguf", b"=.gguf", b"[model].gguf", b"notes.txt", b"gguf"]:
    os.symlink("plain.gguf", name)
os.symlink("loop.gguf", "loop.gguf")
os.symlink("nowhere", "dangling.gguf")
os.symlink("/dev/zero", "device.gguf")
os.mkdir("folder.gguf")
os.mkfifo("fifo.gguf")
P
printf '[models]\ndir = %s\n[model plain]\nfile = %s\nctx = 300\naliases = other\n' "$T/models" "$TINY" >"$T/rnbd.conf"
start
py <<'P'
models = {m["name"]: m for m in rpc("model.list")["models"]}
known = {"plain", "sp ace", "quote'", "\u00fc\u4e16", "%s%n", "split", "=", "[model]", "loop", "dangling", "device", "folder", "fifo"}
check(set(models) == known, "the names", sorted(set(models) ^ known))
check(models["plain"]["path"] == os.environ["TINY"], "a section wins over a file of the same name", models["plain"])
for name in known:
    m = Rpc(20).call("generate", model=name, prompt="x", max_tokens=1)
    good = name not in ("loop", "dangling", "device", "folder", "fifo")
    check(("result" in m) == good, f"'{name}' answers" if good else f"'{name}' is refused", m)
from urllib.parse import quote
for name in ["sp ace", "\u00fc\u4e16", "%s%n", "[model]"]:
    check(http("GET", "/v1/models/" + quote(name)).json["id"] == name, "its path", name)
check(chat(model="other").status == 200, "an alias")
P
grep -q "left out a model file" "$T/log" || fail 'no word about the files that were left out'
finish
