// The official OpenAI SDK for JavaScript against rnbd: sdk.mjs BASE_URL MODEL.  Prints a line a check; exit 1 if one failed.
import OpenAI from 'openai';

const [base, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'none', maxRetries: 0, timeout: 120000 });
const messages = [{ role: 'user', content: 'Name three colours.' }];
let failed = 0;

function check(name, ok, detail = '') {
    failed += ok ? 0 : 1;
    console.log(`sdk.mjs: ${name}: ${ok ? 'ok' : 'FAILED'} ${detail}`);
}

async function raises(kind, fields) {
    try {
        await client.chat.completions.create({ model, messages, max_tokens: 4, ...fields });
    } catch (e) {
        return [e instanceof kind, `${e.constructor.name}: ${e.message}`];
    }
    return [false, 'no error'];
}

const whole = await client.chat.completions.create({ model, messages, max_tokens: 24, temperature: 0 });
check('chat', whole.object === 'chat.completion' && whole.choices[0].message.role === 'assistant');

let text = '', finish = null, usage = null;
for await (const chunk of await client.chat.completions.create({
    model, messages, max_tokens: 24, temperature: 0, stream: true, stream_options: { include_usage: true } })) {
    usage = chunk.usage ?? usage;
    for (const choice of chunk.choices) {
        text += choice.delta.content ?? '';
        finish = choice.finish_reason ?? finish;
    }
}
check('chat stream gives the same text', text === whole.choices[0].message.content);
check('chat stream finish and usage', finish === whole.choices[0].finish_reason &&
    usage?.completion_tokens === whole.usage.completion_tokens);

const vectors = await client.embeddings.create({ model: 'embed', input: ['one text', 'another'] });
check('embeddings', vectors.data.length === 2 && vectors.data[1].embedding.length === 256);

const helper = client.chat.completions.stream({ model, messages, max_tokens: 24, temperature: 0 });
check('stream helper', (await helper.finalChatCompletion()).choices[0].message.content === whole.choices[0].message.content);

const completion = await client.completions.create({ model, prompt: 'Once upon a time', max_tokens: 12, temperature: 0 });
let streamed = '';
for await (const chunk of await client.completions.create({
    model, prompt: 'Once upon a time', max_tokens: 12, temperature: 0, stream: true }))
    streamed += chunk.choices[0]?.text ?? '';
check('completion stream gives the same text', streamed === completion.choices[0].text);

const names = [];
for await (const m of client.models.list())
    names.push(m.id);
check('models', names.includes(model), names.join(' '));
check('model', (await client.models.retrieve(model)).id === model);

check('400 is BadRequestError', ...await raises(OpenAI.BadRequestError, { temperature: 99 }));
check('unknown field is BadRequestError', ...await raises(OpenAI.BadRequestError, { max_token: 3 }));
check('404 is NotFoundError', ...await raises(OpenAI.NotFoundError, { model: 'no-such-model' }));
check('422 is UnprocessableEntityError', ...await raises(OpenAI.UnprocessableEntityError,
    { response_format: { type: 'json_object' } }));

for (let i = 0; i < 30; i++) {
    const stream = await client.chat.completions.create({ model, messages, max_tokens: 400, stream: true });
    let n = 0;
    for await (const chunk of stream)
        if (n++ === i % 5)
            break;
    stream.controller.abort();
}
check('30 streams closed early', true);
process.exit(failed ? 1 : 0);
