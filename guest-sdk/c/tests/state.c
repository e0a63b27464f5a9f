/* Aggregates and processors, entered as the host enters them, but natively: cc -I.. state.c (the SDK is part of it). */
#include "../millstream.c"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void strict_accumulate(ms_call *call)
{
    int64_t *sum = ms_slots_i64(ms_result(call, 0), call->groups);
    for (uint32_t row = 0; row < call->rows; row++) {
        int64_t x = ms_i64_at(ms_argument(call, 0), row);
        if (x < 0) ms_fail_row(call, row, "%lld is negative", (long long)x);
        else sum[call->group_of_row[row]] += x;
    }
}
static void strict_merge(ms_call *call)
{
    int64_t *sum = ms_slots_i64(ms_result(call, 0), call->groups);
    for (uint32_t row = 0; row < call->rows; row++) sum[call->group_of_row[row]] += ms_i64_at(ms_state(call, 0), row);
}
static void strict_evaluate(ms_call *call)
{
    for (uint32_t row = 0; row < ms_states(call); row++) {
        int64_t sum = ms_i64_at(ms_state(call, 0), row);
        if (sum == 0) ms_fail_row(call, row, "nothing");
        else ms_add_i64(ms_result(call, 0), sum);
    }
}
static void strict_retract(ms_call *call)
{
    int64_t *sum = ms_slots_i64(ms_result(call, 0), call->groups);
    for (uint32_t group = 0; group < call->groups; group++) sum[group] = ms_i64_at(ms_state(call, 0), group);
    for (uint32_t row = 0; row < call->rows; row++) sum[call->group_of_row[row]] -= ms_i64_at(ms_argument(call, 0), row);
}
MS_RETRACTING_AGGREGATE(strict, MS_ARGUMENTS(MS_I64("x")), MS_RESULT(MS_I64("value")), MS_COLUMNS(MS_I64("sum")), "1");
MS_AGGREGATES(strict)

MS_VALUE(total, "1", MS_COLUMNS(MS_I64("n")));
MS_ITEMS(pages, "1", MS_COLUMNS(MS_TEXT("page")), 1000);
MS_MAP(seen, "1", MS_COLUMNS(MS_TEXT("page")), MS_COLUMNS(MS_I64("n")));
enum { TOTAL, PAGES, SEEN };

static void visits_process(ms_keys *keys)
{
    for (uint32_t key = 0; key < keys->count; key++) {
        ms_range rows = ms_rows_of(keys, key), stored = ms_entries_of(keys, TOTAL, key);
        int64_t n = stored.begin < stored.end ? ms_i64_at(ms_stored(keys, TOTAL, 0), stored.begin) : 0;
        for (uint32_t row = rows.begin; row < rows.end; row++) {
            ms_text page = ms_text_at(ms_input(keys, 0), row);
            ms_add_text(ms_entry(keys, PAGES, 0), page.data, page.length);
            ms_put(keys, PAGES, key);
            n++;
            if (page.length == 4) ms_fail_key(keys, key, "key %u met %.*s", key, (int)page.length, page.data);
        }
        ms_add_i64(ms_entry(keys, TOTAL, 0), n);
        ms_put(keys, TOTAL, key);
        ms_add_text(ms_removed(keys, SEEN, 0), "old", 3);
        ms_remove(keys, SEEN, key);
        ms_register_timer(keys, key, 10);
        ms_register_timer(keys, key, 20);
        ms_clear(keys, PAGES, key);
        ms_add_i64(ms_output(keys, 0), n);
        ms_emit_for(keys, key);
    }
}
MS_PROCESSOR(visits, MS_COLUMNS(MS_TEXT("user")), MS_COLUMNS(MS_TEXT("page")), MS_COLUMNS(MS_I64("n")), MS_NONE,
             MS_VARIABLES(total, pages, seen), MS_TIME_EVENT, MS_APPEND, visits_process, NULL, NULL);
MS_PROCESSORS(visits)

static batch i64s_of(const int64_t *values, uint32_t count)
{
    static const ms_field field[] = {MS_I64("x"), {NULL, NULL}};
    ms_builder *builder = make_builders(field);
    for (uint32_t i = 0; i < count; i++) ms_add_i64(builder, values[i]);
    return finish_all(builder, 1, count);
}

static batch texts_of(const char *const *values, uint32_t count)
{
    static const ms_field field[] = {MS_TEXT("x"), {NULL, NULL}};
    ms_builder *builder = make_builders(field);
    for (uint32_t i = 0; i < count; i++) ms_add_text(builder, values[i], strlen(values[i]));
    return finish_all(builder, 1, count);
}

static int64_t value_at(const batch *batch, uint32_t row)
{
    int64_t value;
    memcpy(&value, batch->buffers[1].data + row * 8, 8);
    return value;
}

