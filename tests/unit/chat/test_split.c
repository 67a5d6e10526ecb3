/* Answers of every dialect, whole and in pieces of every size, come apart the same way. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/chat/chat_helper.h"

TCase *tcase_chat_split(void);

static const struct {
    const char *const *template_text;
    const char *answer;
    const char *want;
} cases[] = {
    /* content */
    {&template_hermes, "plain text", "c(plain text)"},
    {&template_hermes, "  spaces kept \n", "c(  spaces kept \n)"},
    {&template_hermes, "a <tool_cal> b </think> <", "c(a <tool_cal> b </think> <)"},
    {&template_hermes, "", ""},
    {&template_hermes, "{\"name\": \"f\"}", "c({\"name\": \"f\"})"},
    /* reasoning */
    {&template_think, "<think>\nhm, ok\n</think>\n\nYes.\n", "r(hm, ok) c(Yes.\n)"},
    {&template_think, "<think>\n\n</think>\n\nYes", "c(Yes)"},
    {&template_think, " \n<think>a  b</think>c", "r(a  b) c(c)"},
    {&template_think, "<thin air", "c(<thin air)"},
    {&template_think, "use <think> as a tag", "c(use <think> as a tag)"},
    {&template_think, "<think>never ends ", "r(never ends)"},
    {&template_think, "<think>a < b </thin </think>x", "r(a < b </thin) c(x)"},
    {&template_hermes, "<think>unknown here</think>", "c(<think>unknown here</think>)"},
    /* hermes */
    {&template_hermes,
     "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}\"]}}\n</tool_call>",
     "f[{\"a\": [1, \"}\"]}]"},
    {&template_hermes,
     "Let me look.\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n"
     "<tool_call>\n{\"name\": \"g\", \"arguments\": {\"x\": \"\\\"{\"}}\n</tool_call>\n",
     "c(Let me look.) f[{}] g[{\"x\": \"\\\"{\"}]"},
    {&template_hermes,
     "<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"late\"}</tool_call> done",
     "late[{\"a\": 1}] c(done)"},
    {&template_hermes,
     "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
     "f[{\"a\": 1}]"},
    {&template_hermes, "<tool_call>{\"name\": \"f\"}</tool_call>", "f[{}]"},
    {&template_hermes, "<tool_call>{\"name\": \"f\\u00e9\", \"id\": 7, \"arguments\": {}}",
     "fé[{}]"},
    {&template_hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"cut\": \"of",
     "f[{\"cut\": \"of]"},
    {&template_hermes, "see <tool_call> in the docs", "c(see <tool_call> in the docs)"},
    {&template_hermes, "<tool_call>{\"title\": \"none\"}</tool_call>",
     "c(<tool_call>{\"title\": \"none\"}</tool_call>)"},
    {&template_hermes, "<tool_call>{\"name\": 5}", "c(<tool_call>{\"name\": 5})"},
    {&template_think,
     "<think>t</think>\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "r(t) f[{}]"},
    /* llama3 */
    {&template_llama3, "{\"name\": \"f\", \"parameters\": {\"city\": \"Oslo\"}}",
     "f[{\"city\": \"Oslo\"}]"},
    {&template_llama3, "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\"}",
     "f[{}] g[{}]"},
    {&template_llama3, "{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}", "f[{}]"},
    {&template_llama3, "{\"a\": 1}", "c({\"a\": 1})"},
    {&template_llama3, "{ not json }", "c({ not json })"},
    {&template_llama3, "text {\"name\": \"f\"}", "c(text {\"name\": \"f\"})"},
    /* mistral */
    {&template_mistral,
     "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"123456789\"}, {\"name\": "
     "\"g\","
     " \"arguments\": {}}]",
     "f[{\"a\": 1}] g[{}]"},
    {&template_mistral, "[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g{\"b\": {}}",
     "f[{\"a\": 1}] g[{\"b\": {}}]"},
    {&template_mistral, "[TOOL_CALLS]f[CALL_ID]abc[ARGS]{}", "f[{}]"},
    {&template_mistral, "a [TOOL] b", "c(a [TOOL] b)"},
    /* deepseek */
    {&template_deepseek,
     "<think>x</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
     "{\"city\": "
     "\"Ulm\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n"
     "{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "r(x) f[{\"city\": \"Ulm\"}] g[{}]"},
    {&template_deepseek,
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"n\": "
     "1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "f[{\"n\": 1}]"},
    {&template_deepseek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"n\": 1}",
     "f[{\"n\": 1}]"},
    /* gptoss */
    {&template_gptoss,
     "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi.",
     "r(hm) c(Hi.)"},
    {&template_gptoss,
     "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.f "
     "<|constrain|>json<|message|>{\"a\":1}<|call|>",
     "r(hm) f[{\"a\":1}]"},
    {&template_gptoss, "<|channel|>final<|message|>a < b <|x|> c", "c(a < b <|x|> c)"},
    {&template_gptoss, "no header at all", "c(no header at all)"},
    {&template_gptoss, "<|channel|>final to=functions", ""},
    /* qwen3_coder, glm, minicpm and DeepSeek's tags */
    {&template_qwen3_coder,
     "<tool_call>\n<function=f>\n<parameter=city>\nNew\nYork\n</parameter>\n<parameter=n>\n3\n</"
     "parameter>\n"
     "</function>\n</tool_call>",
     "f[{\"city\": \"New\\nYork\", \"n\": 3}]"},
    {&template_qwen3_coder,
     "<tool_call>\n<function=f>\n<parameter=city>\n42\n</parameter>\n</function>\n</"
     "tool_call>\n<tool_call>"
     "<function=g></function></tool_call>",
     "f[{\"city\": \"42\"}] g[{}]"},
    {&template_qwen3_coder,
     "<tool_call>\n<function=f>\n<parameter=n>\n{\"a\": [1]}\n</parameter>\n",
     "f[{\"n\": {\"a\":[1]}]"},
    {&template_qwen3_coder, "<tool_call> is a tag", "c(<tool_call> is a tag)"},
    {&template_glm,
     "<tool_call>f\n<arg_key>city</arg_key>\n<arg_value>Bonn</arg_value>\n<arg_key>n</arg_key>\n"
     "<arg_value>7</arg_value>\n</tool_call>",
     "f[{\"city\": \"Bonn\", \"n\": 7}]"},
    {&template_glm, "<tool_call>f</tool_call>", "f[{}]"},
    {&template_dsml,
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"q\" "
     "string=\"true\">12"
     "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">12</｜DSML｜parameter>\n"
     "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
     "f[{\"q\": \"12\", \"n\": 12}]"},
    {&template_seed,
     "<seed:think>x</seed:think><seed:tool_call>\n<function=f>\n<parameter=n>1</parameter>\n</"
     "function>\n"
     "</seed:tool_call>",
     "r(x) f[{\"n\": 1}]"},
    /* gemma4 */
    {&template_gemma4,
     "<|channel>thought\nhm<channel|><|tool_call>call:f{city:<|\"|>a "
     "\"b\"\n<|\"|>,n:1,ok:true,l:[1,<|\"|>x<|\"|>,{k:2}],"
     "e:{},<|\"|>q:r<|\"|>:null}<tool_call|>",
     "r(hm) f[{\"city\": \"a \\\"b\\\"\\n\", \"n\": 1, \"ok\": true, \"l\": [1, \"x\", {\"k\": "
     "2}], \"e\": {}, "
     "\"q:r\": null}]"},
    {&template_gemma4,
     "<|tool_call>call:f{}<tool_call|><|tool_call>call:g{a:bare word}<tool_call|>",
     "f[{}] g[{\"a\": \"bare word\"}]"},
    /* granite, functionary */
    {&template_granite, "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]", "f[{}]"},
    {&template_functionary, "<function=f>{\"a\": 1}</function>", "f[{\"a\": 1}]"},
    {&template_functionary, "if a <function=b\nthen", "c(if a <function=b\nthen)"},
    /* command_r, lfm2 */
    {&template_command_r,
     "<|START_THINKING|>I will<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", "
     "\"tool_name\": \"f\","
     " \"parameters\": {\"a\": 1}}\n]<|END_ACTION|>",
     "r(I will) f[{\"a\": 1}]"},
    {&template_command_r, "<|START_RESPONSE|>Yes <|or no.<|END_RESPONSE|>", "c(Yes <|or no.)"},
    {&template_lfm2,
     "Ok. <|tool_call_start|>[f(city='O\\'Hare, \"x\"', n=-1.5, ok=True, l=[1, 'a)', None], "
     "d={'k': (2,)}), g()]"
     "<|tool_call_end|>done",
     "c(Ok.) f[{\"city\":\"O'Hare, "
     "\\\"x\\\"\",\"n\":-1.5,\"ok\":true,\"l\":[1,\"a)\",null],\"d\":{\"k\":[2]}}] g[{}] "
     "c(done)"},
    {&template_lfm2, "<|tool_call_start|>[f(x=", "c(<|tool_call_start|>[f(x=)"},
    {&template_lfm2, "<|tool_call_start|>[f(open('/etc/passwd'))]<|tool_call_end|>",
     "c(<|tool_call_start|>[f(open('/etc/passwd'))]<|tool_call_end|>)"},
    /* kimi, nemotron */
    {&template_kimi,
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"
     "\"a\": 1}"
     "<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_"
     "end|>"
     "<|tool_calls_section_end|>",
     "f[{\"a\": 1}] g[{}]"},
    {&template_nemotron,
     "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\"}]</TOOLCALL>",
     "f[{}] g[{}]"},
    /* hy3, kimi_k3, apertus, apriel, functionary_all, muse, minicpm */
    {&template_hy3,
     "<think:opensource>hm</think:opensource>Well.<tool_calls:opensource>\n"
     "<tool_call:opensource>f<tool_sep:opensource>\n"
     "<arg_key:opensource>city</arg_key:opensource>\n"
     "<arg_value:opensource>Bonn</arg_value:opensource>\n</tool_call:opensource>\n"
     "<tool_call:opensource>g<tool_sep:opensource>\n</tool_call:opensource>\n"
     "</tool_calls:opensource>",
     "r(hm) c(Well.) f[{\"city\": \"Bonn\"}] g[{}]"},
    {&template_hy3,
     "<tool_calls><tool_call>f<tool_sep><arg_key>n</arg_key><arg_value>7</arg_value></tool_call></"
     "tool_calls>",
     "f[{\"n\": 7}]"},
    {&template_kimi_k3,
     "<|open|>think<|sep|>hm<|close|>think<|sep|><|open|>response<|sep|>Yes.<|close|>response<|sep|"
     ">"
     "<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument key=\"city\" "
     "type=\"string\"<|sep|>12<|close|>argument<|sep|><|open|>argument key=\"x\" "
     "type=\"number\"<|sep|>12<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
     "<|close|>message<|sep|>",
     "r(hm) c(Yes.) f[{\"city\": \"12\", \"x\": 12}]"},
    {&template_kimi_k3, "<|open|>response<|sep|>a <|open b<|close|>response<|sep|>",
     "c(a <|open b)"},
    {&template_apertus,
     "<|inner_prefix|>hm<|inner_suffix|>Ok. <|tools_prefix|>[{\"f\": {\"a\": [1]}}, {\"g\": "
     "{}}]<|tools_suffix|>done",
     "r(hm) c(Ok.) f[{\"a\": [1]}] g[{}] c(done)"},
    {&template_apertus, "<|tools_prefix|>[{f}]", "c(<|tools_prefix|>[{f}])"},
    {&template_apertus, "<|tools_prefix|>[{\": 1}]", "c(<|tools_prefix|>[{\": 1}])"},
    {&template_apriel,
     "Here are my reasoning steps:\nhm\n[BEGIN FINAL RESPONSE]\nOk.\n<tool_calls>[{\"name\": "
     "\"f\", \"arguments\": {\"a b\": \" c \"}}, {\"name\": \"g\"}]</tool_calls>",
     "r(hm) c(Ok.) f[{\"a b\": \" c \"}] g[{}]"},
    {&template_apriel,
     "<tool_calls>\n{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"g\", \"arguments\": "
     "{}}\n</tool_calls> bye",
     "f[{}] g[{}] c(bye)"},
    {&template_apriel, "the <tool_calls> tag", "c(the <tool_calls> tag)"},
    {&template_functionary_all, "all\nHello >> you\n>>>f\n{\"a\": 1}>>>g\n{}",
     "c(Hello >> you) f[{\"a\": 1}] g[{}]"},
    {&template_functionary_all, "f\n{\"a\": 1}", "f[{\"a\": 1}]"},
    {&template_functionary_all, "no header here", "c(no header here)"},
    {&template_functionary_all, "all\n>>> print(1)\n>>>f\nprint", "c(>>> print(1)\n>>>f\nprint)"},
    {&template_muse,
     " to=self<|message|>hm<|eom|><|start|>assistant to=f<|message|><atem:function_calls>\n"
     "<atem:invoke name=\"f\">\n<atem:parameter name=\"city\">Ulm</atem:parameter>\n"
     "<atem:parameter name=\"n\">3</atem:parameter>\n</atem:invoke>\n</atem:function_calls>"
     "<|eom|><|start|>assistant to=user<|message|>Done.",
     "r(hm) f[{\"city\": \"Ulm\", \"n\": 3}] c(Done.)"},
    {&template_muse, "no header here", "c(no header here)"},
    {&template_muse, " to=self", ""},
    {&template_minicpm,
     "<function name=\"f\"><param name=\"city\"><![CDATA[a < b]]></param></function>",
     "f[{\"city\": \"a < b\"}]"},
    /* values as Python writes them, where they can be nothing else */
    {&template_qwen3_coder,
     "<tool_call><function=f><parameter=x>True</parameter><parameter=city>True</parameter>"
     "<parameter=n>[None, 'a', {'b': 1.5}]</parameter><parameter=y>'text'</parameter></function></"
     "tool_call>",
     "f[{\"x\": true, \"city\": \"True\", \"n\": [null,\"a\",{\"b\":1.5}], \"y\": \"'text'\"}]"},
    {&template_gemma4, "<|tool_call>call:f{a:None}<tool_call|>", "f[{\"a\": null}]"},
    /* what is cut off or wrong is not lost */
    {&template_qwen3_coder, "<tool_call><function=f><parameter=city>New Yo",
     "f[{\"city\": \"New Yo\"]"},
    {&template_hermes, "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1, \\",
     "f[{\"a\": 1, ]"},
    {&template_hermes, "<tool_call>{\"arguments\": {\"a\": 1}, \"na",
     "c(<tool_call>{\"arguments\": {\"a\": 1}, \"na)"},
    {&template_mistral, "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}, {\"what\": 1}]",
     "f[{}] c({\"what\": 1}])"},
    {&template_llama3, "{\"name\": \"Ada\", \"age\": 36}", "c({\"name\": \"Ada\", \"age\": 36})"},
    {&template_llama3, "{\"age\": 36, \"name\": \"Ada\"} is the record",
     "c({\"age\": 36, \"name\": \"Ada\"} is the record)"},
    {&template_gptoss,
     "<|channel|>final and then a text that goes on and on without a message, for "
     "what a model writes is not always what it was taught to write, and a user who "
     "reads an empty answer cannot know that; so beyond a length that no header has "
     "it is taken for what it is, a text",
     "c(<|channel|>final and then a text that goes on and on without a message, for what a model "
     "writes is not always what it was taught to write, and a user who reads an empty answer "
     "cannot "
     "know that; so beyond a length that no header has it is taken for what it is, a text)"},
    {&template_think, "</think>\n\nYes", "c(Yes)"},
};

START_TEST(an_answer_comes_apart)
{
    ck_assert_str_eq(split(*cases[_i].template_text, cases[_i].answer), cases[_i].want);
}
END_TEST

START_TEST(without_tools_nothing_is_a_call)
{
    const char *answer = "<tool_call>{\"name\": \"f\"}</tool_call>  ";

    ck_assert_str_eq(split_in_pieces(template_hermes, answer, 3, "", false),
                     "c(<tool_call>{\"name\": \"f\"}</tool_call>  )");
}
END_TEST

START_TEST(a_prompt_may_have_opened_the_reasoning)
{
    ck_assert_str_eq(
        split_in_pieces(template_think, "hm</think>yes", 2, "assistant\n<think>\n", true),
        "r(hm) c(yes)");
}
END_TEST

START_TEST(a_prompt_that_closed_it_opens_nothing)
{
    const char *prompt = "<think>\n\n</think>\n\n";

    ck_assert_str_eq(split_in_pieces(template_think, "yes", 2, prompt, true), "c(yes)");
}
END_TEST

static void count(void *arg, const struct chat_event *e)
{
    unsigned *n = arg;

    n[e->kind]++;
    if (e->kind == CHAT_CALL)
        ck_assert_uint_eq(e->call, n[CHAT_CALL] - 1);
}

START_TEST(arguments_come_out_while_they_are_made)
{
    const char *answer = "<tool_call>{\"name\": \"f\", \"arguments\": {\"text\": \"0123456789\"}}";
    struct chat_template *t = NULL;
    json_t *tools = json_loads("[{}]", 0, NULL);
    struct chat_split_options o = {.tools = tools, .prompt = {"", 0}};
    unsigned n[5] = {0};
    struct chat_split *s;

    ck_assert_int_eq(chat_template_create(template_hermes, strlen(template_hermes), &t, NULL), 0);
    s = chat_split_create(t, &o, count, n);
    for (const char *p = answer; *p; p++)
        chat_split_feed(s, (struct view){p, 1});
    ck_assert_uint_gt(n[CHAT_ARGUMENTS], 15);
    ck_assert_uint_eq(n[CHAT_CONTENT], 0);
    chat_split_destroy(s);
    chat_template_destroy(t);
    json_decref(tools);
}
END_TEST

START_TEST(content_waits_for_nothing_but_a_possible_marker)
{
    struct chat_template *t = NULL;
    struct chat_split_options o = {.reasoning = true, .prompt = {"", 0}};
    unsigned n[5] = {0};
    struct chat_split *s;

    ck_assert_int_eq(chat_template_create(template_think, strlen(template_think), &t, NULL), 0);
    s = chat_split_create(t, &o, count, n);
    for (int i = 0; i < 50; i++)
        chat_split_feed(s, VIEW("word "));
    ck_assert_uint_eq(n[CHAT_CONTENT], 50);
    chat_split_destroy(s);
    chat_template_destroy(t);
}
END_TEST

START_TEST(call_ids_are_nine_letters_and_digits_and_differ)
{
    char a[CHAT_CALL_ID_LEN + 1], b[CHAT_CALL_ID_LEN + 1], again[CHAT_CALL_ID_LEN + 1];

    chat_call_id(7, 0, a);
    chat_call_id(7, 1, b);
    chat_call_id(7, 0, again);
    ck_assert_uint_eq(strspn(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
                      9);
    ck_assert_str_ne(a, b);
    ck_assert_str_eq(a, again);
}
END_TEST

/* Text that opens and closes everything in the wrong order, cut off everywhere. */
START_TEST(no_cut_of_a_hostile_answer_crashes_or_depends_on_its_pieces)
{
    static const char *const *const templates[] = {&template_hermes,    &template_llama3,
                                                   &template_mistral,   &template_deepseek,
                                                   &template_gptoss,    &template_qwen3_coder,
                                                   &template_glm,       &template_think,
                                                   &template_kimi,      &template_nemotron,
                                                   &template_seed,      &template_gemma4,
                                                   &template_granite,   &template_functionary,
                                                   &template_command_r, &template_lfm2,
                                                   &template_dsml,      &template_hy3,
                                                   &template_kimi_k3,   &template_apertus,
                                                   &template_apriel,    &template_functionary_all,
                                                   &template_muse,      &template_minicpm};
    const char *template_text = *templates[_i];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *answer = cases[i].answer;
        size_t len = strlen(answer), cut = len / 2 + i % 7;
        char *text = xasprintf("%.*s%s", (int)MIN(cut, len), answer, cases[(i * 7) % 50].answer);

        split(template_text, text);
        free(text);
    }
}
END_TEST

TCase *tcase_chat_split(void)
{
    TCase *tc = tcase_create("split");

    tcase_add_loop_test(tc, an_answer_comes_apart, 0, ARRAY_LEN(cases));
    tcase_add_loop_test(tc, no_cut_of_a_hostile_answer_crashes_or_depends_on_its_pieces, 0, 24);
    tcase_add_test(tc, without_tools_nothing_is_a_call);
    tcase_add_test(tc, a_prompt_may_have_opened_the_reasoning);
    tcase_add_test(tc, a_prompt_that_closed_it_opens_nothing);
    tcase_add_test(tc, arguments_come_out_while_they_are_made);
    tcase_add_test(tc, content_waits_for_nothing_but_a_possible_marker);
    tcase_add_test(tc, call_ids_are_nine_letters_and_digits_and_differ);
    return tc;
}
