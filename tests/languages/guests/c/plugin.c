/* The plugin of tests/languages in C. */
#include "millstream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EVERYTHING                                                                                                      \
    MS_BOOL("flag"), MS_I8("small?"), MS_TEXT("text?"), MS_LIST("numbers", MS_I64("item")),                             \
        MS_STRUCT("inner", MS_TIMESTAMP("at"), MS_BINARY("bytes"))

/* ------------------------------------------------------------------------------------------------------------- scalars */

#define ECHO(name, type, ...)                                                                                           \
    MS_SCALAR(name, MS_ARGUMENTS(type("x?" __VA_OPT__(, ) __VA_ARGS__)),                                                \
              MS_RESULT(type("value" __VA_OPT__(, ) __VA_ARGS__)))                                                      \
    {                                                                                                                   \
        const ms_column *x = ms_argument(call, 0);                                                                      \
        for (uint32_t row = 0; row < call->rows; row++) {                                                               \
            if (ms_is_whole(x, row)) ms_add_copy(ms_result(call, 0), x, row);                                           \
            else ms_add_null(ms_result(call, 0));                                                                       \
        }                                                                                                               \
    }

ECHO(echo_bool, MS_BOOL)
ECHO(echo_i8, MS_I8)
ECHO(echo_u8, MS_U8)
ECHO(echo_i16, MS_I16)
ECHO(echo_u16, MS_U16)
ECHO(echo_i32, MS_I32)
ECHO(echo_u32, MS_U32)
ECHO(echo_i64, MS_I64)
ECHO(echo_u64, MS_U64)
ECHO(echo_f32, MS_F32)
ECHO(echo_f64, MS_F64)
ECHO(echo_decimal, MS_DECIMAL, 38, 10)
ECHO(echo_utf8, MS_TEXT)
ECHO(echo_binary, MS_BINARY)
ECHO(echo_date, MS_DATE)
ECHO(echo_timestamp, MS_TIMESTAMP)
ECHO(echo_local_timestamp, MS_LOCAL_TIMESTAMP)
ECHO(echo_list, MS_LIST, MS_TEXT("item?"))
ECHO(echo_lists, MS_LIST, MS_LIST("item?", MS_F64("item?")))
ECHO(echo_struct, MS_STRUCT, EVERYTHING)
ECHO(echo_structs, MS_LIST, MS_STRUCT("item?", EVERYTHING))

MS_SCALAR(add, MS_ARGUMENTS(MS_I64("a"), MS_I64("b")), MS_RESULT(MS_I64("value")))
{
    const int64_t *a = ms_i64s(ms_argument(call, 0)), *b = ms_i64s(ms_argument(call, 1));
    int64_t *value = ms_slots_i64(ms_result(call, 0), call->rows);
    for (uint32_t row = 0; row < call->rows; row++) {
        if (!__builtin_add_overflow(a[row], b[row], &value[row])) continue;
        value[row] = 0;
        ms_fail_row(call, row, "%lld + %lld does not fit", (long long)a[row], (long long)b[row]);
    }
}

MS_SCALAR(heat, MS_ARGUMENTS(MS_I64("level"), MS_I64("visits")), MS_RESULT(MS_F64("value")))
{
    const int64_t *level = ms_i64s(ms_argument(call, 0)), *visits = ms_i64s(ms_argument(call, 1));
    double *value = ms_slots_f64(ms_result(call, 0), call->rows);
    for (uint32_t row = 0; row < call->rows; row++) value[row] = 0.1 * (double)level[row] + 0.9 * (double)visits[row];
}

MS_SCALAR(shout, MS_ARGUMENTS(MS_TEXT("text")), MS_RESULT(MS_TEXT("value")))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_text text = ms_text_at(ms_argument(call, 0), row);
        char *loud = ms_allocate(text.length + 1);
        for (uint32_t i = 0; i < text.length; i++) {
            char c = text.data[i];
            loud[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
        }
        loud[text.length] = '!';
        ms_add_text(ms_result(call, 0), loud, text.length + 1);
    }
}

static int64_t code_points(ms_text text)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < text.length; i++) count += (text.data[i] & 0xc0) != 0x80;
    return count;
}

MS_SCALAR(length, MS_ARGUMENTS(MS_TEXT("text")), MS_RESULT(MS_I64("value")))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_add_i64(ms_result(call, 0), code_points(ms_text_at(ms_argument(call, 0), row)));
    }
}

