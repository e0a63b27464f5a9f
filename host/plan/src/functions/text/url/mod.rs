//! Parts of URLs: `parse_url` and `try_parse_url`.
//!
//! Where it stands: beside the functions of strings; encoding and decoding of URLs are the engine's.
//!
//! Rule of its life: the parts are those of Java's `java.net.URI`, as in Spark. `parse_url` fails in ANSI mode for what is no
//! URL, otherwise that is NULL, as is a part that is missing or has another name. A key is asked of the query only; it is part
//! of a regular expression, as in Spark.

mod uri;

use super::column::texts;
use super::function::{Call, Function, Nulls, some};
use super::kind::Kind;
use super::memo::Memo;
use super::regex::compile;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use uri::Uri;

/// The functions of this folder.
pub(super) fn functions() -> Vec<Function> {
    let function = |name, body| {
        let kinds = [Kind::Text, Kind::Text, Kind::Text];
        Function::new(name, &kinds, DataType::Utf8, body).optional(1).nulls(Nulls::Possible)
    };
    vec![function("parse_url", parse_url).fails_on(&[0, 2]), function("try_parse_url", try_parse_url)]
}

fn parse_url(call: &Call<'_>) -> Result<ArrayRef> {
    parts(call, call.ansi)
}

fn try_parse_url(call: &Call<'_>) -> Result<ArrayRef> {
    parts(call, false)
}

fn parts(call: &Call<'_>, fails: bool) -> Result<ArrayRef> {
    let (urls, parts) = (call.text(0)?, call.text(1)?);
    let keys = if call.has(2) { Some(call.text(2)?) } else { None };
    let mut memo = Memo::new();
    texts(call.rows, |row, out| {
        let (url, part) = (some!(urls.get(row)), some!(parts.get(row)));
        let key = match &keys {
            Some(keys) => Some(some!(keys.get(row))),
            None => None,
        };
        let Some(uri) = Uri::parse(url) else {
            if fails {
                return exec_err!("[INVALID_URL] `{url}` is no URL; use `try_parse_url` to get NULL for it");
            }
            return Ok(None);
        };
        match (part, key) {
            ("QUERY", Some(key)) => {
                let query = some!(uri.query);
                let pattern = memo.get(key, |key| compile(&format!("(&|^){key}=([^&]*)")))?;
                let captures = some!(pattern.captures(query));
                out.push_str(some!(captures.get(2)).as_str());
            }
            (_, Some(_)) => return Ok(None),
            ("FILE", None) => {
                out.push_str(some!(uri.path));
                if let Some(query) = uri.query {
                    out.push('?');
                    out.push_str(query);
                }
            }
            (part, None) => out.push_str(some!(match part {
                "HOST" => uri.host,
                "PATH" => uri.path,
                "QUERY" => uri.query,
                "REF" => uri.fragment,
                "PROTOCOL" => uri.scheme,
                "AUTHORITY" => uri.authority,
                "USERINFO" => uri.user,
                _ => None,
            })),
        }
        Ok(Some(()))
    })
}
