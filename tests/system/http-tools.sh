#!/bin/bash
# Reasoning and tool calls of every dialect over HTTP, from models that answer what they are told to (make_parrot).
# shellcheck source=tests/system/lib.sh
. ./lib.sh

mkdir "$T/models"
cat >"$T/dialects.py" <<'P'
"""The answers: dialect, marks of its template, control tokens, the answer, and what must come of it."""
CALL = [("get_weather", {"city": "Ulm", "days": 3})]
BOTH = CALL + [("now", {})]
DIALECTS = [
    ("hermes", "<think> <tool_call>", ["<tool_call>"],
     "<think>\nI weigh.\n</think>\n\nLet me look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ulm\", \"days\": 3}}\n"
     "</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", "I weigh.", "Let me look.", BOTH),
    ("qwen3_coder", "<think> <tool_call> <function= <parameter=", ["<tool_call>", "</tool_call>"],
     "<think>\nI weigh.\n</think>\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nUlm\n</parameter>\n<parameter=days>\n3\n"
     "</parameter>\n</function>\n</tool_call>", "I weigh.", None, CALL),
    ("llama3", "<|start_header_id|> <|python_tag|>", [], "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Ulm\", \"days\": 3}}",
     None, None, CALL),
    ("mistral", "[TOOL_CALLS] [THINK]", ["[TOOL_CALLS]", "[THINK]", "[/THINK]"],
     "[THINK]I weigh.[/THINK]Let me look.[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ulm\", \"days\": 3}},"
     " {\"name\": \"now\", \"arguments\": {}}]", "I weigh.", "Let me look.", BOTH),
    ("gptoss", "<|channel|> <|message|>", ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"],
     "<|channel|>analysis<|message|>I weigh.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json"
     "<|message|>{\"city\": \"Ulm\", \"days\": 3}", "I weigh.", None, CALL),
    ("deepseek", "<think> <｜tool▁calls▁begin｜>",
     ["<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
     "<think>I weigh.</think>Let me look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
     "{\"city\": \"Ulm\", \"days\": 3}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "I weigh.", "Let me look.", CALL),
    ("deepseek_v31", "<think> <｜tool▁calls▁begin｜>", ["<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"],
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Ulm\", \"days\": 3}<｜tool▁call▁end｜>"
     "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", None, None, BOTH),
    ("deepseek_dsml", "｜DSML｜ <think>", [],
     "<think>I weigh.</think>\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" "
     "string=\"true\">Ulm</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
     "</｜DSML｜function_calls>", "I weigh.", None, CALL),
    ("glm", "<think> <tool_call> <arg_key>", ["<think>", "</think>", "<tool_call>", "<arg_key>"],
     "<think>I weigh.</think>Let me look.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Ulm</arg_value>\n"
     "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>", "I weigh.", "Let me look.", CALL),
    ("kimi", "<|tool_call_argument_begin|>", ["<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>"],
     "Let me look.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
     "{\"city\": \"Ulm\", \"days\": 3}<|tool_call_end|><|tool_calls_section_end|>", None, "Let me look.", CALL),
    ("gemma4", "<|tool_call>call: <|channel>thought\n", ["<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|\"|>"],
     "<|channel>thought\nI weigh.\n<channel|><|tool_call>call:get_weather{city:<|\"|>Ulm<|\"|>,days:3}<tool_call|>", "I weigh.", None, CALL),
    ("command_r", "<|START_ACTION|> <|START_THINKING|>", ["<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>", "<|END_ACTION|>"],
     "<|START_THINKING|>I weigh.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", "
     "\"parameters\": {\"city\": \"Ulm\", \"days\": 3}}\n]<|END_ACTION|>", "I weigh.", None, CALL),
    ("granite", "<|tool_call|>", ["<|tool_call|>"],
     "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ulm\", \"days\": 3}}, {\"name\": \"now\"}]", None, None, BOTH),
    ("lfm2", "<|tool_call_start|>", ["<|tool_call_start|>", "<|tool_call_end|>"],
     "<|tool_call_start|>[get_weather(city='Ulm', days=3), now()]<|tool_call_end|>Let me look.", None, "Let me look.", BOTH),
    ("minimax", "<think> <minimax:tool_call>", ["<minimax:tool_call>", "</minimax:tool_call>"],
     "<think>I weigh.</think>\n\n<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Ulm</parameter>\n"
     "<parameter name=\"days\">3</parameter>\n</invoke>\n</minimax:tool_call>", "I weigh.", None, CALL),
    ("nemotron", "<TOOLCALL> <think>", ["<TOOLCALL>", "</TOOLCALL>"],
     "<think>\nI weigh.\n</think>\n\n<TOOLCALL>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ulm\", \"days\": 3}}]</TOOLCALL>",
     "I weigh.", None, CALL),
    ("hy3", "'<think{}>' '<tool_sep{}>' '<arg_key{}>'", ["<think:opensource>", "</think:opensource>", "<tool_calls:opensource>"],
     "<think:opensource>I weigh.</think:opensource>Let me look.<tool_calls:opensource>\n<tool_call:opensource>get_weather<tool_sep:opensource>\n"
     "<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Ulm</arg_value:opensource>\n<arg_key:opensource>days"
     "</arg_key:opensource>\n<arg_value:opensource>3</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
     "I weigh.", "Let me look.", CALL),
    ("muse", "<atem:function_calls>", ["<|message|>", "<|eom|>", "<|start|>"],
     " to=self<|message|>I weigh.<|eom|><|start|>assistant to=get_weather<|message|><atem:function_calls>\n<atem:invoke name=\"get_weather\">\n"
     "<atem:parameter name=\"city\">Ulm</atem:parameter>\n<atem:parameter name=\"days\">3</atem:parameter>\n</atem:invoke>\n"
     "</atem:function_calls>", "I weigh.", None, CALL),
]
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "d", "parameters": {
             "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}},
         {"type": "function", "function": {"name": "now", "description": "d", "parameters": {"type": "object", "properties": {}}}}]
P
export PYTHONPATH=$T:$PYTHONPATH
python3 - "$B/tests/make_parrot" "$T" <<'P' || exit 1
import subprocess
import sys
from dialects import DIALECTS
TEMPLATE = ("{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
            "{% for c in m.tool_calls or [] %}{{ c | tojson }}{% endfor %}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}{# MARKS #}")
for name, marks, controls, answer, *_ in DIALECTS:
    for file, text in (("template", TEMPLATE.replace("MARKS", marks)), ("answer", answer)):
        with open(f"{sys.argv[2]}/{file}", "w", encoding="utf-8") as f:
            f.write(text)
    subprocess.run([sys.argv[1], f"{sys.argv[2]}/models/{name}.gguf", f"{sys.argv[2]}/template", f"{sys.argv[2]}/answer", *controls], check=True)
P
start --models-dir "$T/models"
py <<'P'
from dialects import DIALECTS, TOOLS

def ask(name, **more):
    return {"model": name, "messages": [{"role": "user", "content": "What now?"}], "tools": TOOLS, **more}

def joined(chunks):
    """A stream put together as OpenAI's SDK does it."""
    m, ends = {"content": None, "reasoning_content": None, "tool_calls": []}, []
    for c in chunks:
        for choice in c["choices"]:
            d = choice["delta"]
            ends += [choice["finish_reason"]] if choice["finish_reason"] else []
            for key in ("content", "reasoning_content"):
                if d.get(key):
                    m[key] = (m[key] or "") + d[key]
            for call in d.get("tool_calls", []):
                if call["index"] == len(m["tool_calls"]):
                    check(call["type"] == "function" and call["id"] and call["function"]["name"], "a call begins with id, type and name", call)
                    m["tool_calls"].append({"id": call["id"], "name": call["function"]["name"], "arguments": ""})
                else:
                    check("id" not in call and "name" not in call["function"], "only the first part of a call has its id and name", call)
                check(call["index"] == len(m["tool_calls"]) - 1, "calls come one after another", call)
                m["tool_calls"][-1]["arguments"] += call["function"]["arguments"]
    return m, ends

def calls_of(m):
    return [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in m.get("tool_calls", [])]

for name, _, _, answer, reasoning, content, calls in DIALECTS:
    a = http("POST", "/v1/chat/completions", ask(name))
    if not check(a.status == 200, "200", name, a.status, a.body):
        continue
    m, end = a.json["choices"][0]["message"], a.json["choices"][0]["finish_reason"]
    check((m.get("reasoning_content"), m["content"]) == (reasoning, content), "reasoning and content", name, m)
    check(calls_of(m) == calls and end == "tool_calls", "calls", name, m, end)
    check(len({c["id"] for c in m["tool_calls"]}) == len(calls), "ids differ", name, m)
    s, ends = joined(events(ask(name)))
    check((s["reasoning_content"], s["content"]) == (reasoning, content), "streamed: reasoning and content", name, s)
    check([(c["name"], c["arguments"]) for c in s["tool_calls"]] == [(c["function"]["name"], c["function"]["arguments"]) for c in m["tool_calls"]],
          "streamed: the same arguments, to the byte", name, s, m)
    check(ends == ["tool_calls"], "streamed: finish_reason", name, ends)
    # The answer goes back as it came, with the results.
    back = [{"role": "user", "content": "What now?"}, m, *({"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in m["tool_calls"])]
    a = http("POST", "/v1/chat/completions", {**ask(name), "messages": back})
    check(a.status == 200, "an answer may go back as it came", name, a.body)
    # Without tools nothing is a call, and no byte of what was written is missing but markers that are never content.
    a = http("POST", "/v1/chat/completions", ask(name, tools=None)).json["choices"][0]
    check("tool_calls" not in a["message"] and a["finish_reason"] == "stop", "no tools, no calls", name, a)
    check("Ulm" in a["message"]["content"], "the text stays", name, a["message"])
    a = http("POST", "/v1/chat/completions", ask(name, tool_choice="none")).json["choices"][0]
    check("tool_calls" not in a["message"], "tool_choice none", name, a)
    # Cut off anywhere: the same text streamed or not, and the reason is said.
    for n in (1, 3, 6, 10, 17, 25):
        a = http("POST", "/v1/chat/completions", ask(name, max_tokens=n)).json["choices"][0]
        s, ends = joined(events(ask(name, max_tokens=n)))
        m = a["message"]
        check(a["finish_reason"] in ("length", "tool_calls") and ends == [a["finish_reason"]], "cut off", name, n, a, ends)
        check((m.get("reasoning_content") or None, m["content"] or None) == (s["reasoning_content"], s["content"]), "cut off: the same", name, n, m, s)
        check([c["function"]["arguments"] for c in m.get("tool_calls", [])] == [c["arguments"] for c in s["tool_calls"]], "cut off: calls", name, n, m, s)
# Log probabilities cover every token of the answer, whatever it became.
for name in ("hermes", "gptoss"):
    body = ask(name, logprobs=True)
    a = http("POST", "/v1/chat/completions", body).json
    whole = a["choices"][0]["logprobs"]["content"]
    check(len(whole) == a["usage"]["completion_tokens"], "a log probability for each token", name, len(whole), a["usage"])
    lists = [ch["logprobs"]["content"] for c in events(body) for ch in c["choices"] if ch["logprobs"]]
    parts = [t for some in lists for t in some]
    check(max(map(len, lists)) <= 16, "streamed: those of a call do not gather until its end", name, [len(some) for some in lists])
    check([t["token"] for t in parts] == [t["token"] for t in whole], "streamed: the same tokens", name, len(parts), len(whole))
P
finish
