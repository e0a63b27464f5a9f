/* The other side of millstream.h: memory, columns, builders, and the canonical ABI of `millstream:plugin@0.2.0`.
 *
 * A call: the host allocates its arguments with cabi_realloc and enters an export; columns are laid over the buffers,
 * the author's function fills builders, their buffers are named in an answer, the host reads it and calls cabi_post_…,
 * which gives everything back at once. Nothing is copied but what grows. Where a struct below has the layout of a WIT
 * record (marked so), it is the answer itself; natively pointers are wider and the same code serves the tests. */
#include "millstream.h"

#ifdef __wasm__
#define IMPORT(interface, function) __attribute__((import_module(MS__WIT(interface)), import_name(function)))
#else
#include <stdio.h>
#include <stdlib.h>
#endif

/* -------------------------------------------------------------------------------------------------------------- memory
 * A bump arena in chunks, 16-byte aligned, so that the host's buffers may be read as values of any width. */

#define ALIGNMENT 16u
#define CHUNK (256u << 10)

typedef struct chunk {
    struct chunk *next;
    uint8_t *end;
    uint8_t padding[ALIGNMENT > 2 * sizeof(void *) ? ALIGNMENT - 2 * sizeof(void *) : ALIGNMENT];
} chunk;

static struct {
    chunk *first, *current;
    uint8_t *top, *last; /* the next free byte; the youngest allocation, which can grow in place */
} arena;

/* A zero-size allocation is never read, but its address must lie in memory. */
static uint8_t nothing[ALIGNMENT] __attribute__((aligned(16)));

static uint8_t *grow_memory(size_t bytes)
{
#ifdef __wasm__
    size_t pages = (bytes + 65535) / 65536;
    size_t before = __builtin_wasm_memory_grow(0, pages);
    return before == SIZE_MAX ? NULL : (uint8_t *)(before * 65536);
#else
    return aligned_alloc(ALIGNMENT, (bytes + 65535) / 65536 * 65536);
#endif
}

static void enter_chunk(chunk *chunk)
{
    arena.current = chunk;
    arena.top = (uint8_t *)(chunk + 1);
    arena.last = NULL;
}

static void *take(size_t size)
{
    if (size == 0) return nothing;
    if (size > (UINT32_MAX >> 1)) ms_panic("cannot allocate %zu bytes", size);
    size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    while (arena.current == NULL || (size_t)(arena.current->end - arena.top) < rounded) {
        if (arena.current != NULL && arena.current->next != NULL) {
            enter_chunk(arena.current->next);
            continue;
        }
        size_t wanted = (rounded + sizeof(chunk) > CHUNK ? rounded + sizeof(chunk) : CHUNK) + 65535;
        wanted -= wanted % 65536;
        uint8_t *memory = grow_memory(wanted);
        if (memory == NULL) ms_panic("out of memory: %zu more bytes are needed", size);
        if (arena.current != NULL && memory == arena.current->end) {
            arena.current->end += wanted; /* the chunk goes on without a seam */
            continue;
        }
        chunk *new = (chunk *)(void *)memory;
        new->next = NULL;
        new->end = memory + wanted;
        if (arena.current == NULL) arena.first = new;
        else arena.current->next = new;
        enter_chunk(new);
    }
    arena.last = arena.top;
    arena.top += rounded;
    return arena.last;
}

static void *resize(void *old, size_t old_size, size_t size)
{
    if (old != NULL && old == arena.last && size <= (size_t)(arena.current->end - arena.last)) {
        arena.top = arena.last + ((size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1));
        return old;
    }
    void *new = take(size);
    if (old_size > 0 && size > 0) __builtin_memcpy(new, old, old_size < size ? old_size : size);
    return new;
}

static void give_all_back(void)
{
    if (arena.first != NULL) enter_chunk(arena.first);
}

void *ms_allocate(size_t bytes)
{
    void *memory = take(bytes);
    __builtin_memset(memory, 0, bytes);
    return memory;
}

/* Room for one more item of `size` bytes. */
static void *push(void *items, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room) return items;
    uint32_t more = *room == 0 ? 16 : *room * 2;
    items = resize(items, *room * size, more * size);
    *room = more;
    return items;
}
#define PUSH(items, count, room, item)                                                                                  \
    do {                                                                                                                \
        (items) = push((items), (count), &(room), sizeof *(items));                                                     \
        (items)[(count)++] = (item);                                                                                    \
    } while (0)

#ifdef __wasm__
__attribute__((export_name("cabi_realloc"))) void *ms__realloc(void *old, size_t old_size, size_t align, size_t size)
{
    (void)align;
    return resize(old, old_size, size);
}
#endif

void ms__answered(void *answer)
{
    (void)answer;
    give_all_back();
}

/* ---------------------------------------------------------------------------------------------------------------- text */

static size_t length_of(const char *text)
{
    size_t length = 0;
    while (text[length] != 0) length++;
    return length;
}

static bool same(const char *a, const char *b)
{
    while (*a != 0 && *a == *b) a++, b++;
    return *a == *b;
}

typedef struct writer {
    char *data;
    uint32_t length, room;
} writer;

static void write_char(writer *writer, char c) { PUSH(writer->data, writer->length, writer->room, c); }

static void write_number(writer *writer, unsigned long long number, unsigned base)
{
    char digits[24];
    unsigned count = 0;
    do digits[count++] = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    while (count > 0) write_char(writer, digits[--count]);
}

/* What printf does, for the few formats that the header names: stdio would ask for WASI. */
static ms_buffer text_of(const char *format, va_list arguments)
{
    writer writer = {NULL, 0, 0};
    for (; *format != 0; format++) {
        if (*format != '%') {
            write_char(&writer, *format);
            continue;
        }
        format++;
        int longs = 0, precision = -1;
        if (*format == '.') {
            format++;
            if (*format == '*') precision = va_arg(arguments, int), format++;
        }
        for (; *format == 'l' || *format == 'z'; format++) longs += *format == 'z' && sizeof(size_t) == 8 ? 2 : 1;
        if (*format == 's') {
            const char *text = va_arg(arguments, const char *);
            for (int i = 0; (precision < 0 || i < precision) && (precision >= 0 || text[i] != 0); i++) {
                write_char(&writer, text[i]);
            }
        } else if (*format == 'c') {
            write_char(&writer, (char)va_arg(arguments, int));
        } else if (*format == 'd' || *format == 'i') {
            long long number = longs == 0   ? va_arg(arguments, int)
                               : longs == 1 ? va_arg(arguments, long)
                                            : va_arg(arguments, long long);
            if (number < 0) write_char(&writer, '-');
            write_number(&writer, number < 0 ? -(unsigned long long)number : (unsigned long long)number, 10);
        } else if (*format == 'u' || *format == 'x') {
            unsigned long long number = longs == 0   ? va_arg(arguments, unsigned)
                                        : longs == 1 ? va_arg(arguments, unsigned long)
                                                     : va_arg(arguments, unsigned long long);
            write_number(&writer, number, *format == 'x' ? 16 : 10);
        } else if (*format == 0) {
            break;
        } else {
            write_char(&writer, *format);
        }
    }
    ms_buffer text = {(uint8_t *)writer.data, writer.length};
    return text;
}

/* ---------------------------------------------------------------------------------------------------------------- host */

#ifdef __wasm__
IMPORT("log", "log") void host_log(uint32_t level, const uint8_t *data, uint32_t length);
IMPORT("clock", "batch-time-ms") int64_t host_batch_time_ms(void);
IMPORT("config", "get") void host_config(const char *name, uint32_t length, void *answer);
IMPORT("random", "bytes") void host_random(uint32_t length, void *answer);
IMPORT("http", "send") void host_send(const ms_request *requests, uint32_t count, void *answer);
#endif

static void log_line(ms_level level, ms_buffer line)
{
#ifdef __wasm__
    host_log(level, line.data, line.length);
#else
    if (level == MS_LOG_ERROR) fprintf(stderr, "%.*s\n", (int)line.length, (const char *)line.data);
#endif
}

void ms_log(ms_level level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(level, text_of(format, arguments));
    va_end(arguments);
}

void ms_panic(const char *format, ...)
{
    /* When memory itself is what lacks, the format alone must do. */
    static bool panicking;
    if (panicking) {
        ms_buffer plain = {(uint8_t *)(uintptr_t)format, (uint32_t)length_of(format)};
        log_line(MS_LOG_ERROR, plain);
        __builtin_trap();
    }
    panicking = true;
    va_list arguments;
    va_start(arguments, format);
    log_line(MS_LOG_ERROR, text_of(format, arguments));
    va_end(arguments);
#ifdef __wasm__
    __builtin_trap();
#else
    abort();
#endif
}

int64_t ms_batch_time_ms(void)
{
#ifdef __wasm__
    return host_batch_time_ms();
#else
    return 0;
#endif
}

bool ms_config(const char *name, ms_text *value)
{
#ifdef __wasm__
    struct { uint8_t some; ms_text text; } answer;
    host_config(name, (uint32_t)length_of(name), &answer);
    if (answer.some) *value = answer.text;
    return answer.some;
#else
    (void)name, (void)value;
    return false;
#endif
}

