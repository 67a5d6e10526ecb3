/* blocks/: decoded values bit for bit, and dot products of rows; see kit.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpuid.h"
#include "backends/cpu/kernels.h"
#include "backends/formats/format.h"
#include "backends/formats/half.h"
#include "common/alloc.h"
#include "tests/golden/kit.h"

#define ROW     1024
#define SECTION "blocks"

struct counts {
    int values, bad_values;
    int dots, bad_dots;
    double worst_f32, worst_q8; /* share of sum_abs */
};

/* Hex digits of f32 bits, most significant first → floats; 0 when there are not n of them. */
static int floats_of_hex(const char *hex, float *out, size_t n)
{
    size_t n_bytes = 0;
    uint8_t *b = kit_hex(hex, &n_bytes);
    int ok = b && n_bytes == 4 * n;

    for (size_t i = 0; ok && i < n; i++)
        out[i] = f32_of_bits((uint32_t)b[4 * i] << 24 | (uint32_t)b[4 * i + 1] << 16 |
                             (uint32_t)b[4 * i + 2] << 8 | b[4 * i + 3]);
    free(b);
    return ok;
}

static void check_values(const struct format *f, const json_t *block, struct counts *c)
{
    const char *hex = json_string_value(json_object_get(block, "hex"));
    const char *want_hex = json_string_value(json_object_get(block, "f32_hex"));
    float want[256], got[256];
    size_t n_bytes = 0;
    uint8_t *bytes = kit_hex(hex, &n_bytes);

    c->values += (int)f->block_elems;
    if (!bytes || n_bytes != f->block_bytes || !floats_of_hex(want_hex, want, f->block_elems)) {
        c->bad_values += (int)f->block_elems;
    } else {
        f->to_f32(bytes, got, f->block_elems);
        for (size_t i = 0; i < f->block_elems; i++)
            c->bad_values += f32_bits(got[i]) != f32_bits(want[i]);
    }
    free(bytes);
}

/* One row through the kernels of a tier mask. */
static float kernel_dot(const struct format *f, const void *w, const float *x, unsigned tiers)
{
    static _Alignas(64) uint8_t act[ROW * sizeof(float)]; /* no act kind is larger than f32 */
    struct kernels k;
    float y = NAN;
    struct matvec m = {.w = w,
                       .row_bytes = format_row_bytes(f, ROW),
                       .rows = 1,
                       .n = ROW,
                       .act = x,
                       .act_stride = act_row_bytes(f->act, ROW),
                       .cols = 1,
                       .y = &y,
                       .y_stride = 1};

    kernels_select(&k, tiers);
    if (f->act != ACT_F32) {
        k.quantize[f->act](x, ROW, act);
        m.act = act;
    }
    k.matvec[format_id_of(f)](&m);
    return y;
}

static void check_dot(const struct format *f, const json_t *row, const float *x, struct counts *c)
{
    double want = json_number_value(json_object_get(row, "dot_f64"));
    double sum_abs = json_number_value(json_object_get(row, "sum_abs_f64"));
    double exact = 0, off_f32, off_twin, off_tier;
    float values[ROW];
    size_t n_bytes = 0;
    uint8_t *w = kit_hex(json_string_value(json_object_get(row, "hex")), &n_bytes);

    c->dots++;
    if (!w || n_bytes != format_row_bytes(f, ROW)) {
        c->bad_dots++;
        free(w);
        return;
    }
    f->to_f32(w, values, ROW);
    for (int i = 0; i < ROW; i++)
        exact += (double)values[i] * (double)x[i];
    off_f32 = fabs(exact - want) / sum_abs;
    off_twin = fabs((double)kernel_dot(f, w, x, TIER_scalar) - want) / sum_abs;
    off_tier = fabs((double)kernel_dot(f, w, x, cpu_tiers()) - want) / sum_abs;
    if (f->act == ACT_F32)
        off_f32 = fmax(off_f32, fmax(off_twin, off_tier));
    else
        c->worst_q8 = fmax(c->worst_q8, fmax(off_twin, off_tier));
    c->worst_f32 = fmax(c->worst_f32, off_f32);
    /* Written so that NaN fails. */
    if (!(off_f32 <= 1e-6 && off_twin <= 4e-3 && off_tier <= 4e-3))
        c->bad_dots++;
    free(w);
}

static void check_file(const char *dir, const char *name, const float *x, struct kit_result *r)
{
    json_t *j = kit_json(dir, SECTION, name), *v;
    const struct format *f =
        format_of_gguf((uint32_t)json_integer_value(json_object_get(j, "type_id")));
    struct counts c = {0};
    size_t i;

    if (!f || json_integer_value(json_object_get(j, "block_elems")) != f->block_elems ||
        json_integer_value(json_object_get(j, "block_bytes")) != f->block_bytes) {
        kit_line(r, SECTION, name, KIT_FAIL, "%s", f ? "other sizes of a block" : "no such format");
        json_decref(j);
        return;
    }
    json_array_foreach(json_object_get(j, "blocks"), i, v) check_values(f, v, &c);
    json_array_foreach(json_object_get(j, "rows"), i, v) check_dot(f, v, x, &c);
    kit_line(r, SECTION, name, c.values && c.dots && !c.bad_values && !c.bad_dots,
             "%d of %d values, %d of %d dot products; worst f32 %.1e, 8-bit %.1e of sum_abs",
             c.values - c.bad_values, c.values, c.dots - c.bad_dots, c.dots, c.worst_f32,
             c.worst_q8);
    json_decref(j);
}

int kit_blocks(const char *kit_dir, const char *match, struct kit_result *r)
{
    json_t *vector = kit_json(kit_dir, SECTION, "vector.json");
    float x[ROW];
    char **names;
    int n;

    if (!vector || !floats_of_hex(json_string_value(json_object_get(vector, "f32_hex")), x, ROW)) {
        json_decref(vector);
        return -1;
    }
    json_decref(vector);
    n = kit_list(kit_dir, SECTION, ".json", match, &names);
    if (n < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], "vector.json") != 0)
            check_file(kit_dir, names[i], x, r);
    kit_list_free(names, n);
    return 0;
}
