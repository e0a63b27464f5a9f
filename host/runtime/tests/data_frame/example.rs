//! The example program counts words.

#[allow(dead_code, reason = "the test calls what the program's main calls")]
#[path = "../../examples/dataframe_word_count.rs"]
mod program;

use crate::world::{NAME, lines};
use millstream_runtime::{OutputMode, Session, Trigger};
use millstream_sink::SinkRegistry;
use millstream_sink::connectors::memory::MemorySinkTables;

#[test]
fn the_example_counts_the_words_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("1.txt"), "The cat saw the dog.\nThe end\n").unwrap();
    let tables = MemorySinkTables::new();
    let session = Session::builder().sinks(SinkRegistry::with_builtins_over(tables.clone())).build();
    let counts = program::word_count(&session, folder.path().to_str().unwrap()).unwrap();
    let writer = counts.write_stream().output_mode(OutputMode::Complete).trigger(Trigger::AvailableNow);
    writer.format("memory").query_name(NAME).start().unwrap().await_termination().unwrap();
    let wanted = ["word Utf8, count Int64", "the | 3", "cat | 1", "dog | 1", "end | 1", "saw | 1"];
    assert_eq!(lines(&tables.get(NAME).unwrap().rows()), wanted);
}