void ms_random(void *data, uint32_t length)
{
#ifdef __wasm__
    ms_buffer answer;
    host_random(length, &answer);
    __builtin_memcpy(data, answer.data, answer.length < length ? answer.length : length);
#else
    static uint64_t state = 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < length; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        ((uint8_t *)data)[i] = (uint8_t)(state >> 32);
    }
#endif
}

ms_text ms_text_of(const char *text)
{
    ms_text made = {text, (uint32_t)length_of(text)};
    return made;
}

static uint8_t lower(char c) { return (uint8_t)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c); }

bool ms_header(const ms_response *response, const char *name, ms_text *value)
{
    uint32_t length = (uint32_t)length_of(name);
    for (uint32_t i = 0; !response->is_failure && i < response->as.answer.header_count; i++) {
        const ms_pair *header = &response->as.answer.headers[i];
        uint32_t at = 0;
        while (header->name.length == length && at < length && lower(header->name.data[at]) == lower(name[at])) at++;
        if (at < length || header->name.length != length) continue;
        *value = header->value;
        return true;
    }
    return false;
}

#ifndef __wasm__
ms_response (*ms_test_answers)(const ms_request *request);
#endif

const ms_response *ms_send(const ms_request *requests, uint32_t count)
{
#ifdef __wasm__
    struct { ms_response *items; uint32_t count; } answer;
    host_send(requests, count, &answer);
    if (answer.count != count) ms_panic("the host gave %u answers to %u requests", answer.count, count);
    return answer.items;
#else
    ms_response *answers = ms_allocate(count * sizeof *answers);
    for (uint32_t i = 0; i < count; i++) {
        if (ms_test_answers != NULL) {
            answers[i] = ms_test_answers(&requests[i]);
            continue;
        }
        answers[i].is_failure = 1;
        answers[i].as.failure.why = MS_DENIED;
        answers[i].as.failure.reason = ms_text_of("no test answers");
    }
    return answers;
#endif
}

/* -------------------------------------------------------------------------------------------------------------- fields */

static const struct { const char *format; ms_type type; uint32_t width; const char *name; } TYPES[] = {
    {"b", MS_TYPE_BOOL, 0, "bool"}, {"c", MS_TYPE_I8, 1, "i8"}, {"C", MS_TYPE_U8, 1, "u8"},
    {"s", MS_TYPE_I16, 2, "i16"}, {"S", MS_TYPE_U16, 2, "u16"}, {"i", MS_TYPE_I32, 4, "i32"},
    {"I", MS_TYPE_U32, 4, "u32"}, {"l", MS_TYPE_I64, 8, "i64"}, {"L", MS_TYPE_U64, 8, "u64"},
    {"f", MS_TYPE_F32, 4, "f32"}, {"g", MS_TYPE_F64, 8, "f64"}, {"u", MS_TYPE_TEXT, 0, "text"},
    {"z", MS_TYPE_BINARY, 0, "binary"}, {"tdD", MS_TYPE_I32, 4, "i32"}, {"tsu:UTC", MS_TYPE_I64, 8, "i64"},
    {"tsu:", MS_TYPE_I64, 8, "i64"}, {"+l", MS_TYPE_LIST, 0, "list"}, {"+s", MS_TYPE_STRUCT, 0, "struct"},
    {"d:", MS_TYPE_DECIMAL, 16, "decimal"},
};
#define TYPE_COUNT (sizeof TYPES / sizeof *TYPES)

static const char *type_name(ms_type type)
{
    size_t i = 0;
    while (i + 1 < TYPE_COUNT && TYPES[i].type != type) i++;
    return TYPES[i].name;
}

static size_t type_of(const ms_field *field)
{
    if (field->format[0] == 'd') return TYPE_COUNT - 1;
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (same(field->format, TYPES[i].format)) return i;
    }
    ms_panic("field `%s` has the format `%s`, which plugins cannot use", field->name, field->format);
}

static bool ends(const ms_field *field) { return field->name == NULL; }

/* The field after this one and its children. */
static const ms_field *after(const ms_field *field)
{
    bool list = same(field->format, "+l"), structure = same(field->format, "+s");
    field++;
    if (list) return after(field);
    if (!structure) return field;
    while (!ends(field)) field = after(field);
    return field + 1;
}

static uint32_t count_of(const ms_field *fields)
{
    uint32_t count = 0;
    for (; !ends(fields); fields = after(fields)) count++;
    return count;
}

/* How many children a field has; they follow it. */
static uint32_t child_count(const ms_field *field)
{
    if (same(field->format, "+l")) return 1;
    return same(field->format, "+s") ? count_of(field + 1) : 0;
}

static bool may_be_null(const ms_field *field)
{
    size_t length = length_of(field->name);
    return length > 0 && field->name[length - 1] == '?';
}

