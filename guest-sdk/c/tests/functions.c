/* Functions, called as the exports of a component call them, but natively: cc -I.. functions.c ../millstream.c */
#include "millstream.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

MS_SCALAR(add, MS_ARGUMENTS(MS_I64("a"), MS_I32("b")), MS_RESULT(MS_I64("value")))
{
    const int64_t *a = ms_i64s(ms_argument(call, 0));
    const int32_t *b = ms_i32s(ms_argument(call, 1));
    int64_t *value = ms_slots_i64(ms_result(call, 0), call->rows);
    for (uint32_t row = 0; row < call->rows; row++) value[row] = a[row] + b[row];
}

MS_SCALAR(or_zero, MS_ARGUMENTS(MS_I64("x?")), MS_RESULT(MS_I64("value")))
{
    const ms_column *x = ms_argument(call, 0);
    for (uint32_t row = 0; row < call->rows; row++) {
        int64_t value = ms_is_null(x, row) ? 0 : ms_i64_at(x, row);
        if (value == 1) ms_add_null(ms_result(call, 0));
        else ms_add_i64(ms_result(call, 0), value);
    }
}

MS_SCALAR(digit, MS_ARGUMENTS(MS_TEXT("text")), MS_RESULT(MS_U8("value")))
{
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_text text = ms_text_at(ms_argument(call, 0), row);
        if (text.length == 1 && text.data[0] >= '0' && text.data[0] <= '9') {
            ms_add_u8(ms_result(call, 0), (uint8_t)(text.data[0] - '0'));
        } else if (text.length > 9) {
            ms_refuse(call, MS_INVALID_INPUT, "row %u is much too long", row);
            return;
        } else {
            ms_fail_row(call, row, "`%.*s` is no digit", (int)text.length, text.data);
        }
    }
}

MS_TABLE(parts, MS_ARGUMENTS(MS_TEXT("text")), MS_COLUMNS(MS_TEXT("part"), MS_BOOL("last?")), MS_VOLATILE)
{
    for (uint32_t row = 0; row < call->rows; row++) {
        ms_text text = ms_text_at(ms_argument(call, 0), row);
        uint32_t begin = 0;
        for (uint32_t i = 0; i <= text.length; i++) {
            if (i < text.length && text.data[i] == '!') {
                ms_fail_row(call, row, "a `!` at %u", i);
                break;
            }
            if (i < text.length && text.data[i] != ',') continue;
            ms_add_text(ms_result(call, 0), text.data + begin, i - begin);
            if (i == begin) ms_add_null(ms_result(call, 1));
            else ms_add_bool(ms_result(call, 1), i == text.length);
            ms_emit(call, row);
            begin = i + 1;
        }
    }
}

MS_SCALAR(nested, MS_ARGUMENTS(MS_LIST("tags", MS_STRUCT("item?", MS_I16("n?"), MS_DECIMAL("d", 38, 2)))),
          MS_RESULT(MS_LIST("value", MS_STRUCT("item?", MS_I16("n?"), MS_DECIMAL("d", 38, 2)))))
{
    for (uint32_t row = 0; row < call->rows; row++) ms_add_copy(ms_result(call, 0), ms_argument(call, 0), row);
}

MS_SCALAR(short_answer, MS_ARGUMENTS(MS_I64("x")), MS_RESULT(MS_I64("value")))
{
    ms_add_i64(ms_result(call, 0), 1);
}

MS_SCALAR(constant, MS_ARGUMENTS(), MS_RESULT(MS_F32("value")))
{
    *ms_slots_f32(ms_result(call, 0), 1) = 1.5f;
}

static void mean_accumulate(ms_call *call)
{
    int64_t *sum = ms_slots_i64(ms_result(call, 0), call->groups);
    int64_t *count = ms_slots_i64(ms_result(call, 1), call->groups);
    for (uint32_t row = 0; row < call->rows; row++) {
        sum[call->group_of_row[row]] += ms_i64_at(ms_argument(call, 0), row);
        count[call->group_of_row[row]]++;
    }
}
static void mean_merge(ms_call *call)
{
    int64_t *sum = ms_slots_i64(ms_result(call, 0), call->groups);
    int64_t *count = ms_slots_i64(ms_result(call, 1), call->groups);
    for (uint32_t row = 0; row < call->rows; row++) {
        sum[call->group_of_row[row]] += ms_i64_at(ms_state(call, 0), row);
        count[call->group_of_row[row]] += ms_i64_at(ms_state(call, 1), row);
    }
}
static void mean_evaluate(ms_call *call)
{
    for (uint32_t row = 0; row < ms_states(call); row++) {
        int64_t count = ms_i64_at(ms_state(call, 1), row);
        if (count == 0) ms_fail_row(call, row, "no rows");
        else ms_add_f64(ms_result(call, 0), (double)ms_i64_at(ms_state(call, 0), row) / (double)count);
    }
}
MS_AGGREGATE(mean, MS_ARGUMENTS(MS_I64("x")), MS_RESULT(MS_F64("value")), MS_COLUMNS(MS_I64("sum"), MS_I64("count")), "mean/1");

MS_FUNCTIONS(add, or_zero, digit, parts, nested, short_answer, constant)
MS_AGGREGATES(mean)

static bool says(ms_text text, const char *wanted)
{
    return text.length == strlen(wanted) && memcmp(text.data, wanted, text.length) == 0;
}

