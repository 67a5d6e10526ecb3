/* How a text is cut into words before byte-pair encoding, by the name in tokenizer.ggml.pre. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/alloc.h"
#include "common/utf8.h"
#include "daemon/tokenizer/tokenizer_priv.h"

/*
 * A splitter is a list of steps.  Each step cuts every piece that the steps
 * before have left: what its expression matches is a piece, and so is what
 * lies between two matches.  The expressions are those of the models'
 * tokenizer.json, with white space spelled out (\s means something else in
 * every engine) and letter case spelled out (caseless matching would take in
 * the long s).  Where the field's engines have settled on a reading that
 * differs from the file (case is not told apart in youtu and tiny_aya; marks
 * are no letters in gpt-4o and kimi-k2), this is the field's.
 *
 * To add a name: one row in pre_names; a new splitter is one constant above.
 */
#define WS_IN                                                                                      \
    "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"        \
    "\\x{205f}\\x{3000}"
#define WS      "[" WS_IN "]"
#define NOT_WS  "[^" WS_IN "]"
#define LN      "\\p{L}\\p{N}"
#define APOS    "'(?:[stmd]|re|ve|ll)"
#define APOS_I  "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
#define LEAD    "[^\\r\\n" LN "]?"
#define SYMBOLS " ?[^" WS_IN LN "]+"
#define BLANKS  WS "+(?!" NOT_WS ")|" WS "+"
#define LINES   WS "*[\\r\\n]+|" BLANKS

#define GPT2_WORDS APOS "| ?\\p{L}+| ?\\p{N}+|" SYMBOLS "|" WS "+(?!" NOT_WS ")"
/* The family that began with llama 3: digits is how many digits make a word. */
#define WORDS(digits) APOS_I "|" LEAD "\\p{L}+|\\p{N}" digits "|" SYMBOLS "[\\r\\n]*|" LINES

/* Letters without a-z, and without A-Z: a letter beyond ASCII counts as both cases. */
#define UPPER   "[^\\P{L}a-z]"
#define LOWER   "[^\\P{L}A-Z]"
#define UPPER_M "[^\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}a-z]"
#define LOWER_M "[^\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}A-Z]"
#define CASED(up, low, after, digits)                                                              \
    LEAD up "*" low "+" after "|" LEAD up "+" low "*" after "|\\p{N}" digits "|" SYMBOLS           \
            "[\\r\\n/]*|" LINES
#define UNCASED(digits)                                                                            \
    LEAD "[\\p{L}\\p{M}]+(?:" APOS_I ")?|\\p{N}" digits "|" SYMBOLS "[\\r\\n/]*|" LINES

#define PUNCT_WORD "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
#define MARKED     "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
#define KANA_HAN   "\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}"
#define HAN                                                                                        \
    "\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{20000}-\\x{2A6DF}\\x{2A700}-\\x{2EBEF}"             \
    "\\x{F900}-\\x{FAFF}\\x{2F800}-\\x{2FA1F}"
#define CJK_DEEPSEEK "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define ASIAN                                                                                      \
    "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{8C48}-\\x{FAFF}\\x{3040}-\\x{309F}"                \
    "\\x{30A0}-\\x{30FF}\\x{FF65}-\\x{FF9F}\\x{2F00}-\\x{2FDF}\\x{E40}-\\x{E7F}\\x{E80}-\\x{EFF}"  \
    "\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}\\x{A9E0}-\\x{A9FF}"                 \
    "\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+"
/* Cased letters of the scripts that have case, as deepseek-llm lists them. */
#define DEEPSEEK_LETTERS                                                                           \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}"                 \
    "\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}"                          \
    "\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}"                  \
    "\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}"                         \
    "\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}"                 \
    "\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}"                 \
    "\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}"                 \
    "\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}"                            \
    "\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}"                           \
    "\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}"                 \
    "\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}"                  \
    "\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}"                   \
    "\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}"                  \
    "\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}"                  \
    "\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"                  \
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}"                 \
    "\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}"               \
    "\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}"                              \
    "\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"