static bool any_null(const ms_field *fields)
{
    for (; !ends(fields); fields = after(fields)) {
        if (may_be_null(fields)) return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------------------- columns */

void ms__no_such_value(const ms_column *column, uint32_t row, ms_type wanted)
{
    if (column->type != wanted) {
        ms_panic("column `%s` is %s, not %s", column->field->name, type_name(column->type), type_name(wanted));
    }
    ms_panic("row %u of column `%s`, which has %u rows", row, column->field->name, column->rows);
}

const ms_column *ms_child(const ms_column *column, uint32_t number)
{
    if (number >= column->child_count) {
        ms_panic("child %u of column `%s`, which has %u children", number, column->field->name, column->child_count);
    }
    return &column->children[number];
}

bool ms_is_whole(const ms_column *column, uint32_t row)
{
    if (ms_is_null(column, row)) return false;
    ms_range rows = {row, row + 1};
    if (column->type == MS_TYPE_LIST) rows = ms_list_at(column, row);
    for (uint32_t i = 0; i < column->child_count; i++) {
        const ms_column *child = &column->children[i];
        for (uint32_t at = rows.begin; at < rows.end; at++) {
            bool is_hole = may_be_null(child->field) && ms_is_null(child, at);
            if (!is_hole && !ms_is_whole(child, at)) return false;
        }
    }
    return true;
}

/* Buffers, handed out one after the other. */
typedef struct reader {
    const ms_buffer *buffers;
    uint32_t count, taken;
} reader;

static ms_buffer next(reader *reader, const ms_field *field)
{
    if (reader->taken >= reader->count) ms_panic("there is no buffer for `%s`", field->name);
    return reader->buffers[reader->taken++];
}

static void expect(const ms_field *field, uint64_t found, uint64_t wanted)
{
    if (found < wanted) {
        ms_panic("a buffer of `%s` has %llu bytes, not %llu", field->name, (unsigned long long)found,
                 (unsigned long long)wanted);
    }
}

static const int32_t no_rows[1];

static void read_column(ms_column *column, const ms_field *field, uint32_t rows, reader *reader)
{
    size_t type = type_of(field);
    ms_buffer validity = next(reader, field), values;
    column->field = field;
    column->type = TYPES[type].type;
    column->rows = rows;
    column->validity = validity.length == 0 ? NULL : validity.data;
    if (column->validity != NULL) expect(field, validity.length, ((uint64_t)rows + 7) / 8);
    column->values = NULL;
    column->offsets = NULL;
    column->child_count = child_count(field);
    column->children = take(column->child_count * sizeof(ms_column));
    if (column->type >= MS_TYPE_TEXT && column->type != MS_TYPE_STRUCT) {
        ms_buffer offsets = next(reader, field);
        if (rows > 0) expect(field, offsets.length, ((uint64_t)rows + 1) * 4);
        column->offsets = offsets.length == 0 ? no_rows : (const int32_t *)(void *)offsets.data;
    }
    if (column->type == MS_TYPE_LIST) {
        read_column(column->children, field + 1, (uint32_t)column->offsets[rows], reader);
    } else if (column->type == MS_TYPE_STRUCT) {
        const ms_field *child = field + 1;
        for (uint32_t i = 0; i < column->child_count; i++, child = after(child)) {
            read_column(&column->children[i], child, rows, reader);
        }
    } else {
        values = next(reader, field);
        column->values = values.data;
        uint64_t bits = column->type == MS_TYPE_BOOL ? 1 : TYPES[type].width * 8u;
        uint64_t bytes = column->offsets != NULL ? (uint64_t)column->offsets[rows] : (rows * bits + 7) / 8;
        expect(field, values.length, bytes);
    }
}

/* A column per field. */
static ms_column *read_columns(const ms_field *fields, uint32_t rows, const ms_buffer *buffers, uint32_t count)
{
    uint32_t columns = count_of(fields);
    ms_column *read = take(columns * sizeof(ms_column));
    reader reader = {buffers, count, 0};
    for (uint32_t i = 0; i < columns; i++, fields = after(fields)) read_column(&read[i], fields, rows, &reader);
    return read;
}

/* ------------------------------------------------------------------------------------------------------------ builders */

static void make_builder(ms_builder *builder, const ms_field *field)
{
    size_t type = type_of(field);
    __builtin_memset(builder, 0, sizeof *builder);
    builder->field = field;
    builder->type = TYPES[type].type;
    builder->width = TYPES[type].width;
    builder->child_count = child_count(field);
    builder->children = take(builder->child_count * sizeof(ms_builder));
    const ms_field *child = field + 1;
    for (uint32_t i = 0; i < builder->child_count; i++, child = after(child)) make_builder(&builder->children[i], child);
    if (builder->type >= MS_TYPE_TEXT && builder->type != MS_TYPE_STRUCT) {
        builder->offsets = push(NULL, 0, &builder->offsets_room, 4);
        builder->offsets[0] = 0;
    }
}

static ms_builder *make_builders(const ms_field *fields)
{
    uint32_t count = count_of(fields);
    ms_builder *builders = take(count * sizeof(ms_builder));
    for (uint32_t i = 0; i < count; i++, fields = after(fields)) make_builder(&builders[i], fields);
    return builders;
}

static void expect_type(const ms_builder *builder, ms_type wanted)
{
    if (builder->type == wanted) return;
    ms_panic("column `%s` is built of %s, not %s", builder->field->name, type_name(builder->type), type_name(wanted));
}

static void reserve(ms_builder *builder, uint64_t bytes)
{
    uint64_t needed = builder->length + bytes;
    if (needed <= builder->room) return;
    if (needed > INT32_MAX) ms_panic("column `%s` grows beyond 2 GiB", builder->field->name);
    uint64_t room = builder->room < 128 ? 256 : builder->room * 2ull;
    if (room < needed) room = needed;
    builder->values = resize(builder->values, builder->length, room);
    builder->room = (uint32_t)room;
}

/* So many more rows, all of them values or all of them null. */
static void add_rows(ms_builder *builder, uint32_t rows, bool valid)
{
    uint32_t before = builder->rows;
    if (rows > INT32_MAX - before) ms_panic("column `%s` grows beyond 2^31 rows", builder->field->name);
    builder->rows += rows;
    if (valid && builder->validity == NULL) return;
    uint32_t bytes = (builder->rows + 7) / 8;
    if (bytes > builder->validity_room) {
        uint32_t room = bytes * 2 < 64 ? 64 : bytes * 2;
        uint32_t used = builder->validity == NULL ? 0 : (before + 7) / 8;
        builder->validity = resize(builder->validity, used, room);
        /* Rows that came before the first null are values. */
        __builtin_memset(builder->validity + used, used == 0 ? 0xff : 0, room - used);
        builder->validity_room = room;
        if (used == 0) {
            for (uint32_t row = before; row < room * 8; row++) {
                if (row % 8 == 0) {
                    __builtin_memset(builder->validity + row / 8, 0, room - row / 8);
                    break;
                }
                builder->validity[row / 8] &= (uint8_t)~(1u << row % 8);
            }
        }
    }
    for (uint32_t row = before; row < builder->rows; row++) {
        if (valid) builder->validity[row / 8] |= (uint8_t)(1u << row % 8);
        else builder->validity[row / 8] &= (uint8_t)~(1u << row % 8);
    }
}

void *ms__grow(ms_builder *builder, ms_type wanted, uint32_t rows)
{
    expect_type(builder, wanted);
    uint32_t bytes = (uint32_t)((uint64_t)rows * builder->width);
    reserve(builder, (uint64_t)rows * builder->width);
    void *values = builder->values + builder->length;
    __builtin_memset(values, 0, bytes);
    builder->length += bytes;
    add_rows(builder, rows, true);
    return values;
}

static void add_bit(ms_builder *builder, bool value)
{
    if (builder->rows % 8 == 0) {
        reserve(builder, 1);
        builder->values[builder->length++] = 0;
    }
    if (value) builder->values[builder->rows / 8] |= (uint8_t)(1u << builder->rows % 8);
}

void ms_add_bool(ms_builder *builder, bool value)
{
    expect_type(builder, MS_TYPE_BOOL);
    add_bit(builder, value);
    add_rows(builder, 1, true);
}

static void add_offset(ms_builder *builder, uint32_t end, bool valid)
{
    uint32_t count = builder->rows + 1;
    PUSH(builder->offsets, count, builder->offsets_room, (int32_t)end);
    add_rows(builder, 1, valid);
}

static void add_bytes(ms_builder *builder, const void *data, size_t length)
{
    reserve(builder, length);
    if (length > 0) __builtin_memcpy(builder->values + builder->length, data, length);
    builder->length += (uint32_t)length;
    add_offset(builder, builder->length, true);
}

void ms_add_text(ms_builder *builder, const char *data, size_t length)
{
    expect_type(builder, MS_TYPE_TEXT);
    add_bytes(builder, data, length);
}

void ms_add_binary(ms_builder *builder, const void *data, size_t length)
{
    expect_type(builder, MS_TYPE_BINARY);
    add_bytes(builder, data, length);
}

ms_builder *ms_element(ms_builder *builder)
{
    expect_type(builder, MS_TYPE_LIST);
    return builder->children;
}

ms_builder *ms_member(ms_builder *builder, uint32_t number)
{
    expect_type(builder, MS_TYPE_STRUCT);
    if (number < builder->child_count) return &builder->children[number];
    ms_panic("member %u of column `%s`, which has %u members", number, builder->field->name, builder->child_count);
}

void ms_add_list(ms_builder *builder)
{
    expect_type(builder, MS_TYPE_LIST);
    add_offset(builder, builder->children->rows, true);
}

void ms_add_struct(ms_builder *builder)
{
    expect_type(builder, MS_TYPE_STRUCT);
    for (uint32_t i = 0; i < builder->child_count; i++) {
        const ms_builder *child = &builder->children[i];
        if (child->rows != builder->rows + 1) {
            ms_panic("row %u of struct `%s` is made, but member `%s` has %u values", builder->rows, builder->field->name,
                     child->field->name, child->rows);
        }
    }
    add_rows(builder, 1, true);
}

/* What a row has where it has no value. */
void ms_add_null(ms_builder *builder)
{
    switch (builder->type) {
    case MS_TYPE_BOOL:
        add_bit(builder, false);
        add_rows(builder, 1, false);
        break;
    case MS_TYPE_TEXT:
    case MS_TYPE_BINARY:
        add_offset(builder, builder->length, false);
        break;
    case MS_TYPE_LIST:
        add_offset(builder, (uint32_t)builder->offsets[builder->rows], false);
        break;
    case MS_TYPE_STRUCT:
        for (uint32_t i = 0; i < builder->child_count; i++) ms_add_null(&builder->children[i]);
        add_rows(builder, 1, false);
        break;
    default:
        reserve(builder, builder->width);
        __builtin_memset(builder->values + builder->length, 0, builder->width);
        builder->length += builder->width;
        add_rows(builder, 1, false);
    }
}

void ms_set_null(ms_builder *builder, uint32_t row)
{
    if (row >= builder->rows) {
        ms_panic("row %u of column `%s`, which has %u rows", row, builder->field->name, builder->rows);
    }
    if (builder->validity == NULL) {
        /* The last row is null for a moment, which makes the bitmap. */
        builder->rows--;
        add_rows(builder, 1, false);
        builder->validity[(builder->rows - 1) / 8] |= (uint8_t)(1u << (builder->rows - 1) % 8);
    }
    builder->validity[row / 8] &= (uint8_t)~(1u << row % 8);
}

void ms_add_copy(ms_builder *builder, const ms_column *column, uint32_t row)
{
    ms__check(column, row, builder->type);
    if (ms_is_null(column, row)) {
        ms_add_null(builder);
        return;
    }
    if (builder->type == MS_TYPE_BOOL) {
        ms_add_bool(builder, ms_bool_at(column, row));
    } else if (builder->type == MS_TYPE_TEXT || builder->type == MS_TYPE_BINARY) {
        ms_text text = ms__bytes_at(column, row);
        add_bytes(builder, text.data, text.length);
    } else if (builder->type == MS_TYPE_LIST) {
        ms_range range = ms_list_at(column, row);
        for (uint32_t i = range.begin; i < range.end; i++) ms_add_copy(builder->children, column->children, i);
        ms_add_list(builder);
    } else if (builder->type == MS_TYPE_STRUCT) {
        for (uint32_t i = 0; i < builder->child_count; i++) {
            ms_add_copy(&builder->children[i], ms_child(column, i), row);
        }
        ms_add_struct(builder);
    } else {
        void *value = ms__grow(builder, builder->type, 1);
        __builtin_memcpy(value, (const uint8_t *)column->values + (size_t)row * builder->width, builder->width);
    }
}

/* Takes all rows from this one on back. */
static void shorten(ms_builder *builder, uint32_t rows)
{
    if (rows >= builder->rows) {
        /* Elements that were added to a list's row that was never made. */
        if (builder->type == MS_TYPE_LIST) shorten(builder->children, (uint32_t)builder->offsets[builder->rows]);
        for (uint32_t i = 0; builder->type == MS_TYPE_STRUCT && i < builder->child_count; i++) {
            shorten(&builder->children[i], builder->rows);
        }
        return;
    }
    builder->rows = rows;
    if (builder->validity != NULL && rows % 8 != 0) builder->validity[rows / 8] &= (uint8_t)((1u << rows % 8) - 1);
    if (builder->type == MS_TYPE_BOOL) {
        builder->length = (rows + 7) / 8;
        if (rows % 8 != 0) builder->values[rows / 8] &= (uint8_t)((1u << rows % 8) - 1);
    } else if (builder->type == MS_TYPE_LIST) {
        shorten(builder->children, (uint32_t)builder->offsets[rows]);
    } else if (builder->type == MS_TYPE_STRUCT) {
        for (uint32_t i = 0; i < builder->child_count; i++) shorten(&builder->children[i], rows);
    } else if (builder->offsets != NULL) {
        builder->length = (uint32_t)builder->offsets[rows];
    } else {
        builder->length = rows * builder->width;
    }
}

/* WIT: batch. */
typedef struct batch {
    uint32_t rows;
    ms_buffer *buffers;
    uint32_t count;
} batch;

typedef struct buffers {
    ms_buffer *items;
    uint32_t count, room;
} buffers;

static void finish(const ms_builder *builder, buffers *out)
{
    ms_buffer validity = {builder->validity, builder->validity == NULL ? 0 : (builder->rows + 7) / 8};
    PUSH(out->items, out->count, out->room, validity);
    if (builder->offsets != NULL) {
        ms_buffer offsets = {(uint8_t *)builder->offsets, (builder->rows + 1) * 4};
        PUSH(out->items, out->count, out->room, offsets);
    }
    if (builder->type < MS_TYPE_LIST) {
        ms_buffer values = {builder->values, builder->length};
        PUSH(out->items, out->count, out->room, values);
    }
    for (uint32_t i = 0; i < builder->child_count; i++) finish(&builder->children[i], out);
}

/* Adds the rows' last words: columns that do not have them are named. */
static const ms_builder *uneven(const ms_builder *builders, uint32_t count, uint32_t rows)
{
    for (uint32_t i = 0; i < count; i++) {
        if (builders[i].rows != rows) return &builders[i];
        if (builders[i].type == MS_TYPE_LIST && builders[i].children->rows != (uint32_t)builders[i].offsets[rows]) {
            return builders[i].children;
        }
        if (builders[i].type == MS_TYPE_STRUCT) {
            const ms_builder *child = uneven(builders[i].children, builders[i].child_count, rows);
            if (child != NULL) return child;
        }
    }
    return NULL;
}

static batch finish_all(const ms_builder *builders, uint32_t count, uint32_t rows)
{
    buffers out = {NULL, 0, 0};
    for (uint32_t i = 0; i < count; i++) finish(&builders[i], &out);
    batch batch = {rows, out.items, out.count};
    return batch;
}

/* --------------------------------------------------------------------------------------------------------------- calls */

const ms_column *ms_argument(const ms_call *call, uint32_t number)
{
    if (number < call->argument_count) return &call->arguments[number];
    ms_panic("argument %u of `%s`, which has %u arguments here", number, call->failures.name, call->argument_count);
}

ms_builder *ms_result(ms_call *call, uint32_t number)
{
    if (number < call->result_count) return &call->results[number];
    ms_panic("result %u of `%s`, which has %u results here", number, call->failures.name, call->result_count);
}

const ms_column *ms_state(const ms_call *call, uint32_t number)
{
    if (number < call->state_count) return &call->states[number];
    ms_panic("state %u of `%s`, which has %u columns of state here", number, call->failures.name, call->state_count);
}

uint32_t ms_states(const ms_call *call) { return call->state_count == 0 ? 0 : call->states[0].rows; }

static bool has_failed(const ms__failures *failures, uint32_t row)
{
    return failures->count > 0 && failures->rows[failures->count - 1].row == row;
}

/* False where the row has failed already: the first message stays. */
static bool fail(ms__failures *failures, uint32_t row, ms_buffer message)
{
    if (has_failed(failures, row)) return false;
    if (failures->count > 0 && failures->rows[failures->count - 1].row > row) {
        ms_panic("`%s` lets row %u fail after row %u", failures->name, row, failures->rows[failures->count - 1].row);
    }
    ms_row_error error = {row, message};
    PUSH(failures->rows, failures->count, failures->room, error);
    return true;
}

static void refuse(ms__failures *failures, ms_fault fault, ms_buffer message)
{
    if (failures->refused) return;
    failures->refused = true;
    failures->fault = fault;
    failures->message = message;
}

static ms_buffer text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ms_buffer text = text_of(format, arguments);
    va_end(arguments);
    return text;
}

static void shorten_all(ms_builder *builders, uint32_t count, uint32_t rows)
{
    for (uint32_t i = 0; i < count; i++) shorten(&builders[i], rows);
}

void ms_emit(ms_call *call, uint32_t row)
{
    const char *name = call->failures.name;
    if (call->shape != MS__ROWS) ms_panic("`%s` is no table function", name);
    if (row >= call->rows) ms_panic("`%s` gives a row for argument row %u of %u", name, row, call->rows);
    if (call->emitted > 0 && call->input_rows[call->emitted - 1] > row) {
        ms_panic("`%s` gives a row for argument row %u after %u", name, row, call->input_rows[call->emitted - 1]);
    }
    if (has_failed(&call->failures, row)) {
        shorten_all(call->results, call->result_count, call->emitted);
        return;
    }
    for (uint32_t i = 0; i < call->result_count; i++) {
        if (call->results[i].rows != call->emitted + 1) {
            ms_panic("`%s` gives row %u, but column `%s` has %u values", name, call->emitted, call->results[i].field->name,
                     call->results[i].rows);
        }
    }
    PUSH(call->input_rows, call->emitted, call->input_rows_room, row);
}

void ms_fail_row(ms_call *call, uint32_t row, const char *format, ...)
{
    uint32_t rows = call->shape == MS__VALUES && call->state_count > 0 ? ms_states(call) : call->rows;
    if (row >= rows) ms_panic("`%s` lets row %u of %u fail", call->failures.name, row, rows);
    va_list arguments;
    va_start(arguments, format);
    bool is_new = fail(&call->failures, row, text_of(format, arguments));
    va_end(arguments);
    if (call->shape == MS__ROWS) {
        while (call->emitted > 0 && call->input_rows[call->emitted - 1] >= row) call->emitted--;
        shorten_all(call->results, call->result_count, call->emitted);
    } else if (call->shape == MS__VALUES && is_new) {
        ms_builder *value = call->results;
        shorten(value, value->rows); /* elements of a list that was not made */
        if (value->rows == row) ms_add_null(value);
        else if (value->rows > row) ms_set_null(value, row);
    }
}

void ms_refuse(ms_call *call, ms_fault fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refuse(&call->failures, fault, text_of(format, arguments));
    va_end(arguments);
}

/* WIT: result<scalar-output, error>, and of an aggregate's outputs; result<table-output, error>. */
typedef struct failed {
    uint8_t fault;
    ms_buffer message;
} failed;
typedef struct answer {
    uint8_t is_error;
    union {
        struct { batch values; ms_row_error *row_errors; uint32_t row_error_count; } ok;
        struct { ms_buffer input_rows; batch rows; ms_row_error *row_errors; uint32_t row_error_count; } table;
        failed error;
    } as;
} answer;

static answer *refusal(ms_fault fault, ms_buffer message)
{
    answer *answer = ms_allocate(sizeof *answer);
    answer->is_error = 1;
    answer->as.error.fault = (uint8_t)fault;
    answer->as.error.message = message;
    return answer;
}

static uint32_t result_rows(const ms_call *call)
{
    if (call->shape == MS__ROWS) return call->emitted;
    if (call->shape == MS__GROUPS) return call->groups;
    return call->state_count > 0 ? ms_states(call) : call->rows;
}

/* Runs the author's function and puts its answer together. */
static answer *run(ms_call *call, void (*function)(ms_call *call), const ms_field *results)
{
    call->result_count = count_of(results);
    call->results = make_builders(results);
    function(call);
    const ms__failures *failures = &call->failures;
    if (failures->refused) return refusal(failures->fault, failures->message);
    uint32_t rows = result_rows(call);
    const ms_builder *wrong = uneven(call->results, call->result_count, rows);
    if (wrong != NULL) {
        return refusal(MS_INTERNAL, text("`%s` gave %u values in `%s` where there are %u rows", failures->name, wrong->rows,
                                         wrong->field->name, rows));
    }
    answer *answer = ms_allocate(sizeof *answer);
    batch values = finish_all(call->results, call->result_count, rows);
    if (call->shape == MS__ROWS) {
        answer->as.table.input_rows.data = (uint8_t *)call->input_rows;
        answer->as.table.input_rows.length = rows * 4;
        answer->as.table.rows = values;
        answer->as.table.row_errors = failures->rows;
        answer->as.table.row_error_count = failures->count;
    } else {
        answer->as.ok.values = values;
        answer->as.ok.row_errors = failures->rows;
        answer->as.ok.row_error_count = failures->count;
    }
    return answer;
}

static void set_arguments(ms_call *call, const ms_field *fields, uint32_t rows, const ms_buffer *buffers, uint32_t count)
{
    call->rows = rows;
    call->arguments = read_columns(fields, rows, buffers, count);
    call->argument_count = count_of(fields);
}

static void set_states(ms_call *call, const ms_field *fields, uint32_t rows, const ms_buffer *buffers, uint32_t count)
{
    call->states = read_columns(fields, rows, buffers, count);
    call->state_count = count_of(fields);
}

static uint32_t listed(const void *const *items)
{
    uint32_t count = 0;
    while (items != NULL && items[count] != NULL) count++;
    return count;
}
#define LISTED(items) listed((const void *const *)(items))

static answer *call_function(const ms_function *function, uint32_t rows, const ms_buffer *buffers, uint32_t count)
{
    ms_call call = {0};
    call.shape = function->kind == MS_KIND_TABLE ? MS__ROWS : MS__VALUES;
    call.failures.name = function->name;
    set_arguments(&call, function->arguments, rows, buffers, count);
    return run(&call, function->call, function->results);
}

void *ms__call_function(ms_kind kind, uint32_t number, uint32_t rows, ms_buffer *buffers, uint32_t count)
{
    if (number >= LISTED(ms_functions)) return refusal(MS_INTERNAL, text("there is no function %u", number));
    if (ms_functions[number]->kind != kind) {
        return refusal(MS_INTERNAL, text("`%s` is of the other kind", ms_functions[number]->name));
    }
    return call_function(ms_functions[number], rows, buffers, count);
}

/* ---------------------------------------------------------------------------------------------------------- aggregates */

static const ms_aggregate *aggregate(uint32_t number, ms_call *call)
{
    if (number >= LISTED(ms_aggregates)) return NULL;
    call->failures.name = ms_aggregates[number]->name;
    return ms_aggregates[number];
}

/* Takes the groups of the rows; NULL, or what is wrong with them. */
static answer *set_groups(ms_call *call, uint32_t groups, const uint32_t *group_of_row, uint32_t bytes, uint32_t rows)
{
    call->shape = MS__GROUPS;
    call->groups = groups;
    call->group_of_row = group_of_row;
    if (bytes / 4 != rows) return refusal(MS_INTERNAL, text("%u bytes of groups for %u rows", bytes, rows));
    for (uint32_t row = 0; row < rows; row++) {
        if (group_of_row[row] >= groups) {
            return refusal(MS_INTERNAL, text("row %u is of group %u of %u", row, group_of_row[row], groups));
        }
    }
    return NULL;
}

static answer *no_aggregate(uint32_t number) { return refusal(MS_INTERNAL, text("there is no aggregate %u", number)); }

void *ms__accumulate(uint32_t number, uint32_t groups, uint32_t *group_of_row, uint32_t bytes, uint32_t rows,
                     ms_buffer *buffers, uint32_t count)
{
    ms_call call = {0};
    const ms_aggregate *function = aggregate(number, &call);
    if (function == NULL) return no_aggregate(number);
    answer *wrong = set_groups(&call, groups, group_of_row, bytes, rows);
    if (wrong != NULL) return wrong;
    set_arguments(&call, function->arguments, rows, buffers, count);
    return run(&call, function->accumulate, function->state);
}

void *ms__merge(uint32_t number, uint32_t groups, uint32_t *group_of_row, uint32_t bytes, uint32_t rows,
                ms_buffer *buffers, uint32_t count)
{
    ms_call call = {0};
    const ms_aggregate *function = aggregate(number, &call);
    if (function == NULL) return no_aggregate(number);
    answer *wrong = set_groups(&call, groups, group_of_row, bytes, rows);
    if (wrong != NULL) return wrong;
    call.rows = rows;
    set_states(&call, function->state, rows, buffers, count);
    return run(&call, function->merge, function->state);
}

void *ms__retract(uint32_t number, uint32_t groups, ms_buffer *states, uint32_t state_count, uint32_t *group_of_row,
                  uint32_t bytes, uint32_t rows, ms_buffer *buffers, uint32_t count)
{
    ms_call call = {0};
    const ms_aggregate *function = aggregate(number, &call);
    if (function == NULL) return no_aggregate(number);
    if (function->retract == NULL) return refusal(MS_INTERNAL, text("`%s` does not retract", function->name));
    answer *wrong = set_groups(&call, groups, group_of_row, bytes, rows);
    if (wrong != NULL) return wrong;
    set_states(&call, function->state, groups, states, state_count);
    set_arguments(&call, function->arguments, rows, buffers, count);
    return run(&call, function->retract, function->state);
}

void *ms__evaluate(uint32_t number, uint32_t states, ms_buffer *buffers, uint32_t count)
{
    ms_call call = {0};
    const ms_aggregate *function = aggregate(number, &call);
    if (function == NULL) return no_aggregate(number);
    call.shape = MS__VALUES;
    set_states(&call, function->state, states, buffers, count);
    return run(&call, function->evaluate, function->results);
}

/* ---------------------------------------------------------------------------------------------------------- processors */

static ms_range range_of(const uint32_t *keys, uint32_t count, uint32_t key)
{
    uint32_t bounds[2];
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t low = 0, high = count;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (side == 0 ? keys[middle] < key : keys[middle] <= key) low = middle + 1;
            else high = middle;
        }
        bounds[side] = low;
    }
    ms_range range = {bounds[0], bounds[1]};
    return range;
}

