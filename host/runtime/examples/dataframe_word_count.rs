//! Counts the words of the text files in a folder, and of those that come into it, with the DataFrame API.
//!
//! ```sh
//! cargo run -p millstream-runtime --example dataframe_word_count -- FOLDER
//! ```

use millstream_runtime::functions::{col, explode, split};
use millstream_runtime::{DataFrame, OutputMode, RuntimeError, Session};

/// How often each word stands in the files of `folder`, the most frequent first.
///
/// # Errors
/// When the folder cannot be a source.
pub(crate) fn word_count(session: &Session, folder: &str) -> Result<DataFrame, RuntimeError> {
    let lines = session.read_stream().format("text").load_path(folder)?;
    let words = lines.select([explode(split("lower(value)", "\\W+")).alias("word")])?;
    let counts = words.filter(col("word").neq(""))?.group_by(["word"]).count()?;
    counts.order_by([col("count").desc(), col("word")])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder of text files")?;
    let session = Session::new()?;
    let writer = word_count(&session, &folder)?.write_stream().output_mode(OutputMode::Complete);
    let query = writer.format("console").start()?;
    Ok(query.await_termination()?)
}
