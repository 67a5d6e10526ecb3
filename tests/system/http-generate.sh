#!/bin/bash
# Chat and completion, streamed and not: the same content; usage, n, stop, logprobs, echo.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model tiny="$TINY"
py <<'P'
def whole(body, path="/v1/chat/completions"):
    a = http("POST", path, body)
    check(a.status == 200, "200", a.status, a.body)
    return a.json

def text_of(chunks, index=0):
    return "".join(c["choices"][0].get("text", c["choices"][0].get("delta", {}).get("content") or "")
                   for c in chunks if c["choices"] and c["choices"][0]["index"] == index)

for seed in range(6):
    for more in [{}, {"temperature": 0}, {"top_k": 3}, {"n": 2}, {"logprobs": True, "top_logprobs": 3}, {"max_completion_tokens": 16},
                 {"stop": ["a", "\u0120"]}, {"logit_bias": {"10": 5}}, {"repeat_penalty": 1.3, "min_p": 0.1}]:
        body = chat_body("tell me", **{**more, "seed": seed, "max_tokens": None if "max_completion_tokens" in more else 24})
        a = whole(body)
        chunks = events({**body, "stream_options": {"include_usage": True}})
        check(a["object"] == "chat.completion" and chunks[0]["object"] == "chat.completion.chunk", "object names")
        for i, choice in enumerate(a["choices"]):
            check(choice["message"]["content"] == text_of(chunks, i), "streamed and not: the same", more, choice["message"], text_of(chunks, i))
            ends = [c["choices"][0]["finish_reason"] for c in chunks if c["choices"] and c["choices"][0]["index"] == i]
            check(ends[-1] == choice["finish_reason"] and set(ends[:-1]) <= {None}, "finish_reason", ends[-1], choice["finish_reason"])
        check(chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] == a["usage"]["completion_tokens"], "usage", chunks[-1])
        check(chunks[0]["choices"][0]["delta"]["role"] == "assistant", "the role comes first", chunks[0])
        check(len({c["id"] for c in chunks}) == 1, "one id")
        check(whole(body)["choices"] == a["choices"], "asked again: the same", more)
        u = a["usage"]
        check(u["total_tokens"] == u["prompt_tokens"] + u["completion_tokens"], "the sum of usage", u)
        check("timings" in a and a["timings"]["ttft_ms"] > 0, "timings", a.get("timings"))
for more in [{}, {"echo": True}, {"logprobs": 2}, {"n": 2}, {"prompt": [65, 66, 67]}, {"prompt": "\u00fc\u4e16\u754c\U0001f600"}, {"stop": "e"}]:
    body = {"model": "tiny", "prompt": "once upon", "max_tokens": 20, "seed": 5, **more}
    a = whole(body, "/v1/completions")
    chunks = events(body, "/v1/completions")
    for i, choice in enumerate(a["choices"]):
        check(choice["text"] == text_of(chunks, i), "completion: streamed and not the same", more, choice["text"], text_of(chunks, i))
    check(a["object"] == "text_completion", "object", a["object"])
a = whole(chat_body(n=3, seed=9))
check([c["index"] for c in a["choices"]] == [0, 1, 2], "n choices in order")
a = whole(chat_body(max_tokens=5, ignore_eos=True))
check(a["usage"]["completion_tokens"] == 5 and a["choices"][0]["finish_reason"] == "length", "max_tokens", a["usage"])
a = whole({"model": "tiny", "prompt": "hello", "max_tokens": 3, "echo": True}, "/v1/completions")
check(a["choices"][0]["text"].startswith("hello"), "echo", a["choices"][0])
a = whole(chat_body(logprobs=True, top_logprobs=2))
lp = a["choices"][0]["logprobs"]["content"]
check(len(lp) == a["usage"]["completion_tokens"], "a logprob for each token", len(lp), a["usage"])
check(all(len(t["top_logprobs"]) == 2 and t["logprob"] <= 0 for t in lp), "top_logprobs", lp[:1])
for seed in [0, 2**53, 2**63 - 1, -1, -2**63]:
    a, b = whole(chat_body(seed=seed)), whole(chat_body(seed=seed))
    check(a["sampling"]["seed"] == seed and a["choices"] == b["choices"], "a seed is used as it is", seed, a["sampling"])
a = whole(chat_body(seed=None))
b = whole(chat_body(seed=a["sampling"]["seed"]))
check(a["choices"] == b["choices"], "the seed that was drawn gives the answer again")
# The second question begins as the first did: its prefix is not computed again.
a = whole(chat_body("a long question that is asked twice " * 10))
b = whole(chat_body("a long question that is asked twice " * 10))
print("note: cached tokens of a repeated prompt:", b["usage"]["prompt_tokens_details"]["cached_tokens"], "of", b["usage"]["prompt_tokens"])
# Models.
m = http("GET", "/v1/models").json
check(m["object"] == "list" and m["data"][0]["id"] == "tiny", "/v1/models", m)
check(http("GET", "/v1/models/tiny").json["id"] == "tiny", "/v1/models/tiny")
a = http("GET", "/metrics")
check(a.headers["content-type"].startswith("text/plain"), "metrics are text", a.headers)
for line in a.body.decode().splitlines():
    check(line.startswith("#") or re.fullmatch(r'[a-z_:]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [-+0-9.e]+(nan|inf)?', line), "a line of Prometheus' format", line)
# 100 requests on one connection.
c = http_connection()
for _ in range(100):
    check(http("POST", "/v1/chat/completions", chat_body(max_tokens=1), connection=c).status == 200, "keep-alive")
    port = c.sock.getsockname()[1]
check(c.sock.getsockname()[1] == port, "one connection did")
P
finish