ms_range ms_rows_of(const ms_keys *keys, uint32_t key) { return range_of(keys->key_of_row, keys->rows, key); }
ms_range ms_timers_of(const ms_keys *keys, uint32_t key) { return range_of(keys->timers.keys, keys->timers.count, key); }
ms_range ms_due_of(const ms_keys *keys, uint32_t key) { return range_of(keys->due.keys, keys->due.count, key); }

static const ms_variable *variable(const ms_keys *keys, uint32_t number)
{
    uint32_t count = LISTED(keys->processor->variables);
    if (number < count) return keys->processor->variables[number];
    ms_panic("variable %u of `%s`, which has %u variables", number, keys->processor->name, count);
}

ms_range ms_entries_of(const ms_keys *keys, uint32_t number, uint32_t key)
{
    variable(keys, number);
    return range_of(keys->state[number].key_of_entry, keys->state[number].count, key);
}

static void expect_column(const ms_keys *keys, const char *what, const ms_field *fields, uint32_t number)
{
    uint32_t count = count_of(fields);
    if (number >= count) ms_panic("column %u of %s of `%s`, which has %u", number, what, keys->processor->name, count);
}

const ms_column *ms_key(const ms_keys *keys, uint32_t number)
{
    expect_column(keys, "the key", keys->processor->key, number);
    return &keys->keys[number];
}