enum step_kind {
    STEP_END,
    STEP_REGEX,
    STEP_DIGITS, /* groups of three digits from the right; what stands before stays with the first group */
    STEP_ASCII_DIGITS /* the same for 0-9 alone, and only between the groups */
};

struct step {
    enum step_kind kind;
    const char *regex;
};

struct splitter {
    struct step steps[7];
};

#define REGEX(text)                                                                                \
    {                                                                                              \
        STEP_REGEX, text                                                                           \
    }

static const struct splitter words_default = {{
    REGEX("[\\p{P}$+<=>^~|]+"),
    REGEX(GPT2_WORDS),
    REGEX("\\p{N}+"),
    REGEX("[0-9][0-9][0-9]"),
}};
static const struct splitter words_gpt2 = {{REGEX(GPT2_WORDS)}};
static const struct splitter words_starcoder = {{REGEX("\\p{N}"), REGEX(GPT2_WORDS)}};
static const struct splitter words_falcon = {{
    REGEX("[\\p{P}$+<=>^~|`]+"),
    REGEX(GPT2_WORDS),
    REGEX("[0-9][0-9][0-9]"),
}};
static const struct splitter words_llama3 = {{REGEX(WORDS("{1,3}"))}};
static const struct splitter words_qwen2 = {{REGEX(WORDS(""))}};
static const struct splitter words_qwen35 = {
    {REGEX(APOS_I "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}| ?[^" WS_IN LN "\\p{M}]+[\\r\\n]*|" LINES)}};
static const struct splitter words_jais2 = {
    {REGEX(APOS_I "|" LEAD "\\p{L}+|\\p{N}{1,3}|" SYMBOLS "[\\r\\n]*|" WS "*[\\r\\n]+|(?:" WS
                  "{512}|" WS "{256}|" WS "{128}|" WS "{64}|" WS "{32}|" WS "{16}|" WS "{8}|" WS
                  "{4}|" WS "{1,2})(?!" NOT_WS ")|" WS)}};
