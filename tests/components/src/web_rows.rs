//! A sink over HTTP with two phases, in editions: what a batch prepares is posted, and seen when it is committed.

use millstream_sdk::sink::prelude::*;

/// One request that must succeed.
fn post(url: &str, path: &str, body: &str) -> CallResult<String> {
    let request = Request::post(&format!("{url}/{path}"), body.as_bytes());
    match http::send(vec![request]).pop() {
        Some(Ok(response)) if response.status == 200 => Ok(String::from_utf8_lossy(&response.body).into_owned()),
        Some(Ok(response)) => Err(CallError::unavailable(format!("`{path}` is answered with {}", response.status))),
        Some(Err(failure)) => Err(CallError::unavailable(failure)),
        None => Err(CallError::unavailable("no answer")),
    }
}

/// The rows of one partition of a batch, as lines of JSON.
#[derive(Debug, Default)]
pub struct Rows {
    url: String,
    place: String,
    lines: Vec<String>,
}

impl Rows {
    /// Begins; answers what the other side says to that.
    ///
    /// # Errors
    /// When it is not there.
    pub fn open(&mut self, target: &Target, edition: &str) -> CallResult<String> {
        self.url = target.option("url").unwrap_or_default().to_owned();
        self.place = format!("{}/{}/{}", target.query_id, target.partition, target.batch);
        post(&self.url, &format!("open/{}", self.place), edition)
    }

    /// Takes rows.
    pub fn take(&mut self, rows: &[AnyRow]) {
        self.lines.extend(rows.iter().map(|row| {
            let mut line = String::new();
            row.write_json(&mut line);
            line
        }));
    }

    /// Sends the rows.
    ///
    /// # Errors
    /// When the other side is not there.
    pub fn send(&self, path: &str) -> CallResult<String> {
        post(&self.url, &format!("{path}/{}", self.place), &self.lines.join("\n"))
    }
}

/// `commit` or `abort`.
///
/// # Errors
/// When the other side is not there.
pub fn settle(target: &Target, path: &str, token: &[u8]) -> CallResult<()> {
    post(target.option("url").unwrap_or_default(), path, &String::from_utf8_lossy(token)).map(drop)
}