const ms_column *ms_input(const ms_keys *keys, uint32_t number)
{
    if (keys->input == NULL) ms_panic("timers are due in `%s`: there are no rows", keys->processor->name);
    expect_column(keys, "the input", keys->processor->input, number);
    return &keys->input[number];
}

const ms_column *ms_stored(const ms_keys *keys, uint32_t number, uint32_t column)
{
    expect_column(keys, "a variable", variable(keys, number)->columns, column);
    return &keys->state[number].columns[column];
}

const ms_column *ms_stored_map_key(const ms_keys *keys, uint32_t number, uint32_t column)
{
    expect_column(keys, "a map key", variable(keys, number)->map_key, column);
    return &keys->state[number].map_keys[column];
}

ms_builder *ms_output(ms_keys *keys, uint32_t number)
{
    expect_column(keys, "the output", keys->processor->output, number);
    return &keys->output[number];
}

ms_builder *ms_entry(ms_keys *keys, uint32_t number, uint32_t column)
{
    expect_column(keys, "a variable", variable(keys, number)->columns, column);
    return &keys->changes[number].columns[column];
}

ms_builder *ms_entry_map_key(ms_keys *keys, uint32_t number, uint32_t column)
{
    expect_column(keys, "a map key", variable(keys, number)->map_key, column);
    return &keys->changes[number].map_keys[column];
}

ms_builder *ms_removed(ms_keys *keys, uint32_t number, uint32_t column)
{
    expect_column(keys, "a map key", variable(keys, number)->map_key, column);
    return &keys->changes[number].removed[column];
}

/* A key that something is given for: one of the call, and none before the last one of this list. False where it has
 * failed, so that nothing is kept for it. */
static bool takes(const ms_keys *keys, uint32_t key, const uint32_t *before, uint32_t count)
{
    if (key >= keys->count) ms_panic("`%s` gives something for key %u of %u", keys->processor->name, key, keys->count);
    if (count > 0 && before[count - 1] > key) {
        ms_panic("`%s` gives something for key %u after key %u", keys->processor->name, key, before[count - 1]);
    }
    return !has_failed(&keys->failures, key);
}

static void expect_values(const ms_keys *keys, const ms_builder *builders, const ms_field *fields, uint32_t rows)
{
    const ms_builder *wrong = uneven(builders, count_of(fields), rows);
    if (wrong == NULL) return;
    ms_panic("`%s` makes row %u, but column `%s` has %u values", keys->processor->name, rows - 1, wrong->field->name,
             wrong->rows);
}