static const struct splitter words_deepseek_llm = {{
    REGEX("[\\r\\n]"),
    REGEX(WS "?[" DEEPSEEK_LETTERS "]+"),
    REGEX(WS
          "?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+"),
    /* The look behind keeps a long run that does not reach the end from being tried at each place. */
    REGEX("(?<!" WS ")" WS "+\\z"),
    REGEX(CJK_DEEPSEEK),
    REGEX("\\p{N}+"),
}};
static const struct splitter words_deepseek_coder = {{
    REGEX("[\\r\\n]"),
    REGEX(WS "?\\p{L}+"),
    REGEX(WS "?\\p{P}+"),
    REGEX(CJK_DEEPSEEK),
    REGEX("\\p{N}"),
}};
static const struct splitter words_deepseek3 = {{
    REGEX("\\p{N}{1,3}"),
    REGEX("[" KANA_HAN "]+"),
    REGEX(PUNCT_WORD "|" MARKED "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES),
}};
static const struct splitter words_spark = {{
    REGEX("\\p{N}{1,3}"),
    REGEX("[" KANA_HAN "]+"),
    REGEX(PUNCT_WORD "|" MARKED "| ?[\\p{P}\\p{S}]+|[\\r\\n]|" BLANKS),
    REGEX("\\p{N}"),
}};
static const struct splitter words_youtu = {{
    REGEX("[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}"
          "\\x{2019}\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+|"
          "[\\x{3105}-\\x{312F}]+|[" KANA_HAN "]+"),
    REGEX(UNCASED("")),
}};
static const struct splitter words_bloom = {
    {REGEX(" ?[^(" WS_IN "|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+")}};
static const struct splitter words_viking = {{
    REGEX(" ?[^(" WS_IN "|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"),
    REGEX("\\p{N}"),
}};
static const struct splitter words_tekken = {{REGEX(CASED(UPPER, LOWER, "", ""))}};
static const struct splitter words_gpt4o = {
    {REGEX(CASED(UPPER, LOWER, "(?:" APOS_I ")?", "{1,3}"))}};
static const struct splitter words_granite_embed = {
    {REGEX(CASED(UPPER_M, LOWER_M, "(?:" APOS_I ")?", "{1,3}"))}};
static const struct splitter words_chameleon = {{
    REGEX("<sentinel:[0-9]+>"),
    REGEX("IMGIMG[A-I]{1,4}Z"),
    REGEX("[\\t\\n]|    |  "),
    REGEX("\\p{N}"),
    REGEX("[\\p{P}!-/:-@\\[-`{-~]"),
    REGEX(GPT2_WORDS),
}};
static const struct splitter words_tiny_aya = {{{STEP_DIGITS, NULL}, REGEX(UNCASED("{1,3}"))}};
static const struct splitter words_kimi = {{REGEX("[" HAN "]+|" LEAD "[^\\P{L}" HAN "]+(?:" APOS_I
                                                  ")?|\\p{N}{1,3}|" SYMBOLS "[\\r\\n]*|" LINES)}};
static const struct splitter words_superbpe = {{REGEX("\\p{N}+"), {STEP_ASCII_DIGITS, NULL}}};
static const struct splitter words_seed_coder = {
    {REGEX(APOS_I "|" LEAD "\\p{L}+|\\p{N}|" SYMBOLS "|" LINES)}};
static const struct splitter words_ufakzeka = {
    {REGEX(LEAD "\\p{L}+|\\p{N}|" SYMBOLS "[\\r\\n]*|" LINES)}};
static const struct splitter words_afmoe = {{
    {STEP_DIGITS, NULL},
    REGEX(ASIAN),
    REGEX(PUNCT_WORD "|" MARKED "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES),
}};
static const struct splitter words_laguna = {{REGEX("[^\\n]+|\\n+"), REGEX(WORDS(""))}};
/* Possessive: nothing follows in its alternative, so a long text takes no stack. */
static const struct splitter words_exaone_moe = {
    {REGEX(APOS_I "|" LEAD "(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*+)++|\\p{N}|" SYMBOLS
                  "[\\r\\n/]?|" WS "*[\\r\\n]|" BLANKS)}};
static const struct splitter words_lines = {{REGEX("[^\\n]+|\\n+")}};
static const struct splitter words_minicpm5 = {{
    REGEX("\\p{N}{1,3}"),
    REGEX(WORDS("+")),
}};

#define LLAMA3_FLAGS (PRE_IGNORE_MERGES | PRE_ADD_BOS)
#define GEMMA4_FLAGS (PRE_RAW | PRE_ESCAPE_SPACES | PRE_NEWLINES_WHOLE)

static const struct pre_name pre_names[] = {
    {"default", &words_default, 0},
    {"gpt-2", &words_gpt2, 0},
    {"phi-2", &words_gpt2, 0},
    {"jina-es", &words_gpt2, 0},
    {"jina-de", &words_gpt2, 0},
    {"jina-v1-en", &words_gpt2, 0},
    {"jina-v2-es", &words_gpt2, 0},
    {"jina-v2-de", &words_gpt2, 0},
    {"jina-v2-code", &words_gpt2, 0},
    {"roberta-bpe", &words_gpt2, 0},
    {"gigachat", &words_gpt2, 0},
    {"a.x-4.0", &words_gpt2, 0},
    {"mellum", &words_gpt2, 0},
    {"modern-bert", &words_gpt2, 0},
    {"mpt", &words_gpt2, 0},
    {"olmo", &words_gpt2, 0},
    {"jais", &words_gpt2, 0},
    {"exaone4", &words_gpt2, 0},
    {"trillion", &words_gpt2, PRE_KEEP_SPACES},
    {"granite-docling", &words_gpt2, PRE_KEEP_SPACES},
    {"starcoder", &words_starcoder, 0},
    {"refact", &words_starcoder, 0},
    {"command-r", &words_starcoder, PRE_KEEP_SPACES},
    {"smollm", &words_starcoder, PRE_KEEP_SPACES},
    {"codeshell", &words_starcoder, 0},
    {"exaone", &words_starcoder, 0},
    {"minerva-7b", &words_starcoder, 0},
    {"mellum2", &words_starcoder, 0},
    {"falcon", &words_falcon, 0},
    {"llama3", &words_llama3, LLAMA3_FLAGS},
    {"llama-v3", &words_llama3, LLAMA3_FLAGS},
    {"llama-bpe", &words_llama3, LLAMA3_FLAGS},
    {"falcon3", &words_llama3, LLAMA3_FLAGS},
    {"falcon-h1", &words_llama3, LLAMA3_FLAGS},
    {"pixtral", &words_llama3, LLAMA3_FLAGS},
    {"midm-2.0", &words_llama3, LLAMA3_FLAGS},
    {"lfm2", &words_llama3, LLAMA3_FLAGS},
    {"jina-v5-nano", &words_llama3, LLAMA3_FLAGS},
    {"dbrx", &words_llama3, 0},
    {"smaug-bpe", &words_llama3, 0},
    {"glm4", &words_llama3, 0},
    {"chatglm-bpe", &words_llama3, 0},
    {"jais-2", &words_jais2, 0},
    {"minicpm5", &words_minicpm5, PRE_IGNORE_MERGES},
    {"qwen2", &words_qwen2, PRE_KEEP_SPACES},
    {"deepseek-r1-qwen", &words_qwen2, PRE_KEEP_SPACES},
    {"kormo", &words_qwen2, PRE_KEEP_SPACES},
    {"f2llmv2", &words_qwen2, PRE_KEEP_SPACES},
    {"hunyuan", &words_qwen2, PRE_KEEP_SPACES},
    {"solar-open", &words_qwen2, PRE_KEEP_SPACES},
    {"grok-2", &words_qwen2, PRE_KEEP_SPACES},
    {"megrez", &words_qwen2, 0},
    {"stablelm2", &words_qwen2, 0},
    /* Of one newline or many, the expression of this family takes all that white space holds. */
    {"bailingmoe", &words_qwen2, PRE_KEEP_SPACES},
    {"bailingmoe2", &words_qwen2, PRE_KEEP_SPACES},
    {"llada-moe", &words_qwen2, PRE_KEEP_SPACES},
    {"qwen35", &words_qwen35, PRE_KEEP_SPACES},
    {"ufakzeka", &words_ufakzeka, PRE_KEEP_SPACES},
    {"laguna", &words_laguna, PRE_KEEP_SPACES},
    {"seed-coder", &words_seed_coder, PRE_KEEP_SPACES},
    {"deepseek-llm", &words_deepseek_llm, PRE_KEEP_SPACES},
    {"deepseek-coder", &words_deepseek_coder, PRE_KEEP_SPACES},
    {"deepseek-v3", &words_deepseek3, PRE_KEEP_SPACES},
    {"hunyuan-dense", &words_deepseek3, PRE_KEEP_SPACES},
    {"hy_v4", &words_deepseek3, PRE_KEEP_SPACES},
    {"joyai-llm", &words_deepseek3, PRE_KEEP_SPACES},
    {"spark2_5", &words_spark, PRE_KEEP_SPACES},
    {"youtu", &words_youtu, PRE_KEEP_SPACES | PRE_IGNORE_MERGES},
    {"poro-chat", &words_bloom, PRE_KEEP_SPACES},
    {"bloom", &words_bloom, 0},
    {"gpt3-finnish", &words_bloom, 0},
    {"viking", &words_viking, PRE_KEEP_SPACES},
    {"tekken", &words_tekken, PRE_KEEP_SPACES | PRE_IGNORE_MERGES | PRE_ADD_BOS},
    {"gpt-4o", &words_gpt4o, PRE_KEEP_SPACES},
    {"llama4", &words_gpt4o, PRE_KEEP_SPACES},
    {"kanana2", &words_gpt4o, PRE_KEEP_SPACES},
    {"talkie", &words_gpt4o, PRE_KEEP_SPACES},
    {"minimax-m2", &words_gpt4o, PRE_KEEP_SPACES},
    {"granite-embed-multi-97m", &words_granite_embed, PRE_KEEP_SPACES | PRE_IGNORE_MERGES},
    {"tiny_aya", &words_tiny_aya, PRE_KEEP_SPACES},
    {"cohere2moe", &words_tiny_aya, PRE_KEEP_SPACES},
    {"superbpe", &words_superbpe, PRE_KEEP_SPACES},
    {"chameleon", &words_chameleon, PRE_KEEP_SPACES | PRE_ADD_BOS},
    {"exaone-moe", &words_exaone_moe, 0},
    {"kimi-k2", &words_kimi, PRE_KEEP_SPACES},
    {"afmoe", &words_afmoe, PRE_KEEP_SPACES},
    {"gemma4", &words_lines, GEMMA4_FLAGS},
    {"granite-embed-multi-311m", &words_lines, GEMMA4_FLAGS},
    {"sarvam-moe", &words_lines, PRE_RAW | PRE_ESCAPE_SPACES | PRE_KEEP_SPACES},
};

const struct pre_name *pretoken_find(struct view name)
{
    for (size_t i = 0; i < ARRAY_LEN(pre_names); i++)
        if (view_is(name, pre_names[i].name))
            return &pre_names[i];
    return NULL;
}

struct pretoken {
    const struct splitter *splitter;
    pcre2_code *codes[ARRAY_LEN(((struct splitter *)0)->steps)];
};

int pretoken_create(const struct pre_name *pre, struct pretoken **ret, struct err *err)
{
    struct pretoken *p = XNEW(struct pretoken);

    p->splitter = pre->splitter;
    for (size_t i = 0; p->splitter->steps[i].kind != STEP_END; i++) {
        const char *regex = p->splitter->steps[i].regex;
        int code = 0;
        PCRE2_SIZE at = 0;

        if (!regex)
            continue;
        p->codes[i] = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                    &code, &at, NULL);
        if (!p->codes[i]) {
            pretoken_destroy(p);
            return err_set(err, ERR_INTERNAL,
                           "the splitter of '%s' does not compile: error %d at %zu", pre->name,
                           code, at);
        }
        /* Without a JIT (a locked-down process) the interpreter gives the same answer, slower. */
        pcre2_jit_compile(p->codes[i], PCRE2_JIT_COMPLETE);
    }
    *ret = p;
    return 0;
}

void pretoken_destroy(struct pretoken *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < ARRAY_LEN(p->codes); i++)
        pcre2_code_free(p->codes[i]);
    free(p);
}