static void states_are_made_merged_retracted_and_evaluated(void)
{
    const int64_t x[] = {5, -1, 7, 1};
    uint32_t groups[] = {0, 0, 1, 1}, first[] = {0, 0, 1};
    batch arguments = i64s_of(x, 4);
    answer *made = ms__accumulate(0, 3, groups, 16, 4, arguments.buffers, arguments.count);
    assert(!made->is_error && made->as.ok.values.rows == 3 && made->as.ok.row_error_count == 1);
    assert(value_at(&made->as.ok.values, 0) == 5 && value_at(&made->as.ok.values, 1) == 8);
    batch states = made->as.ok.values;
    answer *merged = ms__merge(0, 2, first, 12, 3, states.buffers, states.count);
    assert(!merged->is_error && value_at(&merged->as.ok.values, 0) == 13 && value_at(&merged->as.ok.values, 1) == 0);
    states = merged->as.ok.values;
    batch one = i64s_of(x, 1);
    answer *less = ms__retract(0, 2, states.buffers, states.count, first, 4, 1, one.buffers, one.count);
    assert(!less->is_error && value_at(&less->as.ok.values, 0) == 8);
    answer *values = ms__evaluate(0, 2, states.buffers, states.count);
    assert(!values->is_error && values->as.ok.row_error_count == 1 && values->as.ok.row_errors[0].row == 1);
    assert(values->as.ok.values.buffers[0].length == 1 && values->as.ok.values.buffers[0].data[0] == 1);
    groups[3] = 9;
    assert(((answer *)ms__accumulate(0, 3, groups, 16, 4, arguments.buffers, arguments.count))->is_error);
    assert(((answer *)ms__evaluate(1, 2, states.buffers, states.count))->is_error);
    ms__answered(values);
}

static void what_a_failed_key_gave_is_taken_back(void)
{
    const char *users[] = {"ann", "bob", "cid"}, *input[] = {"a", "b", "c", "boom", "d"};
    uint32_t key_of_row[] = {0, 0, 1, 1, 2}, key_of_total[] = {2};
    const int64_t totals[] = {41};
    invoked invoked = {0};
    invoked.call.keys = texts_of(users, 3);
    invoked.call.key_of_row = numbers(key_of_row, 5);
    invoked.call.rows = texts_of(input, 5);
    entries state[3] = {{{0}, {0}, {0}}};
    state[TOTAL].key_of_entry = numbers(key_of_total, 1);
    state[TOTAL].columns = i64s_of(totals, 1);
    state[PAGES].columns = texts_of(NULL, 0);
    state[SEEN].map_keys = texts_of(NULL, 0);
    state[SEEN].columns = i64s_of(NULL, 0);
    invoked.call.state = state;
    invoked.call.state_count = 3;
    outcome *outcome = ms__invoke(MS__PROCESS, &invoked);
    assert(!outcome->is_error && outcome->as.ok.key_error_count == 1 && outcome->as.ok.key_errors[0].row == 1);
    assert(memcmp(outcome->as.ok.key_errors[0].message.data, "key 1 met boom", 14) == 0);
    assert(outcome->as.ok.rows.rows == 2 && value_at(&outcome->as.ok.rows, 0) == 2 && value_at(&outcome->as.ok.rows, 1) == 42);
    const uint32_t others[] = {0, 2}, timers[] = {0, 0, 2, 2}, put[] = {0, 0, 2};
    assert(outcome->as.ok.key_of_row.length == 8 && memcmp(outcome->as.ok.key_of_row.data, others, 8) == 0);
    assert(outcome->as.ok.registered.key_of_timer.length == 16);
    assert(memcmp(outcome->as.ok.registered.key_of_timer.data, timers, 16) == 0);
    const variable_changes *changes = outcome->as.ok.changes;
    assert(changes[PAGES].put.key_of_entry.length == 12 && memcmp(changes[PAGES].put.key_of_entry.data, put, 12) == 0);
    assert(changes[PAGES].put.columns.rows == 3 && changes[PAGES].cleared.length == 8);
    assert(changes[SEEN].removed.rows == 2 && changes[TOTAL].put.columns.rows == 2);
    outcome = ms__invoke(MS__EXPIRE, &invoked);
    assert(outcome->is_error && outcome->as.error.fault == MS_INTERNAL);
    ms__answered(outcome);
}

static void descriptions_follow_the_declarations(void)
{
    list *list = ms__describe_processors();
    const described_processor *visits = list->items;
    assert(list->count == 1 && visits->variables.count == 3 && visits->initial.count == 0 && visits->output_modes == 1);
    const described_variable *variables = visits->variables.items;
    assert(variables[PAGES].ttl_ms.some && variables[PAGES].ttl_ms.value == 1000 && !variables[TOTAL].ttl_ms.some);
    assert(variables[SEEN].map_key.count == 1 && variables[TOTAL].map_key.count == 0);
    list = ms__describe_aggregates();
    assert(list->count == 1 && ((described_aggregate *)list->items)->retracts);
    ms__answered(list);
}

int main(void)
{
    states_are_made_merged_retracted_and_evaluated();
    what_a_failed_key_gave_is_taken_back();
    descriptions_follow_the_declarations();
    puts("ok");
    return 0;
}