void ms_emit_for(ms_keys *keys, uint32_t key)
{
    const ms_field *fields = keys->processor->output;
    if (!takes(keys, key, keys->key_of_output, keys->emitted)) {
        shorten_all(keys->output, count_of(fields), keys->emitted);
        return;
    }
    expect_values(keys, keys->output, fields, keys->emitted + 1);
    PUSH(keys->key_of_output, keys->emitted, keys->output_room, key);
}

void ms_clear(ms_keys *keys, uint32_t number, uint32_t key)
{
    variable(keys, number);
    ms__changes *changes = &keys->changes[number];
    if (!takes(keys, key, changes->cleared, changes->cleared_count)) return;
    if (changes->cleared_count > 0 && changes->cleared[changes->cleared_count - 1] == key) return;
    PUSH(changes->cleared, changes->cleared_count, changes->cleared_room, key);
}

static void shorten_put(const ms_variable *variable, ms__changes *changes)
{
    shorten_all(changes->map_keys, count_of(variable->map_key), changes->put_count);
    shorten_all(changes->columns, count_of(variable->columns), changes->put_count);
}

void ms_put(ms_keys *keys, uint32_t number, uint32_t key)
{
    const ms_variable *of = variable(keys, number);
    ms__changes *changes = &keys->changes[number];
    if (!takes(keys, key, changes->key_of_put, changes->put_count)) {
        shorten_put(of, changes);
        return;
    }
    expect_values(keys, changes->map_keys, of->map_key, changes->put_count + 1);
    expect_values(keys, changes->columns, of->columns, changes->put_count + 1);
    PUSH(changes->key_of_put, changes->put_count, changes->put_room, key);
}

void ms_remove(ms_keys *keys, uint32_t number, uint32_t key)
{
    const ms_variable *of = variable(keys, number);
    ms__changes *changes = &keys->changes[number];
    if (of->kind != MS_VARIABLE_MAP) ms_panic("variable `%s` is no map, nothing can be removed from it", of->name);
    if (!takes(keys, key, changes->key_of_removed, changes->removed_count)) {
        shorten_all(changes->removed, count_of(of->map_key), changes->removed_count);
        return;
    }
    expect_values(keys, changes->removed, of->map_key, changes->removed_count + 1);
    PUSH(changes->key_of_removed, changes->removed_count, changes->removed_room, key);
}

static void add_timer(ms_keys *keys, ms__timers *timers, uint32_t key, int64_t due_ms)
{
    if (!takes(keys, key, timers->keys, timers->count)) return;
    if (timers->count > 0 && timers->keys[timers->count - 1] == key) {
        int64_t before = timers->due[timers->count - 1];
        if (before == due_ms) return;
        if (before > due_ms) {
            ms_panic("`%s` names a timer at %lld after one at %lld", keys->processor->name, (long long)due_ms,
                     (long long)before);
        }
    }
    uint32_t place = timers->count;
    PUSH(timers->due, place, timers->due_room, due_ms);
    PUSH(timers->keys, timers->count, timers->keys_room, key);
}

void ms_register_timer(ms_keys *keys, uint32_t key, int64_t due_ms) { add_timer(keys, &keys->registered, key, due_ms); }
void ms_delete_timer(ms_keys *keys, uint32_t key, int64_t due_ms) { add_timer(keys, &keys->deleted, key, due_ms); }

static void take_back(const uint32_t *keys, uint32_t *count, uint32_t key)
{
    while (*count > 0 && keys[*count - 1] >= key) (*count)--;
}

void ms_fail_key(ms_keys *keys, uint32_t key, const char *format, ...)
{
    if (key >= keys->count) ms_panic("`%s` lets key %u of %u fail", keys->processor->name, key, keys->count);
    va_list arguments;
    va_start(arguments, format);
    fail(&keys->failures, key, text_of(format, arguments));
    va_end(arguments);
    take_back(keys->key_of_output, &keys->emitted, key);
    shorten_all(keys->output, count_of(keys->processor->output), keys->emitted);
    take_back(keys->deleted.keys, &keys->deleted.count, key);
    take_back(keys->registered.keys, &keys->registered.count, key);
    for (uint32_t i = 0; keys->processor->variables[i] != NULL; i++) {
        ms__changes *changes = &keys->changes[i];
        take_back(changes->cleared, &changes->cleared_count, key);
        take_back(changes->key_of_removed, &changes->removed_count, key);
        take_back(changes->key_of_put, &changes->put_count, key);
        shorten_all(changes->removed, count_of(variable(keys, i)->map_key), changes->removed_count);
        shorten_put(variable(keys, i), changes);
    }
}

void ms_refuse_keys(ms_keys *keys, ms_fault fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refuse(&keys->failures, fault, text_of(format, arguments));
    va_end(arguments);
}

/* WIT: entries, timers, invocation, variable-changes, outcome. */
typedef struct entries {
    ms_buffer key_of_entry;
    batch map_keys, columns;
} entries;
typedef struct timers {
    ms_buffer key_of_timer, due_ms;
} timers;
typedef struct invocation {
    batch keys;
    ms_buffer key_of_row;
    batch rows;
    entries *state;
    uint32_t state_count;
    timers timers;
    int64_t batch_time_ms;
    struct { uint8_t some; int64_t value; } watermark_ms;
} invocation;
typedef struct invoked {
    uint32_t processor;
    invocation call;
    timers due; /* only there when timers are due */
} invoked;
typedef struct variable_changes {
    ms_buffer cleared, key_of_removed;
    batch removed;
    entries put;
} variable_changes;
typedef struct outcome {
    uint8_t is_error;
    union {
        struct {
            batch rows;
            ms_buffer key_of_row;
            variable_changes *changes;
            uint32_t change_count;
            timers deleted, registered;
            ms_row_error *key_errors;
            uint32_t key_error_count;
        } ok;
        failed error;
    } as;
} outcome;

static ms__timers read_timers(const timers *timers)
{
    ms__timers read = {0};
    read.keys = (uint32_t *)(void *)timers->key_of_timer.data;
    read.due = (int64_t *)(void *)timers->due_ms.data;
    read.count = timers->key_of_timer.length / 4;
    return read;
}

static ms_buffer numbers(const uint32_t *items, uint32_t count)
{
    ms_buffer buffer = {(uint8_t *)(uintptr_t)items, count * 4};
    return buffer;
}

static timers write_timers(const ms__timers *written)
{
    timers timers = {numbers(written->keys, written->count), {(uint8_t *)written->due, written->count * 8}};
    return timers;
}

static void read_state(ms_keys *keys, const invocation *call)
{
    uint32_t count = LISTED(keys->processor->variables);
    keys->state = ms_allocate(count * sizeof(ms__entries));
    keys->changes = ms_allocate(count * sizeof(ms__changes));
    for (uint32_t i = 0; i < count; i++) {
        const ms_variable *of = variable(keys, i);
        const entries *from = &call->state[i];
        ms__entries *to = &keys->state[i];
        to->key_of_entry = (const uint32_t *)(void *)from->key_of_entry.data;
        to->count = from->key_of_entry.length / 4;
        to->map_keys = read_columns(of->map_key, from->map_keys.rows, from->map_keys.buffers, from->map_keys.count);
        to->columns = read_columns(of->columns, from->columns.rows, from->columns.buffers, from->columns.count);
        keys->changes[i].removed = make_builders(of->map_key);
        keys->changes[i].map_keys = make_builders(of->map_key);
        keys->changes[i].columns = make_builders(of->columns);
    }
}

static variable_changes *write_changes(const ms_keys *keys, uint32_t count)
{
    variable_changes *changes = ms_allocate(count * sizeof *changes);
    for (uint32_t i = 0; i < count; i++) {
        const ms_variable *of = variable(keys, i);
        const ms__changes *from = &keys->changes[i];
        uint32_t map_keys = count_of(of->map_key);
        changes[i].cleared = numbers(from->cleared, from->cleared_count);
        changes[i].key_of_removed = numbers(from->key_of_removed, from->removed_count);
        changes[i].removed = finish_all(from->removed, map_keys, from->removed_count);
        changes[i].put.key_of_entry = numbers(from->key_of_put, from->put_count);
        changes[i].put.map_keys = finish_all(from->map_keys, map_keys, map_keys == 0 ? 0 : from->put_count);
        changes[i].put.columns = finish_all(from->columns, count_of(of->columns), from->put_count);
    }
    return changes;
}

static outcome *no_outcome(ms_fault fault, ms_buffer message)
{
    outcome *outcome = ms_allocate(sizeof *outcome);
    outcome->is_error = 1;
    outcome->as.error.fault = (uint8_t)fault;
    outcome->as.error.message = message;
    return outcome;
}