size_t pretoken_bytes(const struct pretoken *p)
{
    size_t bytes = sizeof *p;

    for (size_t i = 0; i < ARRAY_LEN(p->codes); i++) {
        size_t size = 0, jit = 0;

        if (!p->codes[i])
            continue;
        pcre2_pattern_info(p->codes[i], PCRE2_INFO_SIZE, &size);
        pcre2_pattern_info(p->codes[i], PCRE2_INFO_JITSIZE, &jit);
        bytes += size + jit;
    }
    return bytes;
}

/* Scratch of one call; limits are those of the machine, because valid text must never fail. */
struct matcher {
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    pcre2_match_data *data;
};

static int matcher_init(struct matcher *m, struct err *err)
{
    m->context = pcre2_match_context_create(NULL);
    m->data = pcre2_match_data_create(1, NULL);
    if (!m->context || !m->data)
        return err_set(err, ERR_NOMEM, "no memory to split a text into words");
    pcre2_set_match_limit(m->context, UINT32_MAX);
    pcre2_set_depth_limit(m->context, UINT32_MAX);
    pcre2_set_heap_limit(m->context, UINT32_MAX);
    return 0;
}

/* One match; compiled expressions run on this thread's stack until that is too small. */
static int matcher_find(struct matcher *m, const pcre2_code *code, struct view text, size_t at)
{
    const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int r = pcre2_match(code, (PCRE2_SPTR)text.p, text.len, at, options, m->data, m->context);

    if (r != PCRE2_ERROR_JIT_STACKLIMIT || m->stack)
        return r;
    m->stack = pcre2_jit_stack_create(64 << 10, 64 << 20, NULL);
    if (!m->stack)
        return r;
    pcre2_jit_stack_assign(m->context, NULL, m->stack);
    return pcre2_match(code, (PCRE2_SPTR)text.p, text.len, at, options, m->data, m->context);
}

