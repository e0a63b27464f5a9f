/* Write Millstream plugins in C, C++ and Zig.
 *
 * A plugin is a source file beside this header and millstream.c. A macro declares a function of SQL, the function's body
 * follows it, and MS_FUNCTIONS lists what the plugin has:
 *
 *     #include "millstream.h"
 *
 *     // SELECT heat(level, visits) ...
 *     MS_SCALAR(heat, MS_ARGUMENTS(MS_I64("level"), MS_I64("visits")), MS_RESULT(MS_F64("value")))
 *     {
 *         const int64_t *level = ms_i64s(ms_argument(call, 0)), *visits = ms_i64s(ms_argument(call, 1));
 *         double *value = ms_slots_f64(ms_result(call, 0), call->rows);
 *         for (uint32_t row = 0; row < call->rows; row++) value[row] = 0.1 * (double)level[row] + 0.9 * (double)visits[row];
 *     }
 *
 *     MS_FUNCTIONS(heat)
 *
 * `call` is the function's one parameter: a batch of rows goes in, a batch comes out. The guide is README.md.
 *
 * Memory of a call (columns, builders, ms_allocate) is given back when the call has been answered. Memory of the
 * instance is a cache: it may be thrown away between any two calls, so output must not depend on it. */
#ifndef MILLSTREAM_H
#define MILLSTREAM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define MS__C extern "C"
#else
#define MS__C
#endif

#ifdef __wasm__
#define MS__EXPORT(name) MS__C __attribute__((export_name(name)))
#else
#define MS__EXPORT(name) MS__C
#endif

/* ------------------------------------------------------------------------------------------------------------- fields
 * A field is a name and a type. A name that ends in `?` may be null:
 *
 *   of an argument     the function gets nulls, in all its arguments. Where no argument says so, rows with a null do not
 *                      reach the function: a scalar's result is null, a table function has no rows, an aggregate goes on
 *   of a column        it may hold nulls. A result of a scalar or an aggregate may always be null */

/* One field; a struct's fields follow it and end with MS__END. */
typedef struct ms_field {
    const char *name;
    const char *format;
} ms_field;

#define MS__FIELD(name, format) {(name), (format)}
#define MS__END ")"
#define MS_BOOL(name) MS__FIELD(name, "b")
#define MS_I8(name) MS__FIELD(name, "c")
#define MS_U8(name) MS__FIELD(name, "C")
#define MS_I16(name) MS__FIELD(name, "s")
#define MS_U16(name) MS__FIELD(name, "S")
#define MS_I32(name) MS__FIELD(name, "i")
#define MS_U32(name) MS__FIELD(name, "I")
#define MS_I64(name) MS__FIELD(name, "l")
#define MS_U64(name) MS__FIELD(name, "L")
#define MS_F32(name) MS__FIELD(name, "f")
#define MS_F64(name) MS__FIELD(name, "g")
/* STRING, always UTF-8. */
#define MS_TEXT(name) MS__FIELD(name, "u")
#define MS_BINARY(name) MS__FIELD(name, "z")
/* DATE: days since 1970-01-01. */
#define MS_DATE(name) MS__FIELD(name, "tdD")
/* TIMESTAMP: microseconds since 1970-01-01 00:00 UTC. */
#define MS_TIMESTAMP(name) MS__FIELD(name, "tsu:UTC")
/* TIMESTAMP_NTZ: the reading of a clock, in microseconds since 1970-01-01 00:00. */
#define MS_LOCAL_TIMESTAMP(name) MS__FIELD(name, "tsu:")
/* DECIMAL(precision, scale): the value times 10^scale. */
#define MS_DECIMAL(name, precision, scale) MS__FIELD(name, "d:" #precision "," #scale)
/* ARRAY: MS_LIST("tags", MS_TEXT("item?")). Elements may always be null; ms_is_whole knows which were meant to be. */
#define MS_LIST(name, ...) MS__FIELD(name, "+l"), __VA_ARGS__
/* STRUCT: MS_STRUCT("place", MS_F64("x"), MS_F64("y")). */
#define MS_STRUCT(name, ...) MS__FIELD(name, "+s"), __VA_ARGS__, MS__FIELD(NULL, MS__END)

/* Lists of fields, for the macros below; MS_NONE where there are no fields. */
#define MS__LIST_OF(...) (__VA_ARGS__ __VA_OPT__(, ))
#define MS_ARGUMENTS(...) MS__LIST_OF(__VA_ARGS__)
#define MS_RESULT(...) MS__LIST_OF(__VA_ARGS__)
#define MS_COLUMNS(...) MS__LIST_OF(__VA_ARGS__)
#define MS_NONE ()

/* ------------------------------------------------------------------------------------------------------------- columns
 * A column is read by row, which is checked, or as a whole, which is fast:
 *
 *   ms_i64_at(column, row)    a value; another type or a row that is not there ends the call with a message that says so
 *   ms_i64s(column)           all values; the pointer is good until the end of the call
 *
 * Where ms_is_null says so, a value means nothing. */

typedef enum ms_type {
    MS_TYPE_BOOL, MS_TYPE_I8, MS_TYPE_U8, MS_TYPE_I16, MS_TYPE_U16, MS_TYPE_I32, MS_TYPE_U32, MS_TYPE_I64, MS_TYPE_U64,
    MS_TYPE_F32, MS_TYPE_F64, MS_TYPE_DECIMAL, MS_TYPE_TEXT, MS_TYPE_BINARY, MS_TYPE_LIST, MS_TYPE_STRUCT,
} ms_type;

__extension__ typedef __int128 ms_decimal;

