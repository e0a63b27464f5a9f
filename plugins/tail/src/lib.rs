//! Lines of a file that grows behind HTTP: a log on a web server, an append blob in an object store.

mod time;

use millstream_sdk::source::prelude::*;

/// Bytes of one request where the query does not say.
const CHUNK: u64 = 1 << 20;
/// The fewest and the most bytes of one request; a line is not longer than that.
const CHUNKS: (u64, u64) = (64, 8 << 20);

/// One line.
#[derive(Clone, Debug, PartialEq, Row)]
pub struct Line {
    /// The time that it begins with, as RFC 3339 has it; null when it does not.
    at: Option<Timestamp>,
    line: String,
    /// Where it begins in the file.
    position: i64,
}

/// `format = "plugin"`, with the file's `url` and if need be `authorization`. The server must know `HEAD` and ranges.
///
/// An offset is a number of bytes, always behind a whole line. The file may only grow.
pub struct Lines {
    url: String,
    authorization: Option<String>,
    chunk: u64,
}

impl Source for Lines {
    const NAME: &'static str = "lines";
    const OPTIONS: &'static [SourceOption] =
        &[SourceOption::required("url"), SourceOption::optional("authorization"), SourceOption::optional("chunkBytes")];
    type Offset = u64;
    type Row = Line;

    fn open(options: &Options) -> CallResult<Self> {
        Ok(Self {
            url: options.require("url")?.to_owned(),
            authorization: options.get("authorization").map(str::to_owned),
            chunk: options.parse_or("chunkBytes", CHUNK)?.clamp(CHUNKS.0, CHUNKS.1),
        })
    }

    fn initial_offset(&self) -> CallResult<u64> {
        Ok(0)
    }

    fn latest_offset(&self, start: u64, limits: Limits<u64>) -> CallResult<u64> {
        let size = match limits.until {
            Some(until) => until,
            None => self.size()?,
        };
        if size < start {
            let message = format!("the file has {size} bytes, and {start} of it were read: it is another one by now");
            return Err(CallError::invalid_input(message));
        }
        match (limits.max_rows, limits.until) {
            (Some(rows), _) => self.after_lines(start, size, rows),
            (None, Some(until)) => Ok(until),
            (None, None) => self.after_last_line(start, size),
        }
    }

    fn read(&self, range: OffsetRange<u64>, cursor: Option<&str>) -> CallResult<Page<Line>> {
        let begin = match cursor {
            Some(cursor) => cursor.parse()?,
            None => range.start,
        };
        let mut length = self.chunk;
        loop {
            let bytes = self.bytes(begin, range.end.min(begin.saturating_add(length)))?;
            let end = match bytes.iter().rposition(|byte| *byte == b'\n') {
                Some(last) => last + 1,
                None if begin + bytes.len() as u64 >= range.end => bytes.len(),
                None if length < CHUNKS.1 => {
                    length = (2 * length).min(CHUNKS.1);
                    continue;
                }
                None => return Err(too_long(begin)),
            };
            let rows = lines(begin, &bytes[..end]);
            let next = begin + end as u64;
            return Ok(if next < range.end { Page::before(next, rows) } else { Page::last(rows) });
        }
    }
}

impl Lines {
    fn request(&self, method: &str) -> Request {
        let request = Request::new(method, &self.url);
        match &self.authorization {
            Some(authorization) => request.header("authorization", authorization),
            None => request,
        }
    }

    /// How large the file is now.
    fn size(&self) -> CallResult<u64> {
        let response = self.request("HEAD").send()?.ok()?;
        let length = response.header("content-length").and_then(|length| length.parse().ok());
        length.ok_or_else(|| CallError::internal("the server does not say how large the file is"))
    }

    /// The bytes from `begin` to `end`.
    fn bytes(&self, begin: u64, end: u64) -> CallResult<Vec<u8>> {
        if begin >= end {
            return Ok(Vec::new());
        }
        let request = self.request("GET").header("range", &format!("bytes={begin}-{}", end - 1));
        let response = request.send()?.ok()?;
        if response.status != 206 {
            return Err(CallError::internal("the server does not give parts of the file"));
        }
        if response.body.len() as u64 != end - begin {
            let (had, wanted) = (response.body.len(), end - begin);
            return Err(CallError::unavailable(format!("the server gave {had} bytes of {wanted} from {begin}")));
        }
        Ok(response.body)
    }

    /// The end of the last whole line that ends by `size`.
    fn after_last_line(&self, start: u64, size: u64) -> CallResult<u64> {
        let mut end = size;
        while end > start {
            let begin = start.max(end.saturating_sub(self.chunk));
            let bytes = self.bytes(begin, end)?;
            if let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') {
                return Ok(begin + last as u64 + 1);
            }
            end = begin;
        }
        Ok(start)
    }

    /// The end of so many lines after `start`, or of the last whole one that ends by `size`.
    fn after_lines(&self, start: u64, size: u64, rows: u64) -> CallResult<u64> {
        let (mut left, mut latest, mut begin) = (rows.max(1), start, start);
        while begin < size {
            let bytes = self.bytes(begin, size.min(begin.saturating_add(self.chunk)))?;
            let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            for (place, _) in ends {
                latest = begin + place as u64 + 1;
                left -= 1;
                if left == 0 {
                    return Ok(latest);
                }
            }
            begin += bytes.len() as u64;
        }
        Ok(latest)
    }
}

fn too_long(begin: u64) -> CallError {
    CallError::invalid_input(format!("the line at {begin} has more than {} bytes", CHUNKS.1))
}

fn lines(begin: u64, bytes: &[u8]) -> Vec<Line> {
    let mut position = begin;
    let mut lines = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        let at = text.split_whitespace().next().and_then(time::rfc3339);
        lines.push(Line { at, line: text.to_owned(), position: i64::try_from(position).unwrap_or(i64::MAX) });
        position += line.len() as u64;
    }
    lines
}

plugin!(sources: Lines);

#[cfg(test)]
mod tests;