static void matcher_clear(struct matcher *m)
{
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    pcre2_jit_stack_free(m->stack);
}

static void add_end(struct work *w, struct word_ends *e, size_t end)
{
    if (e->n && e->ends[e->n - 1] >= end)
        return;
    if (WORK_GROW(w, e->ends, e->n + 1, e->cap) == 0)
        e->ends[e->n++] = (uint32_t)end;
}

/* Cuts piece, which stands at base, at the matches of code. */
static void cut_regex(const pcre2_code *code, struct matcher *m, struct view piece, size_t base,
                      struct work *w, struct word_ends *out)
{
    size_t at = 0;

    while (at < piece.len && work_step(w) == 0) {
        int r = matcher_find(m, code, piece, at);
        const PCRE2_SIZE *match = pcre2_get_ovector_pointer(m->data);

        if (r == PCRE2_ERROR_NOMATCH)
            break;
        if (r < 0) {
            w->failed = err_set(w->err, ERR_INTERNAL,
                                "splitting a text into words failed (PCRE2 error %d)", r);
            break;
        }
        if (match[0])
            add_end(w, out, base + match[0]);
        add_end(w, out, base + match[1]);
        at = match[1];
    }
    add_end(w, out, base + piece.len);
}

static bool is_digit(unsigned cp, bool ascii)
{
    utf8proc_category_t c;

    if (cp < 0x80 || ascii)
        return cp >= '0' && cp <= '9';
    c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

/* Ends of groups of three from the right, in a run of n digits that starts at byte from. */
static void cut_run(struct view piece, size_t from, size_t n, bool between, size_t base,
                    struct work *w, struct word_ends *out)
{
    size_t at = from, group = n % 3 ? n % 3 : 3;
    unsigned cp;

    if (between && n % 3 == 0 && from > 0)
        add_end(w, out, base + from);
    for (size_t left = n; left; left -= group, group = 3) {
        if (group > left)
            break;
        for (size_t k = 0; k < group; k++)
            at += utf8_decode(piece.p + at, piece.len - at, &cp);
        if (!between || left > group)
            add_end(w, out, base + at);
    }
}

static void cut_digits(struct view piece, bool ascii, size_t base, struct work *w,
                       struct word_ends *out)
{
    size_t from = 0, n = 0;

    for (size_t at = 0; at < piece.len && work_step(w) == 0;) {
        unsigned cp;
        size_t len = utf8_decode(piece.p + at, piece.len - at, &cp);

        if (is_digit(cp, ascii)) {
            if (n++ == 0)
                from = at;
        } else if (n) {
            cut_run(piece, from, n, ascii, base, w, out);
            n = 0;
        }
        at += MAX(len, (size_t)1);
    }
    if (n)
        cut_run(piece, from, n, ascii, base, w, out);
    add_end(w, out, base + piece.len);
}

int pretoken_split(const struct pretoken *p, struct view text, struct work *w,
                   struct word_ends *ret)
{
    struct word_ends pieces = {0}, next = {0};
    struct matcher m = {0};

    if (!w->failed)
        w->failed = matcher_init(&m, w->err);
    if (text.len)
        add_end(w, &pieces, text.len);
    for (size_t i = 0; !w->failed && p->splitter->steps[i].kind != STEP_END; i++) {
        enum step_kind kind = p->splitter->steps[i].kind;
        struct word_ends swap;
        size_t from = 0;

        next.n = 0;
        for (size_t k = 0; !w->failed && k < pieces.n; k++) {
            struct view piece = view_sub(text, from, pieces.ends[k] - from);

            if (kind == STEP_REGEX)
                cut_regex(p->codes[i], &m, piece, from, w, &next);
            else
                cut_digits(piece, kind == STEP_ASCII_DIGITS, from, w, &next);
            from = pieces.ends[k];
        }
        swap = pieces;
        pieces = next;
        next = swap;
    }
    work_free(w, next.ends, next.cap, sizeof *next.ends);
    matcher_clear(&m);
    *ret = pieces;
    return w->failed;
}