void *ms__invoke(ms__step step, void *parameters)
{
    const invoked *invoked = parameters;
    const invocation *call = &invoked->call;
    if (invoked->processor >= LISTED(ms_processors)) {
        return no_outcome(MS_INTERNAL, text("there is no processor %u", invoked->processor));
    }
    const ms_processor *processor = ms_processors[invoked->processor];
    void (*function)(ms_keys *) = step == MS__PROCESS  ? processor->process
                                  : step == MS__EXPIRE ? processor->expire
                                                       : processor->initialise;
    if (function == NULL) {
        const char *names[] = {"process", "expire", "initialise"};
        return no_outcome(MS_INTERNAL, text("`%s` has no function `%s`", processor->name, names[step]));
    }
    uint32_t count = LISTED(processor->variables);
    if (call->state_count != count) {
        return no_outcome(MS_INTERNAL, text("%u variables for `%s`, which has %u", call->state_count, processor->name, count));
    }
    ms_keys keys = {0};
    keys.processor = processor;
    keys.failures.name = processor->name;
    keys.count = call->keys.rows;
    keys.keys = read_columns(processor->key, keys.count, call->keys.buffers, call->keys.count);
    keys.key_of_row = (const uint32_t *)(void *)call->key_of_row.data;
    if (step != MS__EXPIRE) {
        const ms_field *fields = step == MS__PROCESS ? processor->input : processor->initial;
        keys.rows = call->rows.rows;
        expect(fields, call->key_of_row.length, (uint64_t)keys.rows * 4);
        keys.input = read_columns(fields, keys.rows, call->rows.buffers, call->rows.count);
    } else {
        keys.due = read_timers(&invoked->due);
    }
    read_state(&keys, call);
    keys.timers = read_timers(&call->timers);
    keys.batch_time_ms = call->batch_time_ms;
    keys.has_watermark = call->watermark_ms.some;
    keys.watermark_ms = call->watermark_ms.some ? call->watermark_ms.value : INT64_MIN;
    keys.output = make_builders(processor->output);
    function(&keys);
    if (keys.failures.refused) return no_outcome(keys.failures.fault, keys.failures.message);
    outcome *outcome = ms_allocate(sizeof *outcome);
    expect_values(&keys, keys.output, processor->output, keys.emitted);
    outcome->as.ok.rows = finish_all(keys.output, count_of(processor->output), keys.emitted);
    outcome->as.ok.key_of_row = numbers(keys.key_of_output, keys.emitted);
    outcome->as.ok.changes = write_changes(&keys, count);
    outcome->as.ok.change_count = count;
    outcome->as.ok.deleted = write_timers(&keys.deleted);
    outcome->as.ok.registered = write_timers(&keys.registered);
    outcome->as.ok.key_errors = keys.failures.rows;
    outcome->as.ok.key_error_count = keys.failures.count;
    return outcome;
}

/* -------------------------------------------------------------------------------------------------------- descriptions */

/* WIT: a list of anything; field; function; aggregate-function; variable; processor-type. */
typedef struct list {
    void *items;
    uint32_t count;
} list;
typedef struct described_field {
    ms_buffer name, format;
    uint8_t nullable;
    uint32_t children;
} described_field;
typedef struct described_function {
    ms_buffer name;
    uint8_t kind;
    list arguments, results;
    uint8_t volatility, nulls;
} described_function;
typedef struct described_aggregate {
    ms_buffer name;
    list arguments, result, state;
    ms_buffer state_id;
    uint8_t nulls, retracts;
} described_aggregate;
typedef struct described_variable {
    ms_buffer name;
    uint8_t kind;
    list map_key, columns;
    ms_buffer state_id;
    struct { uint8_t some; uint64_t value; } ttl_ms;
} described_variable;
typedef struct described_processor {
    ms_buffer name;
    list key, input, output, initial, variables;
    uint8_t time_mode, output_modes;
} described_processor;

static ms_buffer literal(const char *text)
{
    ms_buffer buffer = {(uint8_t *)(uintptr_t)text, (uint32_t)length_of(text)};
    return buffer;
}

typedef enum whose_nulls { AS_MARKED, ALL } whose_nulls;

static void describe_field(const ms_field *field, whose_nulls nulls, described_field **items, list *list, uint32_t *room)
{
    described_field described = {literal(field->name), literal(field->format), may_be_null(field), child_count(field)};
    if (described.nullable) described.name.length--;
    if (nulls == ALL) described.nullable = 1;
    PUSH(*items, list->count, *room, described);
    const ms_field *child = field + 1;
    /* Elements of lists may be null in every language. */
    whose_nulls of_children = same(field->format, "+l") ? ALL : AS_MARKED;
    for (uint32_t i = 0; i < described.children; i++, child = after(child)) {
        describe_field(child, of_children, items, list, room);
    }
}

static list describe_fields(const ms_field *fields, whose_nulls nulls)
{
    list list = {NULL, 0};
    described_field *items = NULL;
    uint32_t room = 0;
    for (; !ends(fields); fields = after(fields)) describe_field(fields, nulls, &items, &list, &room);
    list.items = items;
    return list;
}

static list *describe_list(uint32_t count, size_t size)
{
    list *list = ms_allocate(sizeof *list);
    list->items = ms_allocate(count * size);
    list->count = count;
    return list;
}

MS__EXPORT(MS__WIT("describe") "#describe") void *ms__describe(void)
{
    list *list = describe_list(LISTED(ms_functions), sizeof(described_function));
    for (uint32_t i = 0; i < list->count; i++) {
        const ms_function *from = ms_functions[i];
        described_function *to = (described_function *)list->items + i;
        bool sees_nulls = any_null(from->arguments);
        to->name = literal(from->name);
        to->kind = (uint8_t)from->kind;
        to->arguments = describe_fields(from->arguments, sees_nulls ? ALL : AS_MARKED);
        to->results = describe_fields(from->results, from->kind == MS_KIND_SCALAR ? ALL : AS_MARKED);
        to->volatility = (from->flags & MS_VOLATILE) != 0;
        to->nulls = sees_nulls ? 0 : 1;
    }
    return list;
}
MS__EXPORT("cabi_post_" MS__WIT("describe") "#describe") void ms__free_description(void *list) { ms__answered(list); }

void *ms__describe_aggregates(void)
{
    list *list = describe_list(LISTED(ms_aggregates), sizeof(described_aggregate));
    for (uint32_t i = 0; i < list->count; i++) {
        const ms_aggregate *from = ms_aggregates[i];
        described_aggregate *to = (described_aggregate *)list->items + i;
        bool sees_nulls = any_null(from->arguments);
        to->name = literal(from->name);
        to->arguments = describe_fields(from->arguments, sees_nulls ? ALL : AS_MARKED);
        to->result = describe_fields(from->results, ALL);
        to->state = describe_fields(from->state, AS_MARKED);
        to->state_id = literal(from->state_id);
        to->nulls = sees_nulls ? 0 : 1;
        to->retracts = from->retract != NULL;
    }
    return list;
}

static list describe_variables(const ms_variable *const *variables)
{
    list list = *describe_list(LISTED(variables), sizeof(described_variable));
    for (uint32_t i = 0; i < list.count; i++) {
        const ms_variable *from = variables[i];
        described_variable *to = (described_variable *)list.items + i;
        to->name = literal(from->name);
        to->kind = (uint8_t)from->kind;
        to->map_key = describe_fields(from->map_key, AS_MARKED);
        to->columns = describe_fields(from->columns, AS_MARKED);
        to->state_id = literal(from->state_id);
        to->ttl_ms.some = from->ttl_ms != 0;
        to->ttl_ms.value = from->ttl_ms;
    }
    return list;
}

void *ms__describe_processors(void)
{
    list *list = describe_list(LISTED(ms_processors), sizeof(described_processor));
    for (uint32_t i = 0; i < list->count; i++) {
        const ms_processor *from = ms_processors[i];
        described_processor *to = (described_processor *)list->items + i;
        to->name = literal(from->name);
        to->key = describe_fields(from->key, AS_MARKED);
        to->input = describe_fields(from->input, AS_MARKED);
        to->output = describe_fields(from->output, AS_MARKED);
        to->initial = describe_fields(from->initial, AS_MARKED);
        to->variables = describe_variables(from->variables);
        to->time_mode = (uint8_t)from->time_mode;
        to->output_modes = (uint8_t)from->output_modes;
    }
    return list;
}

/* ------------------------------------------------------------------------------------------------------------- sources */

bool ms_option(const ms_reading *reading, const char *name, ms_text *value)
{
    size_t length = length_of(name);
    for (uint32_t i = 0; i < reading->option_count; i++) {
        const ms_pair *pair = &reading->options[i];
        if (pair->name.length != length || __builtin_memcmp(pair->name.data, name, length) != 0) continue;
        *value = pair->value;
        return true;
    }
    return false;
}

bool ms_number_of(ms_text text, uint64_t *number)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < text.length; i++) {
        uint8_t digit = (uint8_t)(text.data[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, digit, &value)) return false;
    }
    *number = value;
    return text.length > 0;
}

void ms_set_offset(ms_reading *reading, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    reading->offset = text_of(format, arguments);
    va_end(arguments);
    reading->has_offset = true;
}

void ms_next_page(ms_reading *reading, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    reading->next = text_of(format, arguments);
    va_end(arguments);
    reading->has_next = true;
}

