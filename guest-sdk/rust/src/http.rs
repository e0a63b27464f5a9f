//! Requests to hosts that the operator granted to the plugin: `[grants.NAME]` with `http` in the host file.

use std::fmt;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `POST`, ….
    pub method: String,
    /// With scheme and host.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How long to wait, in milliseconds; the rest of the call's own time at most.
    pub timeout_ms: u32,
}

impl Request {
    /// A request that is waited for 30 seconds.
    pub fn new(method: &str, url: &str) -> Self {
        let (method, url) = (method.to_owned(), url.to_owned());
        Self { method, url, headers: Vec::new(), body: Vec::new(), timeout_ms: 30_000 }
    }

    /// A `POST` of a body.
    pub fn post(url: &str, body: &[u8]) -> Self {
        Self { body: body.to_vec(), ..Self::new("POST", url) }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The first value of a header; case does not matter.
    pub fn header_value(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// One response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The host was not granted, or it resolves to an address that is not.
    Denied(String),
    /// No connection, no answer in time, or a broken one.
    Unreachable(String),
    /// The response is larger than allowed.
    TooLarge(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Denied(text) | Self::Unreachable(text) | Self::TooLarge(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for Failure {}

/// Sends all requests, several at a time, and waits for all; at most 256 of them.
#[cfg(target_arch = "wasm32")]
pub fn send(requests: Vec<Request>) -> Vec<Result<Response, Failure>> {
    use crate::bindings::requesting::millstream::plugin::http;
    let request = |request: Request| {
        let Request { method, url, headers, body, timeout_ms } = request;
        http::Request { method, url, headers, body, timeout_ms }
    };
    let requests: Vec<http::Request> = requests.into_iter().map(request).collect();
    let answer = |answer: Result<http::Response, http::Failure>| match answer {
        Ok(http::Response { status, headers, body }) => Ok(Response { status, headers, body }),
        Err(http::Failure::Denied(text)) => Err(Failure::Denied(text)),
        Err(http::Failure::Unreachable(text)) => Err(Failure::Unreachable(text)),
        Err(http::Failure::TooLarge(text)) => Err(Failure::TooLarge(text)),
    };
    http::send(&requests).into_iter().map(answer).collect()
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use super::{Failure, Request, Response};
    use std::cell::RefCell;

    type Answer = Box<dyn FnMut(&Request) -> Result<Response, Failure>>;

    thread_local! {
        static ANSWER: RefCell<Option<Answer>> = const { RefCell::new(None) };
    }

    /// Outside of a component, in tests: what requests of this thread are answered with from now on.
    pub fn answer_with(answer: impl FnMut(&Request) -> Result<Response, Failure> + 'static) {
        ANSWER.set(Some(Box::new(answer)));
    }

    /// Sends all requests, several at a time, and waits for all; at most 256 of them. Outside of a component, in tests,
    /// [`answer_with`] says what comes back.
    pub fn send(requests: Vec<Request>) -> Vec<Result<Response, Failure>> {
        ANSWER.with_borrow_mut(|answer| match answer {
            Some(answer) => requests.iter().map(answer).collect(),
            None => {
                requests.iter().map(|_| Err(Failure::Unreachable("there is no network in a test".into()))).collect()
            }
        })
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub use native::{answer_with, send};
