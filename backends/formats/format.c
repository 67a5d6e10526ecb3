/* The table of tensor types, and its look-ups; see format.h. */
#include "backends/formats/format.h"

#include <string.h>

#define FORMAT(name) extern const struct format format_##name;
#include "gen/formats.def"
#undef FORMAT

const struct format *const format_table[FORMAT_COUNT] = {
#define FORMAT(name) [FORMAT_##name] = &format_##name,
#include "gen/formats.def"
#undef FORMAT
};

const struct format *format_of(enum format_id id)
{
    return (unsigned)id < FORMAT_COUNT ? format_table[id] : NULL;
}

const struct format *format_of_gguf(uint32_t gguf_type)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (format_table[i]->gguf_type == gguf_type)
            return format_table[i];
    return NULL;
}

const struct format *format_of_name(const char *name)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (strcmp(format_table[i]->name, name) == 0)
            return format_table[i];
    return NULL;
}

enum format_id format_id_of(const struct format *f)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (format_table[i] == f)
            return (enum format_id)i;
    return FORMAT_NONE;
}
