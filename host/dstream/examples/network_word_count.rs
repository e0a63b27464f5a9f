//! Counts the words that a server sends over a socket, batch by batch.
//!
//! ```text
//! nc -lk 9999                                                    # in one terminal; type words
//! cargo run -p millstream-dstream --example network_word_count -- localhost 9999
//! ```

use millstream_dstream::StreamingContext;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [host, port] = &arguments[..] else { return Err("say where the server is: HOST PORT".into()) };

    let context = StreamingContext::new(Duration::from_secs(1))?;
    let lines = context.socket_text_stream(host, port.parse()?)?;
    let words = lines.flat_map(|line: String| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let counts = words.map(|word| (word, 1_i64)).reduce_by_key(|a, b| a + b);
    counts.print()?;

    context.start()?;
    Ok(context.await_termination()?)
}