MS_SCALAR(reversed, MS_ARGUMENTS(MS_BINARY("x")), MS_RESULT(MS_BINARY("value")))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_text bytes = ms_binary_at(ms_argument(call, 0), row);
        char *back = ms_allocate(bytes.length);
        for (uint32_t i = 0; i < bytes.length; i++) back[i] = bytes.data[bytes.length - 1 - i];
        ms_add_binary(ms_result(call, 0), back, bytes.length);
    }
}

MS_SCALAR(negate, MS_ARGUMENTS(MS_DECIMAL("x", 38, 10)), MS_RESULT(MS_DECIMAL("value", 38, 10)))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_add_decimal(ms_result(call, 0), -ms_decimal_at(ms_argument(call, 0), row));
    }
}

MS_SCALAR(total, MS_ARGUMENTS(MS_LIST("numbers", MS_I64("item?"))), MS_RESULT(MS_I64("value")))
{
    const ms_column *numbers = ms_argument(call, 0), *items = ms_child(numbers, 0);
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_range range = ms_list_at(numbers, row);
        uint64_t sum = 0;
        bool any = false;
        for (uint32_t i = range.begin; i < range.end; i++) {
            if (ms_is_null(items, i)) continue;
            sum += (uint64_t)ms_i64_at(items, i);
            any = true;
        }
        if (any) ms_add_i64(ms_result(call, 0), (int64_t)sum);
        else ms_add_null(ms_result(call, 0));
    }
}

MS_SCALAR(or_zero, MS_ARGUMENTS(MS_I64("x?")), MS_RESULT(MS_I64("value")))
{
    const ms_column *x = ms_argument(call, 0);
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_add_i64(ms_result(call, 0), ms_is_null(x, row) ? 0 : ms_i64_at(x, row));
    }
}

MS_SCALAR(null_if_odd, MS_ARGUMENTS(MS_I64("x")), MS_RESULT(MS_I64("value")))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        int64_t x = ms_i64_at(ms_argument(call, 0), row);
        if (x % 2 == 0) ms_add_i64(ms_result(call, 0), x);
        else ms_add_null(ms_result(call, 0));
    }
}

MS_SCALAR(seven, MS_ARGUMENTS(), MS_RESULT(MS_I32("value")))
{
    for (uint32_t row = 0; row < call->rows; row++) ms_add_i32(ms_result(call, 0), 7);
}

MS_SCALAR(repeated, MS_ARGUMENTS(MS_I64("n")), MS_RESULT(MS_TEXT("value")))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        int64_t n = ms_i64_at(ms_argument(call, 0), row);
        size_t length = n < 0 ? 0 : (size_t)n;
        char *text = ms_allocate(length);
        memset(text, 'x', length);
        ms_add_text(ms_result(call, 0), text, length);
    }
}

/* Those that do not like 13. */
#define PICKY(name, at_13)                                                                                              \
    MS_SCALAR(name, MS_ARGUMENTS(MS_I64("x")), MS_RESULT(MS_I64("value")))                                              \
    {                                                                                                                   \
        for (uint32_t row = 0; row < call->rows; row++) {                                                               \
            int64_t x = ms_i64_at(ms_argument(call, 0), row);                                                           \
            if (x == 13) {                                                                                              \
                at_13;                                                                                                  \
            } else {                                                                                                    \
                ms_add_i64(ms_result(call, 0), x);                                                                      \
            }                                                                                                           \
        }                                                                                                               \
    }

static void loop(void)
{
    for (volatile int forever = 1; forever;) {}
}

static void eat(void)
{
    for (;;) memset(ms_allocate(1 << 20), 'x', 1 << 20);
}

static volatile int64_t sink;
__attribute__((noinline)) static int64_t dive(int64_t depth)
{
    volatile char room[256];
    room[depth % 256] = (char)depth;
    sink = depth;
    return dive(depth + 1) + room[(depth + 1) % 256];
}

PICKY(picky, ms_fail_row(call, row, "13 is refused"))
PICKY(throws, ms_panic("thrown on purpose: %lld", (long long)x))
PICKY(refuses, ms_refuse(call, MS_UNAVAILABLE, "the world is away"); return)
PICKY(loops, loop())
PICKY(eats, eat())
PICKY(dives, ms_add_i64(ms_result(call, 0), dive(x)))