ms_builder *ms_read_column(ms_reading *reading, uint32_t number)
{
    if (number < reading->column_count) return &reading->columns[number];
    ms_panic("column %u of `%s`, which gives %u columns here", number, reading->failures.name, reading->column_count);
}

void ms_refuse_reading(ms_reading *reading, ms_fault fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    refuse(&reading->failures, fault, text_of(format, arguments));
    va_end(arguments);
}

/* WIT: result<string, error>, result<page, error> and result<_, error>. */
typedef struct offset_answer {
    uint8_t is_error;
    union { ms_buffer offset; failed error; } as;
} offset_answer;
typedef struct page_answer {
    uint8_t is_error;
    union {
        struct { batch rows; struct { uint8_t some; ms_buffer text; } next; } page;
        failed error;
    } as;
} page_answer;
/* WIT: source-option, source-type. */
typedef struct described_option {
    ms_buffer name;
    uint8_t required;
} described_option;
typedef struct described_source {
    ms_buffer name;
    list columns, options;
} described_source;

static const ms_source *source_of(uint32_t number) { return number < LISTED(ms_sources) ? ms_sources[number] : NULL; }

static failed refused_reading(const ms_reading *reading)
{
    failed error = {(uint8_t)reading->failures.fault, reading->failures.message};
    return error;
}

static ms_reading reading_of(const ms_source *source, const ms_pair *options, uint32_t count)
{
    ms_reading reading = {0};
    reading.options = options;
    reading.option_count = count;
    reading.failures.name = source == NULL ? "source" : source->name;
    if (source == NULL) ms_refuse_reading(&reading, MS_INTERNAL, "there is no such source");
    return reading;
}

static offset_answer *offset_answered(const ms_reading *reading)
{
    offset_answer *answer = ms_allocate(sizeof *answer);
    answer->is_error = reading->failures.refused;
    if (answer->is_error) answer->as.error = refused_reading(reading);
    else answer->as.offset = reading->offset;
    return answer;
}

static void expect_offset(ms_reading *reading)
{
    if (!reading->has_offset) ms_refuse_reading(reading, MS_INTERNAL, "`%s` gave no offset", reading->failures.name);
}

void *ms__initial_offset(uint32_t number, const ms_pair *options, uint32_t count)
{
    const ms_source *source = source_of(number);
    ms_reading reading = reading_of(source, options, count);
    if (source != NULL) {
        source->initial(&reading);
        expect_offset(&reading);
    }
    return offset_answered(&reading);
}

void *ms__latest_offset(uint32_t number, const ms_pair *options, uint32_t count, ms_text start, const ms_text *until,
                        const uint64_t *max_rows)
{
    const ms_source *source = source_of(number);
    ms_reading reading = reading_of(source, options, count);
    reading.start = start;
    reading.has_until = until != NULL;
    if (until != NULL) reading.until = *until;
    reading.has_max_rows = max_rows != NULL;
    if (max_rows != NULL) reading.max_rows = *max_rows;
    if (source != NULL) {
        source->latest(&reading);
        expect_offset(&reading);
    }
    return offset_answered(&reading);
}

/* Runs the author's code over columns; how many rows it gave. */
static uint32_t read_rows(const ms_source *source, ms_reading *reading)
{
    reading->column_count = count_of(source->columns);
    reading->columns = make_builders(source->columns);
    source->read(reading);
    uint32_t rows = reading->columns[0].rows;
    const ms_builder *wrong = uneven(reading->columns, reading->column_count, rows);
    if (wrong != NULL) {
        ms_refuse_reading(reading, MS_INTERNAL, "`%s` gave %u values in `%s` where there are %u rows", source->name,
                          wrong->rows, wrong->field->name, rows);
    }
    return rows;
}

void *ms__read_page(uint32_t number, const ms_pair *options, uint32_t count, ms_text start, ms_text end,
                    const ms_text *cursor)
{
    const ms_source *source = source_of(number);
    ms_reading reading = reading_of(source, options, count);
    reading.start = start;
    reading.end = end;
    reading.has_cursor = cursor != NULL;
    if (cursor != NULL) reading.cursor = *cursor;
    uint32_t rows = source == NULL ? 0 : read_rows(source, &reading);
    page_answer *answer = ms_allocate(sizeof *answer);
    answer->is_error = reading.failures.refused;
    if (answer->is_error) {
        answer->as.error = refused_reading(&reading);
        return answer;
    }
    answer->as.page.rows = finish_all(reading.columns, reading.column_count, rows);
    answer->as.page.next.some = reading.has_next;
    answer->as.page.next.text = reading.next;
    return answer;
}

void *ms__commit_offset(uint32_t number, const ms_pair *options, uint32_t count, ms_text end)
{
    const ms_source *source = source_of(number);
    ms_reading reading = reading_of(source, options, count);
    reading.end = end;
    if (source != NULL && source->commit != NULL) source->commit(&reading);
    return offset_answered(&reading);
}

void *ms__describe_sources(void)
{
    list *list = describe_list(LISTED(ms_sources), sizeof(described_source));
    for (uint32_t i = 0; i < list->count; i++) {
        const ms_source *from = ms_sources[i];
        described_source *to = (described_source *)list->items + i;
        to->name = literal(from->name);
        to->columns = describe_fields(from->columns, AS_MARKED);
        to->options = *describe_list(LISTED(from->options), sizeof(described_option));
        for (uint32_t j = 0; j < to->options.count; j++) {
            described_option *option = (described_option *)to->options.items + j;
            option->name = literal(from->options[j]);
            option->required = option->name.length == 0 || from->options[j][option->name.length - 1] != '?';
            if (!option->required) option->name.length--;
        }
    }
    return list;
}

/* --------------------------------------------------------------------------------------------------------------- tests */

#ifndef __wasm__
ms_test ms_test_of(const ms_function *function)
{
    ms_test test = {0};
    test.function = function;
    test.arguments = make_builders(function->arguments);
    return test;
}

ms_builder *ms_test_argument(ms_test *test, uint32_t number)
{
    uint32_t count = count_of(test->function->arguments);
    if (number >= count) ms_panic("argument %u of `%s`, which has %u arguments", number, test->function->name, count);
    return &test->arguments[number];
}

void ms_test_run(ms_test *test)
{
    const ms_function *function = test->function;
    uint32_t count = count_of(function->arguments), rows = count == 0 ? 1 : test->arguments[0].rows;
    const ms_builder *wrong = uneven(test->arguments, count, rows);
    if (wrong != NULL) ms_panic("argument `%s` has %u values, others %u", wrong->field->name, wrong->rows, rows);
    batch arguments = finish_all(test->arguments, count, rows);
    const answer *answer = call_function(function, rows, arguments.buffers, arguments.count);
    if (answer->is_error) {
        test->refusal = (const char *)text("%.*s%c", (int)answer->as.error.message.length, (const char *)answer->as.error.message.data, 0).data;
        return;
    }
    bool is_table = function->kind == MS_KIND_TABLE;
    batch results = is_table ? answer->as.table.rows : answer->as.ok.values;
    test->rows = results.rows;
    test->results = read_columns(function->results, results.rows, results.buffers, results.count);
    test->input_rows = is_table ? (const uint32_t *)(void *)answer->as.table.input_rows.data : NULL;
    test->row_errors = is_table ? answer->as.table.row_errors : answer->as.ok.row_errors;
    test->row_error_count = is_table ? answer->as.table.row_error_count : answer->as.ok.row_error_count;
}

const ms_column *ms_test_result(const ms_test *test, uint32_t number)
{
    uint32_t count = test->results == NULL ? 0 : count_of(test->function->results);
    if (number < count) return &test->results[number];
    ms_panic("result %u of `%s`, which has %u results", number, test->function->name, count);
}

const char *ms_test_error(const ms_test *test, uint32_t row)
{
    for (uint32_t i = 0; i < test->row_error_count; i++) {
        const ms_row_error *error = &test->row_errors[i];
        if (error->row != row) continue;
        return (const char *)text("%.*s%c", (int)error->message.length, (const char *)error->message.data, 0).data;
    }
    return NULL;
}

void ms_test_end(void) { give_all_back(); }

void ms_source_test_run(ms_source_test *test, void (*call)(ms_reading *reading))
{
    ms_reading *reading = &test->reading;
    ms__failures none = {0};
    reading->failures = none;
    reading->failures.name = test->source->name;
    reading->has_offset = reading->has_next = false;
    test->offset = test->next = test->refusal = NULL;
    test->columns = NULL;
    test->rows = 0;
    if (call == test->source->read) {
        test->rows = read_rows(test->source, reading);
        batch rows = finish_all(reading->columns, reading->column_count, test->rows);
        if (!reading->failures.refused) test->columns = read_columns(test->source->columns, test->rows, rows.buffers, rows.count);
    } else {
        call(reading);
    }
#define LEFT(buffer) (const char *)text("%.*s%c", (int)(buffer).length, (const char *)(buffer).data, 0).data
    if (reading->has_offset) test->offset = LEFT(reading->offset);
    if (reading->has_next) test->next = LEFT(reading->next);
    if (reading->failures.refused) test->refusal = LEFT(reading->failures.message);
#undef LEFT
}
#endif