/* A column of a batch. */
typedef struct ms_column {
    const ms_field *field;
    ms_type type;
    uint32_t rows;
    const uint8_t *validity; /* a bit per row, 1 is a value; NULL where there are no nulls */
    const void *values;      /* of fixed width: the values; of text and binary: the bytes */
    const int32_t *offsets;  /* of text, binary and lists: rows + 1 */
    struct ms_column *children;
    uint32_t child_count;
} ms_column;

/* Text or bytes; not terminated by a zero. */
typedef struct ms_text {
    const char *data;
    uint32_t length;
} ms_text;

/* A name and a value. */
typedef struct ms_pair {
    ms_text name, value;
} ms_pair;

/* Rows from begin to before end. */
typedef struct ms_range {
    uint32_t begin, end;
} ms_range;

/* Ends the call: the message goes to the operator, the instance is thrown away. Understands what ms_refuse does. */
__attribute__((noreturn, format(printf, 1, 2))) void ms_panic(const char *format, ...);
__attribute__((noreturn)) void ms__no_such_value(const ms_column *column, uint32_t row, ms_type wanted);

static inline void ms__check(const ms_column *column, uint32_t row, ms_type wanted)
{
    if (__builtin_expect(column->type != wanted || row >= column->rows, 0)) ms__no_such_value(column, row, wanted);
}

static inline bool ms_is_null(const ms_column *column, uint32_t row)
{
    if (row >= column->rows) ms__no_such_value(column, row, column->type);
    return column->validity != NULL && !(column->validity[row / 8] >> (row % 8) & 1);
}

/* Whether a row has a value, and everything in it that must have one by its field's name. A list or struct where this is
 * false is best taken for null: nulls inside of it reach a function although their fields do not end in `?`. */
bool ms_is_whole(const ms_column *column, uint32_t row);

/* The fixed-width types: name, C type, kind. Dates are i32, both timestamps i64. */
#define MS__FIXED(X)                                                                                                    \
    X(i8, int8_t, MS_TYPE_I8) X(u8, uint8_t, MS_TYPE_U8) X(i16, int16_t, MS_TYPE_I16) X(u16, uint16_t, MS_TYPE_U16)      \
    X(i32, int32_t, MS_TYPE_I32) X(u32, uint32_t, MS_TYPE_U32) X(i64, int64_t, MS_TYPE_I64)                              \
    X(u64, uint64_t, MS_TYPE_U64) X(f32, float, MS_TYPE_F32) X(f64, double, MS_TYPE_F64)                                 \
    X(decimal, ms_decimal, MS_TYPE_DECIMAL)

#define MS__READ(name, c_type, kind)                                                                                    \
    static inline const c_type *ms_##name##s(const ms_column *column)                                                   \
    {                                                                                                                   \
        if (column->type != kind) ms__no_such_value(column, 0, kind);                                                   \
        return (const c_type *)column->values;                                                                          \
    }                                                                                                                   \
    static inline c_type ms_##name##_at(const ms_column *column, uint32_t row)                                          \
    {                                                                                                                   \
        ms__check(column, row, kind);                                                                                   \
        return ((const c_type *)column->values)[row];                                                                   \
    }
MS__FIXED(MS__READ)

static inline bool ms_bool_at(const ms_column *column, uint32_t row)
{
    ms__check(column, row, MS_TYPE_BOOL);
    return ((const uint8_t *)column->values)[row / 8] >> (row % 8) & 1;
}

static inline ms_text ms__bytes_at(const ms_column *column, uint32_t row)
{
    ms_text text;
    text.data = (const char *)column->values + column->offsets[row];
    text.length = (uint32_t)(column->offsets[row + 1] - column->offsets[row]);
    return text;
}
static inline ms_text ms_text_at(const ms_column *column, uint32_t row)
{
    ms__check(column, row, MS_TYPE_TEXT);
    return ms__bytes_at(column, row);
}
static inline ms_text ms_binary_at(const ms_column *column, uint32_t row)
{
    ms__check(column, row, MS_TYPE_BINARY);
    return ms__bytes_at(column, row);
}

/* The elements of a list: rows of ms_child(column, 0). */
static inline ms_range ms_list_at(const ms_column *column, uint32_t row)
{
    ms_range range;
    ms__check(column, row, MS_TYPE_LIST);
    range.begin = (uint32_t)column->offsets[row];
    range.end = (uint32_t)column->offsets[row + 1];
    return range;
}

/* The elements of a list column, or a field of a struct column, which has the struct's rows. */
const ms_column *ms_child(const ms_column *column, uint32_t number);

/* ------------------------------------------------------------------------------------------------------------ builders
 * A builder takes a column, row after row:
 *
 *   ms_add_i64(builder, value)       one more value
 *   ms_slots_i64(builder, rows)      so many more values, all 0, to be written through the pointer that it gives; the
 *                                    pointer is good until the next value is added
 *   ms_add_null(builder)             one more null
 *   ms_set_null(builder, row)        makes a row that is there null
 *
 * A list's elements are added to ms_element(builder), then ms_add_list makes a row of them; a struct's values to
 * ms_member(builder, i), then ms_add_struct. */

typedef struct ms_builder {
    const ms_field *field;
    ms_type type;
    uint32_t width;    /* bytes of a value of fixed width, else 0 */
    uint32_t rows;
    uint8_t *validity; /* NULL until there is a null */
    uint32_t validity_room;
    uint8_t *values;
    uint32_t length, room;
    int32_t *offsets;
    uint32_t offsets_room;
    struct ms_builder *children;
    uint32_t child_count;
} ms_builder;

/* Makes room for so many more bytes of values and as many rows as are added. */
void *ms__grow(ms_builder *builder, ms_type wanted, uint32_t rows);