MS_SCALAR(logs, MS_ARGUMENTS(MS_TEXT("text")), MS_RESULT(MS_I64("value")))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_text text = ms_text_at(ms_argument(call, 0), row);
        ms_log(MS_LOG_INFO, "%.*s", (int)text.length, text.data);
        ms_add_i64(ms_result(call, 0), code_points(text));
    }
}

/* -------------------------------------------------------------------------------------------------------------- tables */

/* The next word from a place on; false when there is none. */
static bool next_word(ms_text line, uint32_t *at, ms_text *word)
{
    while (*at < line.length && line.data[*at] == ' ') ++*at;
    word->data = line.data + *at;
    while (*at < line.length && line.data[*at] != ' ') ++*at;
    word->length = (uint32_t)(line.data + *at - word->data);
    return word->length > 0;
}

MS_TABLE(words, MS_ARGUMENTS(MS_TEXT("line")), MS_COLUMNS(MS_TEXT("word")))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_text line = ms_text_at(ms_argument(call, 0), row), word;
        for (uint32_t at = 0; next_word(line, &at, &word);) {
            ms_add_text(ms_result(call, 0), word.data, word.length);
            ms_emit(call, row);
        }
    }
}

MS_TABLE(numbered, MS_ARGUMENTS(MS_TEXT("line")), MS_COLUMNS(MS_I32("position"), MS_TEXT("word?")))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_text line = ms_text_at(ms_argument(call, 0), row), word;
        int32_t position = 0;
        for (uint32_t at = 0; next_word(line, &at, &word);) {
            ms_add_i32(ms_result(call, 0), position++);
            if (word.length == 4 && memcmp(word.data, "null", 4) == 0) ms_add_null(ms_result(call, 1));
            else ms_add_text(ms_result(call, 1), word.data, word.length);
            ms_emit(call, row);
        }
    }
}

MS_TABLE(elements, MS_ARGUMENTS(MS_LIST("numbers", MS_I64("item?"))), MS_COLUMNS(MS_I64("element?")))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_range range = ms_list_at(ms_argument(call, 0), row);
        for (uint32_t i = range.begin; i < range.end; i++) {
            ms_add_copy(ms_result(call, 0), ms_child(ms_argument(call, 0), 0), i);
            ms_emit(call, row);
        }
    }
}

MS_TABLE(countdown, MS_ARGUMENTS(MS_I64("n")), MS_COLUMNS(MS_I64("value")))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        int64_t n = ms_i64_at(ms_argument(call, 0), row);
        if (n < 0) ms_fail_row(call, row, "%lld is negative", (long long)n);
        for (; n > 0; n--) {
            ms_add_i64(ms_result(call, 0), n);
            ms_emit(call, row);
        }
    }
}

MS_TABLE(echo_rows, MS_ARGUMENTS(MS_STRUCT("x", EVERYTHING)), MS_COLUMNS(EVERYTHING))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        if (!ms_is_whole(ms_argument(call, 0), row)) continue;
        for (uint32_t i = 0; i < call->result_count; i++) {
            ms_add_copy(ms_result(call, i), ms_child(ms_argument(call, 0), i), row);
        }
        ms_emit(call, row);
    }
}

/* ---------------------------------------------------------------------------------------------------------- aggregates */

static void mean_accumulate(ms_call *call)
{
    int64_t *count = ms_slots_i64(ms_result(call, 0), call->groups);
    double *sum = ms_slots_f64(ms_result(call, 1), call->groups);
    const double *x = ms_f64s(ms_argument(call, 0));
    for (uint32_t row = 0; row < call->rows; row++) {
        count[call->group_of_row[row]]++;
        sum[call->group_of_row[row]] += x[row];
    }
}

static void mean_merge(ms_call *call)
{
    int64_t *count = ms_slots_i64(ms_result(call, 0), call->groups);
    double *sum = ms_slots_f64(ms_result(call, 1), call->groups);
    const int64_t *counts = ms_i64s(ms_state(call, 0));
    const double *sums = ms_f64s(ms_state(call, 1));
    for (uint32_t row = 0; row < call->rows; row++) {
        count[call->group_of_row[row]] += counts[row];
        sum[call->group_of_row[row]] += sums[row];
    }
}