static void values_nulls_and_slots(void)
{
    ms_test test = ms_test_of(&ms_function_add);
    for (int i = 0; i < 1000; i++) ms_add_i64(ms_test_argument(&test, 0), INT64_MAX - 1000 + i), ms_add_i32(ms_test_argument(&test, 1), -i);
    ms_test_run(&test);
    for (uint32_t i = 0; i < 1000; i++) assert(ms_i64_at(ms_test_result(&test, 0), i) == INT64_MAX - 1000);

    test = ms_test_of(&ms_function_or_zero);
    for (int i = 0; i < 100; i++) {
        if (i % 3 == 0) ms_add_null(ms_test_argument(&test, 0));
        else ms_add_i64(ms_test_argument(&test, 0), i % 3);
    }
    ms_test_run(&test);
    for (uint32_t i = 0; i < 100; i++) {
        assert(ms_is_null(ms_test_result(&test, 0), i) == (i % 3 == 1));
        if (i % 3 != 1) assert(ms_i64_at(ms_test_result(&test, 0), i) == (i % 3 == 0 ? 0 : 2));
    }

    test = ms_test_of(&ms_function_constant);
    ms_test_run(&test);
    assert(test.rows == 1 && ms_f32_at(ms_test_result(&test, 0), 0) == 1.5f);
    ms_test_end();
}

static void errors_of_rows_and_calls(void)
{
    ms_test test = ms_test_of(&ms_function_digit);
    ms_add_text(ms_test_argument(&test, 0), "7", 1);
    ms_add_text(ms_test_argument(&test, 0), "x", 1);
    ms_add_text(ms_test_argument(&test, 0), "9", 1);
    ms_test_run(&test);
    assert(ms_u8_at(ms_test_result(&test, 0), 2) == 9 && ms_is_null(ms_test_result(&test, 0), 1));
    assert(strcmp(ms_test_error(&test, 1), "`x` is no digit") == 0 && ms_test_error(&test, 0) == NULL);

    test = ms_test_of(&ms_function_digit);
    ms_add_text(ms_test_argument(&test, 0), "0123456789", 10);
    ms_test_run(&test);
    assert(strcmp(test.refusal, "row 0 is much too long") == 0);

    test = ms_test_of(&ms_function_short_answer);
    ms_add_i64(ms_test_argument(&test, 0), 1), ms_add_i64(ms_test_argument(&test, 0), 2);
    ms_test_run(&test);
    assert(strcmp(test.refusal, "`short_answer` gave 1 values in `value` where there are 2 rows") == 0);
    ms_test_end();
}

static void rows_of_a_failed_row_are_taken_back(void)
{
    const char *lines[] = {"a,b", "c,d!,e", "", "f"};
    ms_test test = ms_test_of(&ms_function_parts);
    for (int i = 0; i < 4; i++) ms_add_text(ms_test_argument(&test, 0), lines[i], strlen(lines[i]));
    ms_test_run(&test);
    assert(test.rows == 4 && test.row_error_count == 1 && strcmp(ms_test_error(&test, 1), "a `!` at 3") == 0);
    const uint32_t wanted[] = {0, 0, 2, 3};
    assert(memcmp(test.input_rows, wanted, sizeof wanted) == 0);
    const ms_column *part = ms_test_result(&test, 0), *last = ms_test_result(&test, 1);
    assert(says(ms_text_at(part, 1), "b") && says(ms_text_at(part, 2), "") && says(ms_text_at(part, 3), "f"));
    assert(!ms_bool_at(last, 0) && ms_bool_at(last, 1) && ms_is_null(last, 2) && ms_bool_at(last, 3));
    ms_test_end();
}

static void nested_columns_are_copied_whole(void)
{
    ms_test test = ms_test_of(&ms_function_nested);
    ms_builder *tags = ms_test_argument(&test, 0), *item = ms_element(tags);
    for (int row = 0; row < 20; row++) {
        for (int i = 0; i < row % 4; i++) {
            if (i == 2) {
                ms_add_null(item);
                continue;
            }
            if (i == 1) ms_add_null(ms_member(item, 0));
            else ms_add_i16(ms_member(item, 0), (int16_t)row);
            ms_add_decimal(ms_member(item, 1), (ms_decimal)row << 100);
            ms_add_struct(item);
        }
        ms_add_list(tags);
    }
    ms_test_run(&test);
    const ms_column *value = ms_test_result(&test, 0), *items = ms_child(value, 0);
    for (uint32_t row = 0; row < 20; row++) {
        ms_range range = ms_list_at(value, row);
        assert(range.end - range.begin == row % 4);
        if (row % 4 == 0) continue;
        assert(ms_i16_at(ms_child(items, 0), range.begin) == (int16_t)row);
        assert(ms_decimal_at(ms_child(items, 1), range.begin) == (ms_decimal)row << 100);
        if (row % 4 == 3) assert(ms_is_null(items, range.begin + 2) && ms_is_null(ms_child(items, 0), range.begin + 1));
    }
    ms_test_end();
}

int main(void)
{
    values_nulls_and_slots();
    errors_of_rows_and_calls();
    rows_of_a_failed_row_are_taken_back();
    nested_columns_are_copied_whole();
    puts("ok");
    return 0;
}