#define MS__ADD(name, c_type, kind)                                                                                     \
    static inline void ms_add_##name(ms_builder *builder, c_type value)                                                 \
    {                                                                                                                   \
        if (__builtin_expect(builder->type == kind && builder->validity == NULL &&                                      \
                                 builder->room - builder->length >= sizeof(c_type), 1)) {                               \
            *(c_type *)(void *)(builder->values + builder->length) = value;                                             \
            builder->length += (uint32_t)sizeof(c_type);                                                                \
            builder->rows++;                                                                                            \
        } else {                                                                                                        \
            *(c_type *)ms__grow(builder, kind, 1) = value;                                                              \
        }                                                                                                               \
    }                                                                                                                   \
    static inline c_type *ms_slots_##name(ms_builder *builder, uint32_t rows)                                           \
    {                                                                                                                   \
        return (c_type *)ms__grow(builder, kind, rows);                                                                 \
    }
MS__FIXED(MS__ADD)

void ms_add_bool(ms_builder *builder, bool value);
void ms_add_text(ms_builder *builder, const char *data, size_t length);
void ms_add_binary(ms_builder *builder, const void *data, size_t length);
void ms_add_list(ms_builder *builder);
void ms_add_struct(ms_builder *builder);
void ms_add_null(ms_builder *builder);
void ms_set_null(ms_builder *builder, uint32_t row);
ms_builder *ms_element(ms_builder *builder);
ms_builder *ms_member(ms_builder *builder, uint32_t number);
/* One more row: a copy of a row of a column of the same type, null or not. */
void ms_add_copy(ms_builder *builder, const ms_column *column, uint32_t row);

/* --------------------------------------------------------------------------------------------------------------- calls */

/* Bytes as the host gives and takes them. */
typedef struct ms_buffer {
    uint8_t *data;
    uint32_t length;
} ms_buffer;

typedef struct ms_row_error {
    uint32_t row;
    ms_buffer message;
} ms_row_error;

/* By who must act on an error of a whole call. */
typedef enum ms_fault {
    MS_INVALID_INPUT, /* the data's owner: these rows cannot be processed */
    MS_UNAVAILABLE,   /* the world: something is not there now, the same call may succeed later */
    MS_INTERNAL,      /* the plugin's author */
} ms_fault;

typedef struct ms__failures {
    const char *name; /* of the function */
    ms_row_error *rows;
    uint32_t count, room;
    bool refused;
    ms_fault fault;
    ms_buffer message;
} ms__failures;

/* What a call's results are: a value per row, rows of rows, states of groups. */
typedef enum ms__shape { MS__VALUES, MS__ROWS, MS__GROUPS } ms__shape;

/* One call of a function of any kind. */
typedef struct ms_call {
    uint32_t rows;                /* of the arguments */
    uint32_t groups;              /* of accumulate, merge and retract: how many */
    const uint32_t *group_of_row; /* of these: for each row its group, from 0 */
    ms_column *arguments;
    uint32_t argument_count;
    ms_column *states;
    uint32_t state_count;
    ms_builder *results;
    uint32_t result_count;
    ms__shape shape;
    uint32_t *input_rows;
    uint32_t emitted, input_rows_room;
    ms__failures failures;
} ms_call;

/* A column of the arguments, from 0. */
const ms_column *ms_argument(const ms_call *call, uint32_t number);
/* A column of the results, from 0. */
ms_builder *ms_result(ms_call *call, uint32_t number);
/* Of merge, retract and evaluate: a column of states. */
const ms_column *ms_state(const ms_call *call, uint32_t number);

/* Of a table function, after a value was added to each column: the row is one of this argument row. Rows ascend. */
void ms_emit(ms_call *call, uint32_t row);

/* The row fails with a message for a person. A scalar's or an aggregate's result at this row becomes null, rows that a
 * table function has given for it are taken back. The query says what then becomes of the row. Rows ascend.
 * Formats: %s %.*s %c %d %u %x with l, ll or z, and %%. */
__attribute__((format(printf, 3, 4))) void ms_fail_row(ms_call *call, uint32_t row, const char *format, ...);
/* The whole call fails; return after it. */
__attribute__((format(printf, 3, 4))) void ms_refuse(ms_call *call, ms_fault fault, const char *format, ...);

/* Memory until the end of the call, of zeros, aligned to 16 bytes. It need not be given back. */
void *ms_allocate(size_t bytes);

/* ----------------------------------------------------------------------------------------------------------- functions */

typedef enum ms_kind { MS_KIND_SCALAR, MS_KIND_TABLE } ms_kind;

/* Calls are made exactly where the query has them, not moved, shared or left out. */
#define MS_VOLATILE 1u

typedef struct ms_function {
    const char *name;
    ms_kind kind;
    uint32_t flags;
    const ms_field *arguments, *results;
    void (*call)(ms_call *call);
} ms_function;

#define MS__OPEN(...) __VA_ARGS__
#define MS__FIELDS(name, fields) static const ms_field name[] = {MS__OPEN fields{NULL, NULL}}