static void mean_retract(ms_call *call)
{
    int64_t *count = ms_slots_i64(ms_result(call, 0), call->groups);
    double *sum = ms_slots_f64(ms_result(call, 1), call->groups);
    for (uint32_t group = 0; group < call->groups; group++) {
        count[group] = ms_i64_at(ms_state(call, 0), group);
        sum[group] = ms_f64_at(ms_state(call, 1), group);
    }
    const double *x = ms_f64s(ms_argument(call, 0));
    for (uint32_t row = 0; row < call->rows; row++) {
        count[call->group_of_row[row]]--;
        sum[call->group_of_row[row]] -= x[row];
    }
}

static void mean_evaluate(ms_call *call)
{
    for (uint32_t row = 0; row < ms_states(call); row++) {
        int64_t count = ms_i64_at(ms_state(call, 0), row);
        if (count == 0) ms_add_null(ms_result(call, 0));
        else ms_add_f64(ms_result(call, 0), ms_f64_at(ms_state(call, 1), row) / (double)count);
    }
}

MS_RETRACTING_AGGREGATE(mean, MS_ARGUMENTS(MS_F64("x")), MS_RESULT(MS_F64("value")),
                        MS_COLUMNS(MS_I64("count"), MS_F64("sum")), "1");

/* Of texts, and of states, which are texts: the longest of each group. */
static void longest_of(ms_call *call, const ms_column *texts)
{
    int64_t *most = ms_allocate(call->groups * sizeof *most);
    uint32_t *row_of_group = ms_allocate(call->groups * sizeof *row_of_group);
    for (uint32_t group = 0; group < call->groups; group++) most[group] = -1;
    for (uint32_t row = 0; row < call->rows; row++) {
        if (ms_is_null(texts, row)) continue;
        int64_t length = code_points(ms_text_at(texts, row));
        uint32_t group = call->group_of_row[row];
        if (length <= most[group]) continue;
        most[group] = length;
        row_of_group[group] = row;
    }
    for (uint32_t group = 0; group < call->groups; group++) {
        if (most[group] < 0) ms_add_null(ms_result(call, 0));
        else ms_add_copy(ms_result(call, 0), texts, row_of_group[group]);
    }
}

static void longest_accumulate(ms_call *call) { longest_of(call, ms_argument(call, 0)); }
static void longest_merge(ms_call *call) { longest_of(call, ms_state(call, 0)); }
static void longest_evaluate(ms_call *call)
{
    for (uint32_t row = 0; row < ms_states(call); row++) ms_add_copy(ms_result(call, 0), ms_state(call, 0), row);
}

MS_AGGREGATE(longest, MS_ARGUMENTS(MS_TEXT("text")), MS_RESULT(MS_TEXT("value")), MS_COLUMNS(MS_TEXT("text?")), "1");

static void strict_sum_accumulate(ms_call *call)
{
    int64_t *sum = ms_slots_i64(ms_result(call, 0), call->groups);
    for (uint32_t row = 0; row < call->rows; row++) {
        int64_t x = ms_i64_at(ms_argument(call, 0), row);
        if (x < 0) ms_fail_row(call, row, "%lld is negative", (long long)x);
        else sum[call->group_of_row[row]] += x;
    }
}

static void strict_sum_merge(ms_call *call)
{
    int64_t *sum = ms_slots_i64(ms_result(call, 0), call->groups);
    for (uint32_t row = 0; row < call->rows; row++) sum[call->group_of_row[row]] += ms_i64_at(ms_state(call, 0), row);
}

static void strict_sum_evaluate(ms_call *call)
{
    for (uint32_t row = 0; row < ms_states(call); row++) ms_add_copy(ms_result(call, 0), ms_state(call, 0), row);
}

MS_AGGREGATE(strict_sum, MS_ARGUMENTS(MS_I64("x")), MS_RESULT(MS_I64("value")), MS_COLUMNS(MS_I64("sum")), "1");

/* ----------------------------------------------------------------------------------------------------------- processor */

MS_VALUE(visits, "1", MS_COLUMNS(MS_I64("n")));
MS_ITEMS(history, "1", MS_COLUMNS(MS_TEXT("page")));
MS_MAP(per_page, "1", MS_COLUMNS(MS_TEXT("page")), MS_COLUMNS(MS_I64("n")));
enum { VISITS, HISTORY, PER_PAGE };

/* A page and how often it was seen by one key. */
typedef struct page {
    ms_text name;
    int64_t visits;
    bool is_new;
} page;

static bool same_text(ms_text a, ms_text b) { return a.length == b.length && memcmp(a.data, b.data, a.length) == 0; }

