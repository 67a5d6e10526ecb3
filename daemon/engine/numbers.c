/* The numbers of sampling under the names that all faces share; see engine.h. */
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/engine/engine.h"

enum number_type { NUMBER_F32, NUMBER_I32 };

struct number {
    const char *name;
    enum number_type type;
    double lo, hi;
    size_t offset; /* in struct sampling_options */
    int given;     /* bit of request.given, or −1 */
};

#define SAMPLING(field) offsetof(struct sampling_options, field)
#define GIVEN(field)    SAMPLING_FIELD_##field

static const struct number numbers[] = {
    {"temperature", NUMBER_F32, 0, 10, SAMPLING(temperature), GIVEN(temperature)},
    {"top_p", NUMBER_F32, 0, 1, SAMPLING(top_p), GIVEN(top_p)},
    {"top_k", NUMBER_I32, 0, INT32_MAX, SAMPLING(top_k), GIVEN(top_k)},
    {"min_p", NUMBER_F32, 0, 1, SAMPLING(min_p), GIVEN(min_p)},
    {"typical_p", NUMBER_F32, 0, 1, SAMPLING(typical_p), -1},
    {"top_n_sigma", NUMBER_F32, 0, 1000, SAMPLING(top_n_sigma), -1},
    {"frequency_penalty", NUMBER_F32, -2, 2, SAMPLING(frequency_penalty), -1},
    {"presence_penalty", NUMBER_F32, -2, 2, SAMPLING(presence_penalty), -1},
    {"repeat_penalty", NUMBER_F32, 0.01, 100, SAMPLING(repeat_penalty), GIVEN(repeat_penalty)},
    {"repeat_last_n", NUMBER_I32, -1, INT32_MAX, SAMPLING(repeat_last_n), -1},
    {"dynatemp_range", NUMBER_F32, 0, 10, SAMPLING(dynatemp_range), -1},
    {"dynatemp_exponent", NUMBER_F32, 0, 100, SAMPLING(dynatemp_exponent), -1},
    {"xtc_probability", NUMBER_F32, 0, 1, SAMPLING(xtc_probability), -1},
    {"xtc_threshold", NUMBER_F32, 0, 1, SAMPLING(xtc_threshold), -1},
    {"dry_multiplier", NUMBER_F32, 0, 100, SAMPLING(dry_multiplier), -1},
    {"dry_base", NUMBER_F32, 1, 100, SAMPLING(dry_base), -1},
    {"dry_allowed_length", NUMBER_I32, 0, INT32_MAX, SAMPLING(dry_allowed_length), -1},
    {"dry_penalty_last_n", NUMBER_I32, -1, INT32_MAX, SAMPLING(dry_last_n), -1},
    {"mirostat_tau", NUMBER_F32, 0, 100, SAMPLING(mirostat_tau), -1},
    {"mirostat_eta", NUMBER_F32, 0, 10, SAMPLING(mirostat_eta), -1},
};

static int read_number(struct request *q, const struct number *n, const json_t *object,
                       struct err *err)
{
    char *field = (char *)&q->sampling + n->offset;
    double real = 0;
    int64_t whole = 0;
    int r;

    if (n->type == NUMBER_F32) {
        r = json_get_double(object, n->name, n->lo, n->hi, &real, err);
        if (r == 1)
            memcpy(field, &(float){(float)real}, sizeof(float));
    } else {
        r = json_get_int(object, n->name, (int64_t)n->lo, (int64_t)n->hi, &whole, err);
        if (r == 1)
            memcpy(field, &(int32_t){(int32_t)whole}, sizeof(int32_t));
    }
    if (r == 1 && n->given >= 0)
        q->given |= 1u << n->given;
    return r;
}

size_t request_number_names(const char **ret)
{
    for (size_t i = 0; ret && i < ARRAY_LEN(numbers); i++)
        ret[i] = numbers[i].name;
    return ARRAY_LEN(numbers);
}

int request_read_numbers(struct request *q, const json_t *object, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(numbers) && r >= 0; i++)
        r = read_number(q, &numbers[i], object, err);
    return r < 0 ? r : 0;
}
