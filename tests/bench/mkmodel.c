/*
 * mkmodel --preset NAME [--type TYPE] [--layers N] [--experts N] [--vocab N]
 *         [--ctx N] [--seed N] OUT.gguf
 * mkmodel --list
 *
 * Writes a synthetic model; see tests/support/mkmodel.h.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/mkmodel.h"

static void list(void)
{
    for (const struct mkmodel_preset *p = mkmodel_presets; p->name; p++) {
        printf("%s %s %u layers, %u wide, %u ff, %u heads, %u kv heads of %u, %u tokens", p->name,
               p->arch, p->n_layers, p->n_embd, p->n_ff, p->n_heads, p->n_kv_heads, p->head_dim,
               p->n_vocab);
        if (p->n_expert)
            printf(", %u experts of %u, %u used", p->n_expert, p->n_ff_exp, p->n_used);
        putchar('\n');
    }
    fputs("types:", stdout);
    for (const struct mkmodel_type *t = mkmodel_types; t->name; t++)
        printf(" %s", t->name);
    putchar('\n');
}

static int usage(const char *what, const char *name)
{
    if (what)
        fprintf(stderr, "mkmodel: %s '%s'; --list shows what there is\n", what, name);
    fputs("usage: mkmodel --preset NAME [--type Q4_K_M] [--layers N] [--experts N] [--vocab N]\n"
          "               [--ctx 40960] [--seed 1] OUT.gguf\n"
          "       mkmodel --list\n",
          stderr);
    return 2;
}

/* 0 keeps what is there, as when it is not given. */
static void set_number(unsigned *to)
{
    unsigned long n = strtoul(optarg, NULL, 10);

    if (n > 0 && n < 1u << 28)
        *to = (unsigned)n;
}

static const struct option options[] = {
    {"preset", required_argument, NULL, 'p'}, {"type", required_argument, NULL, 't'},
    {"layers", required_argument, NULL, 'l'}, {"experts", required_argument, NULL, 'e'},
    {"vocab", required_argument, NULL, 'v'},  {"ctx", required_argument, NULL, 'c'},
    {"seed", required_argument, NULL, 's'},   {"list", no_argument, NULL, 'L'},
    {"help", no_argument, NULL, 'h'},         {0},
};

int main(int argc, char **argv)
{
    struct mkmodel o = {.type = mkmodel_type_of("Q4_K_M"), .seed = 1};
    unsigned layers = 0, experts = 0, vocab = 0;
    const struct mkmodel_preset *preset = NULL;
    const char *type = "Q4_K_M", *name = NULL;

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'p': name = optarg; break;
        case 't': type = optarg; break;
        case 'l': set_number(&layers); break;
        case 'e': set_number(&experts); break;
        case 'v': set_number(&vocab); break;
        case 'c': set_number(&o.n_ctx); break;
        case 's': o.seed = strtoull(optarg, NULL, 10); break;
        case 'L': list(); return 0;
        default: return usage(NULL, NULL);
        }
    }
    if (!name || optind != argc - 1)
        return usage(NULL, NULL);
    preset = mkmodel_preset_of(name);
    o.type = mkmodel_type_of(type);
    if (!preset)
        return usage("no preset", name);
    if (!o.type)
        return usage("no type", type);
    o.preset = *preset;
    o.preset.n_layers = layers ? layers : o.preset.n_layers;
    o.preset.n_expert = experts ? experts : o.preset.n_expert;
    o.preset.n_vocab = vocab ? vocab : o.preset.n_vocab;
    printf("%s: %.3f GiB\n", argv[optind],
           (double)mkmodel_save(&o, argv[optind]) / (double)(1u << 30));
    return 0;
}