static int64_t visits_of(const ms_keys *keys, uint32_t key)
{
    ms_range range = ms_entries_of(keys, VISITS, key);
    return range.begin < range.end ? ms_i64_at(ms_stored(keys, VISITS, 0), range.begin) : 0;
}

static void put_row(ms_keys *keys, uint32_t key, const char *event, int64_t visits, uint32_t pages, const ms_text *last)
{
    ms_add_text(ms_output(keys, 0), event, strlen(event));
    ms_add_i64(ms_output(keys, 1), visits);
    ms_add_i64(ms_output(keys, 2), pages);
    if (last == NULL) ms_add_null(ms_output(keys, 3));
    else ms_add_text(ms_output(keys, 3), last->data, last->length);
    ms_emit_for(keys, key);
}

static void put_visits(ms_keys *keys, uint32_t key, int64_t visits)
{
    ms_add_i64(ms_entry(keys, VISITS, 0), visits);
    ms_put(keys, VISITS, key);
}

static void visits_of_key(ms_keys *keys, uint32_t key)
{
    ms_range rows = ms_rows_of(keys, key), stored = ms_entries_of(keys, PER_PAGE, key);
    uint32_t known = stored.end - stored.begin, count = known;
    page *pages = ms_allocate((known + rows.end - rows.begin) * sizeof *pages);
    for (uint32_t i = 0; i < known; i++) {
        pages[i].name = ms_text_at(ms_stored_map_key(keys, PER_PAGE, 0), stored.begin + i);
        pages[i].visits = ms_i64_at(ms_stored(keys, PER_PAGE, 0), stored.begin + i);
    }
    int64_t visits = visits_of(keys, key), latest = INT64_MIN;
    ms_text last = {0};
    for (uint32_t row = rows.begin; row < rows.end; row++) {
        last = ms_text_at(ms_input(keys, 0), row);
        if (last.length == 4 && memcmp(last.data, "boom", 4) == 0) {
            ms_text user = ms_text_at(ms_key(keys, 0), key);
            ms_fail_key(keys, key, "%.*s met boom", (int)user.length, user.data);
            return;
        }
        int64_t at = ms_i64_at(ms_input(keys, 1), row);
        if (at > latest) latest = at;
        visits++;
        ms_add_text(ms_entry(keys, HISTORY, 0), last.data, last.length);
        ms_put(keys, HISTORY, key);
        uint32_t place = 0;
        while (place < count && !same_text(pages[place].name, last)) place++;
        if (place == count) pages[count++].name = last;
        pages[place].visits++;
        pages[place].is_new = true;
    }
    put_visits(keys, key, visits);
    for (uint32_t i = 0; i < count; i++) {
        if (!pages[i].is_new) continue;
        ms_add_text(ms_entry_map_key(keys, PER_PAGE, 0), pages[i].name.data, pages[i].name.length);
        ms_add_i64(ms_entry(keys, PER_PAGE, 0), pages[i].visits);
        ms_put(keys, PER_PAGE, key);
    }
    ms_range timers = ms_timers_of(keys, key);
    for (uint32_t i = timers.begin; i < timers.end; i++) ms_delete_timer(keys, key, keys->timers.due[i]);
    int64_t ms = latest / 1000 - (latest % 1000 < 0);
    ms_register_timer(keys, key, ms + 10000);
    put_row(keys, key, "seen", visits, count, &last);
}

static void visits_process(ms_keys *keys)
{
    for (uint32_t key = 0; key < keys->count; key++) visits_of_key(keys, key);
}

static void visits_expire(ms_keys *keys)
{
    for (uint32_t key = 0; key < keys->count; key++) {
        ms_range due = ms_due_of(keys, key), history = ms_entries_of(keys, HISTORY, key);
        if (due.begin == due.end) continue;
        ms_range pages = ms_entries_of(keys, PER_PAGE, key);
        ms_text last = {0};
        if (history.begin < history.end) last = ms_text_at(ms_stored(keys, HISTORY, 0), history.end - 1);
        put_row(keys, key, "gone", visits_of(keys, key), pages.end - pages.begin, history.begin < history.end ? &last : NULL);
        for (uint32_t variable = VISITS; variable <= PER_PAGE; variable++) ms_clear(keys, variable, key);
    }
}

static void visits_initialise(ms_keys *keys)
{
    for (uint32_t key = 0; key < keys->count; key++) {
        ms_range rows = ms_rows_of(keys, key);
        if (rows.begin < rows.end) put_visits(keys, key, ms_i64_at(ms_input(keys, 0), rows.end - 1));
    }
}