#define MS__FUNCTION(name, kind, arguments, results, ...)                                                               \
    static void ms__call_##name(ms_call *call);                                                                         \
    MS__FIELDS(ms__arguments_##name, arguments);                                                                        \
    MS__FIELDS(ms__results_##name, results);                                                                            \
    static const ms_function ms_function_##name = {                                                                     \
        #name, kind, 0 __VA_OPT__(| (__VA_ARGS__)), ms__arguments_##name, ms__results_##name, ms__call_##name};         \
    static void ms__call_##name(ms_call *call)

/* One value per row: MS_SCALAR(name, MS_ARGUMENTS(...), MS_RESULT(...)) { body }. MS_VOLATILE may follow the result. */
#define MS_SCALAR(name, ...) MS__FUNCTION(name, MS_KIND_SCALAR, __VA_ARGS__)
/* Any number of rows per row: MS_TABLE(name, MS_ARGUMENTS(...), MS_COLUMNS(...)) { body }. */
#define MS_TABLE(name, ...) MS__FUNCTION(name, MS_KIND_TABLE, __VA_ARGS__)

/* The functions of the plugin; once, after all of them. */
#define MS_FUNCTIONS(...)                                                                                               \
    MS__C const ms_function *const ms_functions[] = {MS__EACH(MS__FUNCTION_OF, __VA_ARGS__) NULL};                      \
    MS__EXPORT(MS__WIT("scalar") "#call")                                                                               \
    void *ms__export_scalar(uint32_t function, uint32_t rows, ms_buffer *buffers, uint32_t count)                       \
    {                                                                                                                   \
        return ms__call_function(MS_KIND_SCALAR, function, rows, buffers, count);                                       \
    }                                                                                                                   \
    MS__EXPORT("cabi_post_" MS__WIT("scalar") "#call") void ms__free_scalar(void *answer) { ms__answered(answer); }     \
    MS__EXPORT(MS__WIT("table") "#call")                                                                                \
    void *ms__export_table(uint32_t function, uint32_t rows, ms_buffer *buffers, uint32_t count)                        \
    {                                                                                                                   \
        return ms__call_function(MS_KIND_TABLE, function, rows, buffers, count);                                        \
    }                                                                                                                   \
    MS__EXPORT("cabi_post_" MS__WIT("table") "#call") void ms__free_table(void *answer) { ms__answered(answer); }
#define MS__FUNCTION_OF(name) &ms_function_##name,

extern const ms_function *const ms_functions[] __attribute__((weak));
void *ms__call_function(ms_kind kind, uint32_t function, uint32_t rows, ms_buffer *buffers, uint32_t count);
void ms__answered(void *answer);

#define MS__WIT(interface) "millstream:plugin/" interface "@0.2.0"

/* MS__EACH(macro, a, b) is macro(a) macro(b). */
#define MS__PARENS ()
#define MS__TWICE(...) MS__TWICE1(MS__TWICE1(MS__TWICE1(MS__TWICE1(__VA_ARGS__))))
#define MS__TWICE1(...) MS__TWICE2(MS__TWICE2(MS__TWICE2(MS__TWICE2(__VA_ARGS__))))
#define MS__TWICE2(...) MS__TWICE3(MS__TWICE3(MS__TWICE3(MS__TWICE3(__VA_ARGS__))))
#define MS__TWICE3(...) MS__TWICE4(MS__TWICE4(MS__TWICE4(MS__TWICE4(__VA_ARGS__))))
#define MS__TWICE4(...) __VA_ARGS__
#define MS__EACH(macro, ...) __VA_OPT__(MS__TWICE(MS__EACH_ONE(macro, __VA_ARGS__)))
#define MS__EACH_ONE(macro, head, ...) macro(head) __VA_OPT__(MS__EACH_AGAIN MS__PARENS(macro, __VA_ARGS__))
#define MS__EACH_AGAIN() MS__EACH_ONE

/* ---------------------------------------------------------------------------------------------------------- aggregates
 * MS_AGGREGATE(mean, MS_ARGUMENTS(...), MS_RESULT(...), MS_COLUMNS(state columns), "state id"), after three functions
 * with the parameter `ms_call *call`:
 *
 *   mean_accumulate   ms_argument, call->group_of_row      ->  ms_result: the states of call->groups groups over these
 *                                                              rows alone, one row per group; a group may have no row
 *   mean_merge        ms_state, call->group_of_row         ->  ms_result: many states into one per group
 *   mean_evaluate     ms_state                             ->  ms_result(call, 0): a value per state
 *
 * MS_RETRACTING_AGGREGATE takes a fourth, mean_retract: ms_state, one row per group, without the rows of ms_argument and
 * call->group_of_row -> ms_result. */

/* How many rows the call's columns of states have. */
uint32_t ms_states(const ms_call *call);

typedef struct ms_aggregate {
    const char *name, *state_id;
    const ms_field *arguments, *results, *state;
    void (*accumulate)(ms_call *call);
    void (*merge)(ms_call *call);
    void (*evaluate)(ms_call *call);
    void (*retract)(ms_call *call);
} ms_aggregate;

#define MS__AGGREGATE(name, retract, arguments, results, state, state_id)                                               \
    MS__FIELDS(ms__arguments_##name, arguments);                                                                        \
    MS__FIELDS(ms__results_##name, results);                                                                            \
    MS__FIELDS(ms__state_##name, state);                                                                                \
    static const ms_aggregate ms_aggregate_##name = {#name, state_id, ms__arguments_##name, ms__results_##name,         \
        ms__state_##name, name##_accumulate, name##_merge, name##_evaluate, retract}
#define MS_AGGREGATE(name, ...) MS__AGGREGATE(name, NULL, __VA_ARGS__)
#define MS_RETRACTING_AGGREGATE(name, ...) MS__AGGREGATE(name, name##_retract, __VA_ARGS__)

/* The aggregate functions of the plugin; once, after all of them. */
#define MS_AGGREGATES(...)                                                                                              \
    MS__C const ms_aggregate *const ms_aggregates[] = {MS__EACH(MS__AGGREGATE_OF, __VA_ARGS__) NULL};                   \
    MS__EXPORT(MS__WIT("aggregate") "#describe") void *ms__export_aggregates(void) { return ms__describe_aggregates(); } \
    MS__EXPORT("cabi_post_" MS__WIT("aggregate") "#describe") void ms__free_aggregates(void *a) { ms__answered(a); }    \
    MS__EXPORT(MS__WIT("aggregate") "#accumulate")                                                                      \
    void *ms__export_accumulate(uint32_t function, uint32_t groups, uint32_t *group_of_row, uint32_t bytes,             \
                                uint32_t rows, ms_buffer *buffers, uint32_t count)                                      \
    {                                                                                                                   \
        return ms__accumulate(function, groups, group_of_row, bytes, rows, buffers, count);                             \
    }                                                                                                                   \
    MS__EXPORT("cabi_post_" MS__WIT("aggregate") "#accumulate") void ms__free_accumulate(void *a) { ms__answered(a); }  \
    MS__EXPORT(MS__WIT("aggregate") "#merge")                                                                           \
    void *ms__export_merge(uint32_t function, uint32_t groups, uint32_t *group_of_row, uint32_t bytes, uint32_t rows,   \
                           ms_buffer *buffers, uint32_t count)                                                          \
    {                                                                                                                   \
        return ms__merge(function, groups, group_of_row, bytes, rows, buffers, count);                                  \
    }                                                                                                                   \
    MS__EXPORT("cabi_post_" MS__WIT("aggregate") "#merge") void ms__free_merge(void *a) { ms__answered(a); }            \
    MS__EXPORT(MS__WIT("aggregate") "#retract")                                                                         \
    void *ms__export_retract(uint32_t function, uint32_t groups, ms_buffer *states, uint32_t state_count,               \
                             uint32_t *group_of_row, uint32_t bytes, uint32_t rows, ms_buffer *buffers, uint32_t count) \
    {                                                                                                                   \
        return ms__retract(function, groups, states, state_count, group_of_row, bytes, rows, buffers, count);           \
    }                                                                                                                   \
    MS__EXPORT("cabi_post_" MS__WIT("aggregate") "#retract") void ms__free_retract(void *a) { ms__answered(a); }        \
    MS__EXPORT(MS__WIT("aggregate") "#evaluate")                                                                        \
    void *ms__export_evaluate(uint32_t function, uint32_t states, ms_buffer *buffers, uint32_t count)                   \
    {                                                                                                                   \
        return ms__evaluate(function, states, buffers, count);                                                          \
    }                                                                                                                   \
    MS__EXPORT("cabi_post_" MS__WIT("aggregate") "#evaluate") void ms__free_evaluate(void *a) { ms__answered(a); }
#define MS__AGGREGATE_OF(name) &ms_aggregate_##name,

extern const ms_aggregate *const ms_aggregates[] __attribute__((weak));
void *ms__describe_aggregates(void);
void *ms__accumulate(uint32_t function, uint32_t groups, uint32_t *group_of_row, uint32_t bytes, uint32_t rows,
                     ms_buffer *buffers, uint32_t count);
void *ms__merge(uint32_t function, uint32_t groups, uint32_t *group_of_row, uint32_t bytes, uint32_t rows,
                ms_buffer *buffers, uint32_t count);
void *ms__retract(uint32_t function, uint32_t groups, ms_buffer *states, uint32_t state_count, uint32_t *group_of_row,
                  uint32_t bytes, uint32_t rows, ms_buffer *buffers, uint32_t count);
void *ms__evaluate(uint32_t function, uint32_t states, ms_buffer *buffers, uint32_t count);

/* ---------------------------------------------------------------------------------------------------------- processors
 * A processor sees all rows of a key together with what it stored under that key. Its variables are declared first:
 *
 *   MS_VALUE(name, "state id", columns)            one row or none per key; MS_ITEMS: any number of rows, in order;
 *   MS_MAP(name, "state id", map key, columns)     any number of rows, each under a map key
 *
 * then MS_PROCESSOR(name, key, input, output, initial, MS_VARIABLES(...), time mode, output modes, process, expire,
 * initialise), the last three functions with the parameter `ms_keys *keys`; NULL for what it does not have. A function
 * goes over the keys in their order, from 0 to keys->count. A variable's number is its place in MS_VARIABLES. */

typedef enum ms_variable_kind { MS_VARIABLE_VALUE, MS_VARIABLE_LIST, MS_VARIABLE_MAP } ms_variable_kind;
typedef enum ms_time_mode { MS_TIME_NONE, MS_TIME_PROCESSING, MS_TIME_EVENT } ms_time_mode;
#define MS_APPEND 1u
#define MS_UPDATE 2u
#define MS_COMPLETE 4u

typedef struct ms_variable {
    const char *name;
    ms_variable_kind kind;
    const ms_field *map_key, *columns;
    const char *state_id;
    uint64_t ttl_ms; /* 0: entries live for ever */
} ms_variable;

#define MS__VARIABLE(name, kind, state_id, map_key, columns, ...)                                                       \
    MS__FIELDS(ms__map_key_##name, map_key);                                                                            \
    MS__FIELDS(ms__columns_##name, columns);                                                                            \
    static const ms_variable ms_variable_##name = {                                                                     \
        #name, kind, ms__map_key_##name, ms__columns_##name, state_id, 0 __VA_OPT__(+ (__VA_ARGS__))}
/* A time to live in milliseconds of processing time may follow the columns. */
#define MS_VALUE(name, state_id, ...) MS__VARIABLE(name, MS_VARIABLE_VALUE, state_id, MS_NONE, __VA_ARGS__)
#define MS_ITEMS(name, state_id, ...) MS__VARIABLE(name, MS_VARIABLE_LIST, state_id, MS_NONE, __VA_ARGS__)
#define MS_MAP(name, state_id, ...) MS__VARIABLE(name, MS_VARIABLE_MAP, state_id, __VA_ARGS__)

/* Entries of a variable, of the keys of the call. */
typedef struct ms__entries {
    const uint32_t *key_of_entry;
    uint32_t count;
    ms_column *map_keys, *columns;
} ms__entries;

/* What is under construction for a variable. */
typedef struct ms__changes {
    uint32_t *cleared, cleared_count, cleared_room;
    uint32_t *key_of_removed, removed_count, removed_room;
    uint32_t *key_of_put, put_count, put_room;
    ms_builder *removed, *map_keys, *columns;
} ms__changes;

typedef struct ms__timers {
    uint32_t *keys, count, keys_room;
    int64_t *due;
    uint32_t due_room;
} ms__timers;

struct ms_processor;

/* The keys of one call and everything that is known about them. */
typedef struct ms_keys {
    const struct ms_processor *processor;
    uint32_t count;
    uint32_t rows;
    const uint32_t *key_of_row;
    int64_t batch_time_ms;
    bool has_watermark;
    int64_t watermark_ms;
    ms_column *keys, *input;
    ms__entries *state;
    ms__timers timers, due;
    ms__changes *changes;
    ms_builder *output;
    uint32_t *key_of_output, emitted, output_room;
    ms__timers deleted, registered;
    ms__failures failures;
} ms_keys;

/* A column of the keys, one row each. */
const ms_column *ms_key(const ms_keys *keys, uint32_t number);
/* A column of the input rows, or of the initial ones, and which of its rows belong to a key. */
const ms_column *ms_input(const ms_keys *keys, uint32_t number);
ms_range ms_rows_of(const ms_keys *keys, uint32_t key);
/* A column of a variable's entries, of its map keys, and which entries belong to a key. */
const ms_column *ms_stored(const ms_keys *keys, uint32_t variable, uint32_t number);
const ms_column *ms_stored_map_key(const ms_keys *keys, uint32_t variable, uint32_t number);
ms_range ms_entries_of(const ms_keys *keys, uint32_t variable, uint32_t key);
/* The timers that a key has, and those of them that are due: places in keys->timers.due and keys->due.due. */
ms_range ms_timers_of(const ms_keys *keys, uint32_t key);
ms_range ms_due_of(const ms_keys *keys, uint32_t key);

/* A column of the output; ms_emit_for makes a row of what was added to each. */
ms_builder *ms_output(ms_keys *keys, uint32_t number);
void ms_emit_for(ms_keys *keys, uint32_t key);
/* The key loses all entries of a variable. What is put in the same call stays. */
void ms_clear(ms_keys *keys, uint32_t variable, uint32_t key);
/* Columns of an entry to write, and of its map key; ms_put makes an entry of what was added to each. */
ms_builder *ms_entry(ms_keys *keys, uint32_t variable, uint32_t number);
ms_builder *ms_entry_map_key(ms_keys *keys, uint32_t variable, uint32_t number);
void ms_put(ms_keys *keys, uint32_t variable, uint32_t key);
/* Columns of a map key to remove; ms_remove makes one of what was added to each. */
ms_builder *ms_removed(ms_keys *keys, uint32_t variable, uint32_t number);
void ms_remove(ms_keys *keys, uint32_t variable, uint32_t key);
/* Timers, in milliseconds since 1970; those of one key ascending. */
void ms_register_timer(ms_keys *keys, uint32_t key, int64_t due_ms);
void ms_delete_timer(ms_keys *keys, uint32_t key, int64_t due_ms);
/* The key fails: what was given for it in this call is taken back. */
__attribute__((format(printf, 3, 4))) void ms_fail_key(ms_keys *keys, uint32_t key, const char *format, ...);
/* The whole call fails; return after it. */
__attribute__((format(printf, 3, 4))) void ms_refuse_keys(ms_keys *keys, ms_fault fault, const char *format, ...);

typedef struct ms_processor {
    const char *name;
    const ms_field *key, *input, *output, *initial;
    const ms_variable *const *variables;
    ms_time_mode time_mode;
    uint32_t output_modes;
    void (*process)(ms_keys *keys);
    void (*expire)(ms_keys *keys);
    void (*initialise)(ms_keys *keys);
} ms_processor;

#define MS_VARIABLES(...) (MS__EACH(MS__VARIABLE_OF, __VA_ARGS__))
#define MS__VARIABLE_OF(name) &ms_variable_##name,
#define MS_PROCESSOR(name, key, input, output, initial, variables, time_mode, output_modes, process, expire, initialise) \
    MS__FIELDS(ms__key_##name, key);                                                                                    \
    MS__FIELDS(ms__input_##name, input);                                                                                \
    MS__FIELDS(ms__output_##name, output);                                                                              \
    MS__FIELDS(ms__initial_##name, initial);                                                                            \
    static const ms_variable *const ms__variables_##name[] = {MS__OPEN variables NULL};                                 \
    static const ms_processor ms_processor_##name = {#name, ms__key_##name, ms__input_##name, ms__output_##name,        \
        ms__initial_##name, ms__variables_##name, time_mode, output_modes, process, expire, initialise}

/* The processors of the plugin; once, after all of them. */
#define MS_PROCESSORS(...)                                                                                              \
    MS__C const ms_processor *const ms_processors[] = {MS__EACH(MS__PROCESSOR_OF, __VA_ARGS__) NULL};                   \
    MS__EXPORT(MS__WIT("processor") "#describe") void *ms__export_processors(void) { return ms__describe_processors(); } \
    MS__EXPORT("cabi_post_" MS__WIT("processor") "#describe") void ms__free_processors(void *a) { ms__answered(a); }    \
    MS__EXPORT(MS__WIT("processor") "#process") void *ms__export_process(void *c) { return ms__invoke(MS__PROCESS, c); } \
    MS__EXPORT("cabi_post_" MS__WIT("processor") "#process") void ms__free_process(void *a) { ms__answered(a); }        \
    MS__EXPORT(MS__WIT("processor") "#expire") void *ms__export_expire(void *c) { return ms__invoke(MS__EXPIRE, c); }   \
    MS__EXPORT("cabi_post_" MS__WIT("processor") "#expire") void ms__free_expire(void *a) { ms__answered(a); }          \
    MS__EXPORT(MS__WIT("processor") "#initialise") void *ms__export_init(void *c) { return ms__invoke(MS__INITIALISE, c); } \
    MS__EXPORT("cabi_post_" MS__WIT("processor") "#initialise") void ms__free_init(void *a) { ms__answered(a); }
#define MS__PROCESSOR_OF(name) &ms_processor_##name,

typedef enum ms__step { MS__PROCESS, MS__EXPIRE, MS__INITIALISE } ms__step;
extern const ms_processor *const ms_processors[] __attribute__((weak));
void *ms__describe_processors(void);
void *ms__invoke(ms__step step, void *invocation);

/* ------------------------------------------------------------------------------------------------------------- sources
 * A source is code that rows come from, by ranges of offsets that it makes up itself. An offset is a place between rows, as
 * text that only the source understands; the host keeps offsets in its log and gives them back. The rows of a range are the
 * same rows whenever it is read.
 *
 *   MS_SOURCE(name, MS_COLUMNS(...), MS_OPTIONS("url", "page?"), initial, latest, read, commit)
 *
 * after functions with the parameter `ms_reading *reading`; commit may be NULL. An option whose name ends in `?` may be left
 * out. A function answers with:
 *
 *   initial   ms_set_offset: where a query begins that has read nothing yet
 *   latest    ms_set_offset: the end of a batch that begins at reading->start, which is the start when nothing is new; not
 *             beyond reading->until if has_until, and after about reading->max_rows rows if has_max_rows
 *   read      values in each ms_read_column: the rows after reading->start up to reading->end, or from reading->cursor on if
 *             has_cursor; ms_next_page when there are more
 *   commit    nothing: the query has what comes before reading->end, for good */

/* One call of a source. */
typedef struct ms_reading {
    const ms_pair *options;
    uint32_t option_count;
    ms_text start, end, until, cursor;
    bool has_until, has_max_rows, has_cursor;
    uint64_t max_rows;
    ms_builder *columns;
    uint32_t column_count;
    ms_buffer offset, next;
    bool has_offset, has_next;
    ms__failures failures;
} ms_reading;

/* The value of an option; false where the query does not give it. */
bool ms_option(const ms_reading *reading, const char *name, ms_text *value);
/* A text of decimal digits as a number; false where it is none, or too large. */
bool ms_number_of(ms_text text, uint64_t *number);
/* The offset that is asked for. Formats as for ms_fail_row. */
__attribute__((format(printf, 2, 3))) void ms_set_offset(ms_reading *reading, const char *format, ...);
/* A column of the rows, from 0. */
ms_builder *ms_read_column(ms_reading *reading, uint32_t number);
/* There are more rows; the next page is asked for with this cursor. */
__attribute__((format(printf, 2, 3))) void ms_next_page(ms_reading *reading, const char *format, ...);
/* The call fails; return after it. */
__attribute__((format(printf, 3, 4))) void ms_refuse_reading(ms_reading *reading, ms_fault fault, const char *format, ...);

typedef struct ms_source {
    const char *name;
    const ms_field *columns;
    const char *const *options;
    void (*initial)(ms_reading *reading);
    void (*latest)(ms_reading *reading);
    void (*read)(ms_reading *reading);
    void (*commit)(ms_reading *reading);
} ms_source;

#define MS_OPTIONS(...) (__VA_ARGS__ __VA_OPT__(, ))
#define MS_SOURCE(name, columns, options, initial, latest, read, commit)                                                \
    MS__FIELDS(ms__source_columns_##name, columns);                                                                     \
    static const char *const ms__source_options_##name[] = {MS__OPEN options NULL};                                     \
    static const ms_source ms_source_##name = {                                                                         \
        #name, ms__source_columns_##name, ms__source_options_##name, initial, latest, read, commit}

/* The sources of the plugin; once, after all of them. */
#define MS_SOURCES(...)                                                                                                 \
    MS__C const ms_source *const ms_sources[] = {MS__EACH(MS__SOURCE_OF, __VA_ARGS__) NULL};                            \
    MS__EXPORT(MS__WIT("source") "#describe") void *ms__export_sources(void) { return ms__describe_sources(); }         \
    MS__EXPORT("cabi_post_" MS__WIT("source") "#describe") void ms__free_sources(void *a) { ms__answered(a); }          \
    MS__EXPORT(MS__WIT("source") "#initial-offset")                                                                     \
    void *ms__export_initial(uint32_t source, const ms_pair *options, uint32_t count)                                   \
    {                                                                                                                   \
        return ms__initial_offset(source, options, count);                                                              \
    }                                                                                                                   \
    MS__EXPORT("cabi_post_" MS__WIT("source") "#initial-offset") void ms__free_initial(void *a) { ms__answered(a); }    \
    MS__EXPORT(MS__WIT("source") "#latest-offset")                                                                      \
    void *ms__export_latest(uint32_t source, const ms_pair *options, uint32_t count, const char *start, uint32_t length, \
                            uint32_t has_until, const char *until, uint32_t until_length, uint32_t has_max,             \
                            uint64_t max)                                                                               \
    {                                                                                                                   \
        const ms_text from = {start, length}, to = {until, until_length};                                               \
        return ms__latest_offset(source, options, count, from, has_until ? &to : NULL, has_max ? &max : NULL);          \
    }                                                                                                                   \
    MS__EXPORT("cabi_post_" MS__WIT("source") "#latest-offset") void ms__free_latest(void *a) { ms__answered(a); }      \
    MS__EXPORT(MS__WIT("source") "#read")                                                                               \
    void *ms__export_read(uint32_t source, const ms_pair *options, uint32_t count, const char *start, uint32_t length,  \
                          const char *end, uint32_t end_length, uint32_t has_cursor, const char *cursor,                \
                          uint32_t cursor_length)                                                                       \
    {                                                                                                                   \
        const ms_text from = {start, length}, to = {end, end_length}, at = {cursor, cursor_length};                     \
        return ms__read_page(source, options, count, from, to, has_cursor ? &at : NULL);                                \
    }                                                                                                                   \
    MS__EXPORT("cabi_post_" MS__WIT("source") "#read") void ms__free_read(void *a) { ms__answered(a); }                 \
    MS__EXPORT(MS__WIT("source") "#commit")                                                                             \
    void *ms__export_commit(uint32_t source, const ms_pair *options, uint32_t count, const char *end, uint32_t length)  \
    {                                                                                                                   \
        const ms_text to = {end, length};                                                                               \
        return ms__commit_offset(source, options, count, to);                                                           \
    }                                                                                                                   \
    MS__EXPORT("cabi_post_" MS__WIT("source") "#commit") void ms__free_commit(void *a) { ms__answered(a); }
#define MS__SOURCE_OF(name) &ms_source_##name,

extern const ms_source *const ms_sources[] __attribute__((weak));
void *ms__describe_sources(void);
void *ms__initial_offset(uint32_t source, const ms_pair *options, uint32_t count);
void *ms__latest_offset(uint32_t source, const ms_pair *options, uint32_t count, ms_text start, const ms_text *until,
                        const uint64_t *max_rows);
void *ms__read_page(uint32_t source, const ms_pair *options, uint32_t count, ms_text start, ms_text end,
                    const ms_text *cursor);
void *ms__commit_offset(uint32_t source, const ms_pair *options, uint32_t count, ms_text end);

/* ---------------------------------------------------------------------------------------------------------------- host */

typedef enum ms_level { MS_LOG_ERROR, MS_LOG_WARN, MS_LOG_INFO, MS_LOG_DEBUG, MS_LOG_TRACE } ms_level;

/* Writes one line to the operator's log; natively nothing is written. Formats as for ms_fail_row. */
__attribute__((format(printf, 2, 3))) void ms_log(ms_level level, const char *format, ...);

/* What follows must be granted to the plugin, and is only asked for by plugins that call it. */

/* The time of the batch, in milliseconds since 1970: the same whenever the batch is run. Natively 0. */
int64_t ms_batch_time_ms(void);
/* An option that the query gives to this plugin; false where it does not. Natively there is none. */
bool ms_config(const char *name, ms_text *value);
/* At most 64 KiB of random bytes: the same whenever the batch is run. */
void ms_random(void *data, uint32_t length);

/* A request to a host that the operator grants. */
typedef struct ms_request {
    ms_text method, url; /* GET; with scheme and host */
    const ms_pair *headers;
    uint32_t header_count;
    ms_text body;
    uint32_t timeout_ms; /* as long as the call may take: UINT32_MAX */
} ms_request;

/* Why there is no response. */
typedef enum ms_no_response { MS_DENIED, MS_UNREACHABLE, MS_TOO_LARGE } ms_no_response;

/* A response, or why there is none. */
typedef struct ms_response {
    uint8_t is_failure;
    union {
        struct { uint16_t status; const ms_pair *headers; uint32_t header_count; ms_text body; } answer;
        struct { uint8_t why; ms_text reason; } failure;
    } as;
} ms_response;

/* Sends all requests, at most 256, several at a time, and waits for all: as many answers, in their order. Natively
 * ms_test_answers answers, if it is set, else every request is denied. */
const ms_response *ms_send(const ms_request *requests, uint32_t count);
/* A text that ends with a zero. */
ms_text ms_text_of(const char *text);
/* The value of a header, whatever the case of its name; false where there is none. */
bool ms_header(const ms_response *response, const char *name, ms_text *value);
#ifndef __wasm__
extern ms_response (*ms_test_answers)(const ms_request *request);
#endif

/* --------------------------------------------------------------------------------------------------------------- tests
 * Compiled for the machine itself (cc tests.c millstream.c), functions are called from buffers to buffers as the host
 * calls them:
 *
 *     ms_test test = ms_test_of(&ms_function_heat);
 *     ms_add_i64(ms_test_argument(&test, 0), 10);
 *     ms_add_i64(ms_test_argument(&test, 1), 10);
 *     ms_test_run(&test);
 *     assert(ms_f64_at(ms_test_result(&test, 0), 0) == 10.0); */
#ifndef __wasm__
typedef struct ms_test {
    const ms_function *function;
    ms_builder *arguments;
    ms_column *results;
    const uint32_t *input_rows; /* of a table function: for each result row its argument row */
    uint32_t rows;              /* of the result */
    const ms_row_error *row_errors;
    uint32_t row_error_count;
    const char *refusal;        /* why the whole call failed, NULL if it did not */
} ms_test;

ms_test ms_test_of(const ms_function *function);
ms_builder *ms_test_argument(ms_test *test, uint32_t number);
void ms_test_run(ms_test *test);
const ms_column *ms_test_result(const ms_test *test, uint32_t number);
/* Why a row failed, NULL if it did not. */
const char *ms_test_error(const ms_test *test, uint32_t row);
/* Gives the memory of all tests before back. */
void ms_test_end(void);

/* A source under test: every call leaves its answer here. */
typedef struct ms_source_test {
    const ms_source *source;
    ms_reading reading;         /* options and parameters of the next call */
    const char *offset, *next;  /* of the last call; NULL where it gave none */
    const ms_column *columns;   /* of read */
    uint32_t rows;
    const char *refusal;        /* why the call failed, NULL if it did not */
} ms_source_test;

/* `call` is one of the source's own functions; parameters stand in test->reading. */
void ms_source_test_run(ms_source_test *test, void (*call)(ms_reading *reading));
#endif

#ifdef __cplusplus
}
#endif
#endif
