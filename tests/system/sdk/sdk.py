"""The official OpenAI SDK for Python against rnbd: sdk.py BASE_URL MODEL.  Prints a line a check; exit 1 if one failed."""
import sys
import threading

import openai

base, model = sys.argv[1], sys.argv[2]
client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0, timeout=120)
failed = 0


def check(name, ok, detail=""):
    global failed
    failed += not ok
    print("sdk.py: %s: %s %s" % (name, "ok" if ok else "FAILED", detail))


def raises(kind, **fields):
    args = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
    args.update(fields)
    try:
        client.chat.completions.create(**args)
    except openai.APIStatusError as e:
        return type(e) is kind, "%s: %s" % (type(e).__name__, e.message)
    return False, "no error"


messages = [{"role": "user", "content": "Name three colours."}]
whole = client.chat.completions.create(model=model, messages=messages, max_tokens=24, temperature=0)
check("chat", whole.object == "chat.completion" and whole.choices[0].message.role == "assistant")
check("usage", whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens > 0)

pieces, finish, usage = [], None, None
for chunk in client.chat.completions.create(model=model, messages=messages, max_tokens=24, temperature=0, stream=True,
                                            stream_options={"include_usage": True}):
    usage = chunk.usage or usage
    for choice in chunk.choices:
        pieces.append(choice.delta.content or "")
        finish = choice.finish_reason or finish
check("chat stream gives the same text", "".join(pieces) == whole.choices[0].message.content)
check("chat stream finish", finish == whole.choices[0].finish_reason, str(finish))
check("chat stream usage", usage is not None and usage.completion_tokens == whole.usage.completion_tokens)

logged = client.chat.completions.create(model=model, messages=messages, max_tokens=4, temperature=0, logprobs=True,
                                        top_logprobs=3)
content = logged.choices[0].logprobs.content
check("logprobs", len(content) > 0 and len(content[0].top_logprobs) == 3 and content[0].logprob <= 0)

two = client.chat.completions.create(model=model, messages=messages, max_tokens=4, n=2, seed=1)
check("n", [c.index for c in two.choices] == [0, 1])

text = client.completions.create(model=model, prompt="Once upon a time", max_tokens=12, temperature=0)
check("completion", text.object == "text_completion" and len(text.choices[0].text) > 0)
streamed = "".join(c.choices[0].text for c in client.completions.create(
    model=model, prompt="Once upon a time", max_tokens=12, temperature=0, stream=True) if c.choices)
check("completion stream gives the same text", streamed == text.choices[0].text)

# The SDK asks for base64 by itself and decodes it.
vectors = client.embeddings.create(model="embed", input=["one text", "another"])
check("embeddings", [d.index for d in vectors.data] == [0, 1] and len(vectors.data[0].embedding) == 256, str(vectors.usage))
floats = client.embeddings.create(model="embed", input="one text", encoding_format="float").data[0].embedding
check("embeddings as floats are the same", max(abs(a - b) for a, b in zip(floats, vectors.data[0].embedding)) < 1e-7)
try:
    client.embeddings.create(model=model, input="one text")
    check("embeddings of a model that writes text", False)
except openai.UnprocessableEntityError as e:
    check("embeddings of a model that writes text", True, e.message)

names = [m.id for m in client.models.list()]
check("models", model in names, str(names))
check("model", client.models.retrieve(model).id == model)
try:
    client.models.retrieve("no-such-model")
    check("model that is not there", False)
except openai.NotFoundError as e:
    check("model that is not there", model in e.message, e.message)

check("400 is BadRequestError", *raises(openai.BadRequestError, temperature=99))
check("unknown field is BadRequestError", *raises(openai.BadRequestError, extra_body={"max_token": 3}))
check("404 is NotFoundError", *raises(openai.NotFoundError, model="no-such-model"))
check("422 is UnprocessableEntityError", *raises(openai.UnprocessableEntityError, response_format={"type": "json_object"}))
try:
    openai.OpenAI(base_url=base + "/v1/nothing", api_key="none", max_retries=0).models.list()
    check("a path that is not there", False)
except openai.NotFoundError as e:
    check("a path that is not there", True, e.message[:60])

for i in range(30):
    stream = client.chat.completions.create(model=model, messages=messages, max_tokens=400, stream=True)
    for n, _ in enumerate(stream):
        if n == i % 5:
            break
    stream.close()
check("30 streams closed early", True)


async def many():
    async_client = openai.AsyncOpenAI(base_url=base + "/v1", api_key="none", max_retries=0, timeout=120)
    answer = await async_client.chat.completions.create(model=model, messages=messages, max_tokens=8, temperature=0)
    await async_client.close()
    return answer.choices[0].message.content

import asyncio

check("async client", len(asyncio.run(many())) > 0)
results = []
threads = [threading.Thread(target=lambda: results.append(client.chat.completions.create(
    model=model, messages=messages, max_tokens=8, temperature=0).choices[0].message.content)) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
check("4 clients at once get one answer", len(results) == 4 and len(set(results)) == 1)
sys.exit(1 if failed else 0)