MS_PROCESSOR(visits, MS_COLUMNS(MS_TEXT("user")), MS_COLUMNS(MS_TEXT("page"), MS_TIMESTAMP("at")),
             MS_COLUMNS(MS_TEXT("event"), MS_I64("visits"), MS_I64("pages"), MS_TEXT("last?")),
             MS_COLUMNS(MS_I64("visits")), MS_VARIABLES(visits, history, per_page), MS_TIME_EVENT, MS_APPEND | MS_UPDATE,
             visits_process, visits_expire, visits_initialise);

MS_FUNCTIONS(echo_bool, echo_i8, echo_u8, echo_i16, echo_u16, echo_i32, echo_u32, echo_i64, echo_u64, echo_f32, echo_f64,
             echo_decimal, echo_utf8, echo_binary, echo_date, echo_timestamp, echo_local_timestamp, echo_list, echo_lists,
             echo_struct, echo_structs, add, heat, shout, length, reversed, negate, total, or_zero, null_if_odd, seven,
             repeated, picky, throws, refuses, loops, eats, dives, logs, words, numbered, elements, countdown, echo_rows)
MS_AGGREGATES(mean, longest, strict_sum)
MS_PROCESSORS(visits)

/* ------------------------------------------------------------------------------------------------------------- the source */

static bool numbered(ms_reading *reading, ms_text text, uint64_t *number)
{
    if (ms_number_of(text, number)) return true;
    ms_refuse_reading(reading, MS_INTERNAL, "`%.*s` is no number", (int)text.length, text.data);
    return false;
}

static bool ledger_option(ms_reading *reading, const char *name, uint64_t *number)
{
    ms_text text;
    return ms_option(reading, name, &text) && numbered(reading, text, number);
}

static void ledger_initial(ms_reading *reading) { ms_set_offset(reading, "0"); }

static void ledger_latest(ms_reading *reading)
{
    uint64_t start, end;
    if (!numbered(reading, reading->start, &start) || !ledger_option(reading, "rows", &end)) return;
    if (reading->has_until && !numbered(reading, reading->until, &end)) return;
    if (reading->has_max_rows && end > start && end - start > reading->max_rows) end = start + reading->max_rows;
    ms_set_offset(reading, "%llu", (unsigned long long)end);
}

static void ledger_read(ms_reading *reading)
{
    uint64_t begin, end, away;
    if (!numbered(reading, reading->has_cursor ? reading->cursor : reading->start, &begin)) return;
    if (!numbered(reading, reading->end, &end)) return;
    uint64_t last = end < begin + 1000 ? end : begin + 1000;
    if (ledger_option(reading, "away", &away) && begin <= away && away < last) {
        ms_refuse_reading(reading, MS_UNAVAILABLE, "row %llu is away", (unsigned long long)away);
        return;
    }
    for (uint64_t n = begin; n < last; n++) {
        char label[32] = "row ", *digit = label + sizeof label;
        ms_add_i64(ms_read_column(reading, 0), (int64_t)n);
        if (n % 3 == 0) {
            ms_add_null(ms_read_column(reading, 1));
        } else {
            for (uint64_t rest = n; rest > 0; rest /= 10) *--digit = (char)('0' + rest % 10);
            size_t digits = (size_t)(label + sizeof label - digit);
            memmove(label + 4, digit, digits);
            ms_add_text(ms_read_column(reading, 1), label, 4 + digits);
        }
        ms_add_i64(ms_read_column(reading, 2), (int64_t)n * 1000000);
    }
    if (last < end) ms_next_page(reading, "%llu", (unsigned long long)last);
}

static void ledger_commit(ms_reading *reading)
{
    uint64_t rows, offset;
    if (!ledger_option(reading, "rows", &rows) || !numbered(reading, reading->end, &offset)) return;
    if (offset > rows) {
        ms_refuse_reading(reading, MS_INVALID_INPUT, "there are %llu rows, not %llu", (unsigned long long)rows,
                          (unsigned long long)offset);
    }
}

MS_SOURCE(ledger, MS_COLUMNS(MS_I64("n"), MS_TEXT("label?"), MS_TIMESTAMP("at")), MS_OPTIONS("rows", "away?"), ledger_initial,
          ledger_latest, ledger_read, ledger_commit);
MS_SOURCES(ledger)
