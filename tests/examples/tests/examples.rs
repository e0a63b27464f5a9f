//! Every folder of `examples/` runs and gives what it promises.

use test_examples::{bash, output_of, root};

fn run(example: &str) -> String {
    let mut command = bash();
    command.args(["x", "example", example]);
    let output = output_of(command);
    assert_eq!(output.lines().last(), Some("example: ok"), "{output}");
    output
}

#[test]
fn network_word_count_counts_what_netcat_sends() {
    let output = run("network-word-count");
    assert!(output.contains("Batch: 0"), "{output}");
}

#[test]
fn network_word_count_windowed_has_each_word_in_two_windows() {
    let output = run("network-word-count-windowed");
    assert!(output.contains("|streaming|1    |"), "{output}");
}

#[test]
fn windowed_word_count_closes_windows_and_drops_late_words() {
    let output = run("windowed-word-count");
    assert!(!output.contains("donkey"), "{output}");
}

#[test]
fn file_word_count_agrees_with_other_programs() {
    let output = run("file-word-count");
    assert!(output.contains("the 13857"), "{output}");
}

#[test]
fn page_heat_sums_what_the_plugin_says() {
    let output = run("page-heat");
    assert!(output.contains("|047.html|   393|4237.26|"), "{output}");
}

#[test]
fn request_statistics_come_from_a_plugins_aggregate_functions() {
    let output = run("request-statistics");
    assert!(output.contains("|/search|"), "{output}");
}

#[test]
fn remote_log_is_read_from_a_server_by_a_plugin() {
    let output = run("remote-log");
    assert!(output.contains("|2026-05-01 09:00:00|4       |2     |"), "{output}");
}

#[test]
fn silent_sensors_are_told_of_once_and_when_they_are_back() {
    let output = run("silent-sensors");
    assert!(output.contains("|barn  |silent|2026-05-01 12:06:00|8.5    |"), "{output}");
}

#[test]
fn ad_clicks_tells_of_a_click_or_that_there_was_none() {
    let output = run("ad-clicks");
    assert!(output.contains("|2026-05-01 12:01:00|bob    |summer  |NULL               |"), "{output}");
}

#[test]
fn kafka_word_count_counts_what_is_sent_to_a_topic() {
    let output = run("kafka-word-count");
    assert!(output.contains("|    hello|    4|"), "{output}");
}

#[test]
fn kafka_page_heat_has_each_visit_once_though_the_query_is_killed() {
    let output = run("kafka-page-heat");
    assert!(output.contains("2400 visits were sent, 2400 records are in the topic"), "{output}");
}

#[test]
fn word_count_into_mysql_agrees_with_other_programs() {
    let output = run("word-count-into-mysql");
    assert!(output.contains("the 13857"), "{output}");
}

#[test]
fn orders_mirror_is_as_the_table_is() {
    let output = run("orders-mirror");
    assert!(output.contains("40|dee|new|78.00"), "{output}");
}

#[test]
fn page_heat_window_has_the_heat_of_the_last_minute() {
    let output = run("page-heat-window");
    assert!(output.contains("(047.html,4237.2"), "{output}");
}

#[test]
fn page_heat_state_goes_on_after_a_kill() {
    let output = run("page-heat-state");
    assert!(output.contains("047.html 4237.26"), "{output}");
}

#[test]
fn every_example_is_run_here_and_told_of() {
    let tests = include_str!("examples.rs");
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let folder = entry.unwrap();
        let name = folder.file_name().into_string().unwrap();
        assert!(tests.contains(&format!("run(\"{name}\")")), "examples/{name} is not run: add a test in this file");
        assert!(folder.path().join("README.md").is_file(), "examples/{name} has no README.md");
    }
}
