#!/bin/bash
# Every refusal has OpenAI's shape, its status, and names what to change.
# shellcheck source=tests/system/lib.sh
. ./lib.sh

start --model tiny="$TINY" --model other="$SLOW"
py <<'P'
CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"

def refused(status, body=None, path=CHAT, method="POST", param=None, says=None, headers=None):
    a = http(method, path, body, headers)
    good = check(a.status == status, f"{method} {path} is answered with {status}", a.status, a.body, body)
    check(a.headers.get("content-type") == "application/json", "errors are JSON", a.headers)
    if method == "HEAD":
        return a
    e = a.json.get("error", {})
    check(set(e) >= {"message", "type", "param", "code"}, "OpenAI's shape", a.body)
    check(e.get("message") and "\n" not in e["message"], "one sentence", e)
    if param:
        check(e.get("param") == param, f"param is {param}", e)
    if says:
        check(says in e.get("message", ""), f"the sentence says {says}", e)
    return a

def chat_refused(status, param=None, says=None, **more):
    return refused(status, chat_body(**more), param=param, says=says)

# Fields.
chat_refused(400, "temprature", "temperature", temprature=1)
for name, values in {
    "temperature": [-0.1, 11, "1", True, [], 1e300], "top_p": [-1, 1.1, "x"], "top_k": [-1, 1.5, 2**40], "max_tokens": [0, -1, 1.5, "5", 2**40],
    "n": [0, 17, 1.5, "2"], "stop": ["", [""], 5, ["a"] * 17, [1], {}], "stream": [1, "true"], "seed": [1.5, "1"], "model": ["", 5, []],
    "logit_bias": [5, {"x": 1}, {"1": 101}, {"1": "a"}, {"-1": 1}], "frequency_penalty": [3, "x"], "presence_penalty": [-3],
    "messages": [[], {}, "hi", [5], [{}], [{"role": "king", "content": "x"}], [{"role": "user", "content": 5}], [{"role": "user", "content": "x", "extra": 1}],
                 [{"role": "user", "content": [{"type": "text"}]}], [{"role": "user", "content": [5]}]],
    "top_logprobs": [-1, 21, "x"], "logprobs": [5, "x"], "tools": [5, [5], [{"type": "x"}]], "stream_options": [5, {"x": 1}], "mirostat": [1, 3, "x"],
    "keep_alive": ["soon", [], 1e300], "user": [5], "min_p": [2], "repeat_penalty": [0, -1],
}.items():
    for v in values:
        chat_refused(400, **{name: v}, says=name if name != "messages" else "messages" if v != [{"role": "user", "content": "x", "extra": 1}] else "extra")
chat_refused(400, "top_logprobs", top_logprobs=3)
for name, value in {"response_format": {"type": "json_object"}, "tool_choice": "required", "parallel_tool_calls": False, "grammar": "root ::= 'a'", "audio": {},
                    "store": True, "service_tier": "flex", "modalities": ["audio"], "functions": []}.items():
    chat_refused(422, name, name, **{name: value})
chat_refused(422, says="image_url", messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}])
for name, value in {"response_format": {"type": "text"}, "tool_choice": "none", "parallel_tool_calls": True, "grammar": "", "store": False, "temperature": None,
                    "stop": None, "tools": [], "modalities": ["text"], "n": 1, "logprobs": False, "user": "me", "metadata": {}}.items():
    check(chat(**{name: value}).status == 200, f"{name} = {value} is neutral")
refused(400, {"model": "tiny", "messages": None}, param="messages")
refused(400, {"model": "tiny"}, COMPLETION, says="prompt")
for prompt in [5, {}, [], [1.5], [-1], [2**40], [[]], [True], ["a", 5]]:
    refused(400 if prompt != ["a", 5] else 422, {"model": "tiny", "prompt": prompt}, COMPLETION)
refused(400, {"model": "tiny", "prompt": [99999]}, COMPLETION)
refused(422, {"model": "tiny", "prompt": ["a", "b"]}, COMPLETION, "POST", "prompt")
refused(400, {"model": "tiny", "prompt": "x", "messages": []}, COMPLETION, says="messages")
refused(422, {"model": "tiny", "prompt": "x", "best_of": 2}, COMPLETION) if http("POST", COMPLETION, {"model": "tiny", "prompt": "x", "best_of": 1}).status == 200 else None
# Bodies.
J = {"Content-Type": "application/json"}
for body in [b"", b"{", b"nonsense", b"[]", b"5", b"null", b'"x"', b'{"model":"tiny",}', b"\xff\xfe", b'{"a":"\xff"}', b'{"a":1,"a":2}', b"[" * 100000, b'{"a":' * 50000,
             b'{"model":"\\u0000"}', b'{"model":"tiny","messages":[{"role":"user","content":"\\ud800"}]}', b'{"a":1}{"b":2}', b'{"temperature":1e999}', b"\0" * 100]:
    refused(400, body, headers=J)
refused(415, b"{}", headers={"Content-Type": "text/plain"})
refused(415, b"{}", headers={"Content-Type": "application/jsonx"})
refused(415, b"{}")
refused(415, b"{}", headers={**J, "Content-Encoding": "gzip"})
check(http("POST", CHAT, json.dumps(chat_body()).encode(), {"Content-Type": "application/json; charset=utf-8"}).status == 200, "a charset is fine")
# Names and paths.
a = refused(404, chat_body(model="nonsense"), says="tiny")
check(a.error["type"] == "not_found_error", "its type", a.body)
refused(404, None, "/v1/models/nonsense", "GET", says="tiny")
for path in ["/", "/v1", "/v1/chat", "/nonsense", "/v1/models/", "/v1//models", "/health/", "/../etc/passwd", "/%2e%2e/x", "/v1/models/%00", "/v1/models/" + "x" * 5000]:
    refused(404, None, path, "GET")
for path, method, allow in [("/health", "POST", "GET"), ("/v1/models", "DELETE", "GET"), (CHAT, "GET", "POST"), (CHAT, "PUT", "POST"), (COMPLETION, "PATCH", "POST"),
                            (CHAT, "HEAD", "POST"), ("/metrics", "TRACE", "GET")]:
    a = refused(405, None, path, method)
    check(allow in a.headers.get("allow", ""), "Allow", a.headers)
check(http("GET", "/health?x=1").status == 200, "a query is ignored")
# A prompt that is too long: both counts.
a = chat_refused(413, says="2048", text="word " * 5000)
a = refused(413, {"model": "tiny", "prompt": [65] * 2048, "max_tokens": 1}, COMPLETION)
check(http("POST", COMPLETION, {"model": "tiny", "prompt": [65] * 2047, "max_tokens": 1}).status == 200, "one that just fits")
# After the stream has begun an error is an event; before, a status.
a = http("POST", CHAT, {**chat_body(model="nonsense"), "stream": True})
check(a.status == 404, "a stream that cannot begin has its status", a.status)
check(rpc("server.status")["engine"]["running"] == 0, "nothing is left running")
P
finish
