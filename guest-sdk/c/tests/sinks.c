/* Sinks, called as the host calls them. */
#include "../millstream.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static char lines[256];

static bool orders_open(ms_sink *sink)
{
    ms_text tag;
    snprintf(lines, sizeof lines, "%u/%llu", sink->partition, (unsigned long long)sink->batch);
    if (ms_option_of(sink, "away", &tag)) ms_refuse_rows(sink, MS_UNAVAILABLE, "the world is away");
    return !ms_option_of(sink, "skip", &tag);
}

static void orders_process(ms_sink *sink)
{
    for (uint32_t row = 0; row < sink->rows; row++) {
        if (ms_is_null(ms_taken(sink, 1), row)) {
            ms_fail_taken(sink, row, "%lld has no item", (long long)ms_i64_at(ms_taken(sink, 0), row));
            continue;
        }
        ms_text item = ms_text_at(ms_taken(sink, 1), row);
        size_t length = strlen(lines);
        snprintf(lines + length, sizeof lines - length, " %.*s", (int)item.length, item.data);
    }
}

static void orders_close(ms_sink *sink, const ms_text *failure)
{
    (void)sink;
    strcat(lines, failure == NULL ? " closed" : " failed");
}

static ms_text orders_prepare(ms_sink *sink)
{
    (void)sink;
    ms_text token = {lines, (uint32_t)strlen(lines)};
    return token;
}

static void orders_settle(ms_sink *sink, ms_text token)
{
    if (token.length == 0) ms_refuse_rows(sink, MS_INVALID_INPUT, "no token");
}

MS_TRANSACTIONAL_SINK(orders, MS_COLUMNS(MS_I64("id"), MS_TEXT("item?")),
                      MS_OPTIONS("url", "skip?", "away?"), MS_APPEND | MS_COMPLETE,
                      orders_open, orders_process, orders_close, orders_prepare, orders_settle, orders_settle);
MS_TRANSACTIONAL_SINKS(orders)

static uint8_t *open_with(const char *name)
{
    ms_pair given = {{name, (uint32_t)strlen(name)}, {"u", 1}};
    return ms__open(0, (char *)"q", 1, 2, 7, &given, 1, 0);
}

int main(void)
{
    assert(open_with("url")[0] == 0);
    int64_t ids[] = {1, 2};
    int32_t offsets[] = {0, 3, 3};
    uint8_t valid = 1;
    ms_buffer buffers[] = {{NULL, 0}, {(uint8_t *)ids, 16}, {&valid, 1}, {(uint8_t *)offsets, 12}, {(uint8_t *)"tea", 3}};
    struct { uint8_t is_error; struct { ms_row_error *items; uint32_t count; } errors; } *taken = ms__take(2, buffers, 5);
    assert(taken->is_error == 0 && taken->errors.count == 1 && taken->errors.items[0].row == 1);
    assert(memcmp(taken->errors.items[0].message.data, "2 has no item", 13) == 0);
    struct { uint8_t is_error; ms_buffer token; } *prepared = ms__prepare();
    assert(prepared->is_error == 0 && prepared->token.length == 7 && memcmp(prepared->token.data, "2/7 tea", 7) == 0);
    assert(((uint8_t *)ms__close(0, NULL, 0))[0] == 0);
    assert(strcmp(lines, "2/7 tea closed") == 0);
    assert(((uint8_t *)ms__close(0, NULL, 0))[0] == 1);
    assert(open_with("skip")[0] == 0);
    assert(((uint8_t *)ms__close(1, (char *)"why", 3))[0] == 0);
    assert(strcmp(lines, "2/7 failed") == 0);
    assert(open_with("away")[0] == 1);
    assert(((uint8_t *)ms__settle(true, 0, (char *)"q", 1, 0, 0, NULL, 0, (char *)"t", 1))[0] == 0);
    assert(((uint8_t *)ms__settle(false, 0, (char *)"q", 1, 0, 0, NULL, 0, NULL, 0))[0] == 1);
    assert(((uint8_t *)ms__settle(false, 1, (char *)"q", 1, 0, 0, NULL, 0, NULL, 0))[0] == 1);
    struct { void *items; uint32_t count; } *described = ms__describe_sinks();
    assert(described->count == 1);
    ms_test_end();
    puts("sinks: ok");
}
