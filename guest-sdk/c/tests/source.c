/* A source, natively: offsets, pages, refusals. */
#include "../millstream.c"

#include <assert.h>
#include <string.h>

static bool number_option(ms_reading *reading, const char *name, uint64_t *number)
{
    ms_text text;
    return ms_option(reading, name, &text) && ms_number_of(text, number);
}

static void initial(ms_reading *reading) { ms_set_offset(reading, "0"); }

static void latest(ms_reading *reading)
{
    uint64_t start = 0, end = 0;
    if (!number_option(reading, "rows", &end)) {
        ms_refuse_reading(reading, MS_INVALID_INPUT, "`rows` is no number");
        return;
    }
    if (reading->has_until) ms_number_of(reading->until, &end);
    ms_number_of(reading->start, &start);
    if (reading->has_max_rows && end - start > reading->max_rows) end = start + reading->max_rows;
    ms_set_offset(reading, "%llu", (unsigned long long)end);
}

static void read(ms_reading *reading)
{
    uint64_t begin = 0, end = 0;
    ms_number_of(reading->has_cursor ? reading->cursor : reading->start, &begin);
    ms_number_of(reading->end, &end);
    for (uint64_t n = begin; n < end; n++) {
        if (n == begin + 2) {
            ms_next_page(reading, "%llu", (unsigned long long)n);
            return;
        }
        ms_add_i64(ms_read_column(reading, 0), (int64_t)n);
        if (n == 4) continue;
        ms_add_text(ms_read_column(reading, 1), "row", 3);
    }
}

MS_SOURCE(rows, MS_COLUMNS(MS_I64("n"), MS_TEXT("t?")), MS_OPTIONS("rows", "page?"), initial, latest, read, NULL);
MS_SOURCES(rows)

static ms_response answers(const ms_request *request)
{
    static ms_pair headers[1];
    ms_response response = {0};
    headers[0].name = ms_text_of("X-Url");
    headers[0].value = request->url;
    response.as.answer.status = 200;
    response.as.answer.headers = headers;
    response.as.answer.header_count = 1;
    return response;
}

int main(void)
{
    ms_pair options[] = {{{"rows", 4}, {"10", 2}}};
    ms_source_test test = {0};
    test.source = &ms_source_rows;
    test.reading.options = options;
    test.reading.option_count = 1;
    ms_source_test_run(&test, initial);
    assert(strcmp(test.offset, "0") == 0 && test.refusal == NULL);
    test.reading.start = (ms_text){"0", 1};
    ms_source_test_run(&test, latest);
    assert(strcmp(test.offset, "10") == 0);
    test.reading.has_max_rows = true, test.reading.max_rows = 3;
    ms_source_test_run(&test, latest);
    assert(strcmp(test.offset, "3") == 0);
    test.reading.end = (ms_text){"3", 1};
    ms_source_test_run(&test, read);
    assert(test.rows == 2 && strcmp(test.next, "2") == 0 && ms_i64_at(&test.columns[0], 1) == 1);
    test.reading.has_cursor = true, test.reading.cursor = (ms_text){"2", 1};
    ms_source_test_run(&test, read);
    assert(test.rows == 1 && test.next == NULL && ms_text_at(&test.columns[1], 0).length == 3);
    test.reading.cursor = (ms_text){"4", 1}, test.reading.end = (ms_text){"5", 1};
    ms_source_test_run(&test, read);
    assert(strstr(test.refusal, "gave 0 values in `t?` where there are 1 rows") != NULL);
    options[0].value = (ms_text){"-1", 2};
    ms_source_test_run(&test, latest);
    assert(strcmp(test.refusal, "`rows` is no number") == 0);

    ms_request request = {0};
    request.url = ms_text_of("http://a");
    assert(ms_send(&request, 1)->is_failure && ms_send(&request, 1)->as.failure.why == MS_DENIED);
    ms_test_answers = answers;
    const ms_response *response = ms_send(&request, 1);
    ms_text value;
    assert(!response->is_failure && response->as.answer.status == 200 && ms_header(response, "x-URL", &value));
    assert(value.length == 8 && !ms_header(response, "x-ur", &value));

    uint64_t number;
    assert(ms_number_of((ms_text){"18446744073709551615", 20}, &number) && number == UINT64_MAX);
    assert(!ms_number_of((ms_text){"18446744073709551616", 20}, &number) && !ms_number_of((ms_text){"", 0}, &number));

    const list *described = ms__describe_sources();
    const described_source *source = described->items;
    const described_option *option = source->options.items;
    assert(described->count == 1 && source->options.count == 2 && option[0].required && !option[1].required);
    assert(option[1].name.length == 4);
    const page_answer *page = ms__read_page(0, options, 1, (ms_text){"0", 1}, (ms_text){"2", 1}, NULL);
    assert(!page->is_error && page->as.page.rows.rows == 2 && page->as.page.rows.count == 5 && !page->as.page.next.some);
    const offset_answer *answer = ms__initial_offset(7, options, 1);
    assert(answer->is_error && answer->as.error.fault == MS_INTERNAL);
    assert(!((const offset_answer *)ms__commit_offset(0, options, 1, (ms_text){"2", 1}))->is_error);
    ms_test_end();
    return 0;
}
