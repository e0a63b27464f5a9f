//! Requests to other machines: to the hosts that the operator grants, `http = ["api.example.com"]` in `[grants.NAME]`.
//!
//! ```no_run
//! # use millstream_sdk::prelude::*;
//! # fn read() -> CallResult<Vec<u8>> {
//! let response = millstream_sdk::http::get("https://api.example.com/events?after=17")?.ok()?;
//! # Ok(response.body)
//! # }
//! ```
//!
//! A request ends with the call's own deadline at the latest, and redirects are answers like any other. Many requests at once
//! are sent several at a time.

use crate::error::{CallError, CallResult};
use std::fmt;
use std::time::Duration;

/// How long a request waits if nothing else is said: as long as the call may take.
const TIMEOUT_MS: u32 = u32::MAX;

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
    /// How long to wait, in milliseconds.
    pub timeout_ms: u32,
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

/// Why there is no response. `?` turns it into a [`CallError`]: what was not reachable now may be later.
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
        match self {
            Self::Denied(reason) => write!(f, "denied: {reason}"),
            Self::Unreachable(reason) => write!(f, "unreachable: {reason}"),
            Self::TooLarge(reason) => write!(f, "too large: {reason}"),
        }
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unreachable(_) => Self::unavailable(failure),
            Failure::Denied(_) | Failure::TooLarge(_) => Self::internal(failure),
        }
    }
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: &str, url: &str) -> Self {
        Self {
            method: method.to_owned(),
            url: url.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout_ms: TIMEOUT_MS,
        }
    }

    /// `GET`.
    pub fn get(url: &str) -> Self {
        Self::new("GET", url)
    }

    /// `POST` with a body.
    pub fn post(url: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..Self::new("POST", url) }
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The first value of a header, whatever the case of its name.
    pub fn header_value(&self, name: &str) -> Option<&str> {
        value_of(&self.headers, name)
    }

    /// With another time to wait.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(TIMEOUT_MS);
        self
    }

    /// Sends it.
    ///
    /// # Errors
    /// Why there is no response; one with a bad status is a response.
    pub fn send(self) -> Result<Response, Failure> {
        let lost = || Err(Failure::Unreachable("the host gave no answer".into()));
        send(vec![self]).pop().unwrap_or_else(lost)
    }
}

impl Response {
    /// The response if its status is one of success.
    ///
    /// # Errors
    /// As unavailable when the server may answer otherwise later (408, 429, 5xx), as internal for any other status.
    pub fn ok(self) -> CallResult<Self> {
        match self.status {
            200..=299 => Ok(self),
            status @ (408 | 429 | 500..) => Err(CallError::unavailable(format!("the server answers {status}"))),
            status => Err(CallError::internal(format!("the server answers {status}"))),
        }
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        value_of(&self.headers, name)
    }

    /// The body as text.
    ///
    /// # Errors
    /// When it is no UTF-8.
    pub fn text(&self) -> CallResult<&str> {
        std::str::from_utf8(&self.body)
            .map_err(|error| CallError::internal(format!("the response is no text: {error}")))
    }
}

fn value_of<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let is_it = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
    headers.iter().find(is_it).map(|(_, value)| value.as_str())
}

/// Outside of a component, in tests: what requests of this thread are answered with from now on.
#[cfg(not(target_arch = "wasm32"))]
pub fn answer_with(answers: impl FnMut(&Request) -> Result<Response, Failure> + 'static) {
    crate::granted::with(|granted| granted.answers = Some(Box::new(answers)));
}

/// Sends `GET` to a URL.
///
/// # Errors
/// As [`Request::send`].
pub fn get(url: &str) -> Result<Response, Failure> {
    Request::get(url).send()
}

/// Sends all requests, at most 256, several at a time, and waits for all; the answers are in the order of the requests.
/// Outside of a component, in tests, the tester answers.
pub fn send(requests: Vec<Request>) -> Vec<Result<Response, Failure>> {
    #[cfg(target_arch = "wasm32")]
    {
        use crate::bindings::granted::millstream::plugin::http;
        let request = |request: Request| http::Request {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body,
            timeout_ms: request.timeout_ms,
        };
        let response = |response: http::Response| Response {
            status: response.status,
            headers: response.headers,
            body: response.body,
        };
        let failure = |failure: http::Failure| match failure {
            http::Failure::Denied(reason) => Failure::Denied(reason),
            http::Failure::Unreachable(reason) => Failure::Unreachable(reason),
            http::Failure::TooLarge(reason) => Failure::TooLarge(reason),
        };
        let requests: Vec<http::Request> = requests.into_iter().map(request).collect();
        http::send(&requests).into_iter().map(|answer| answer.map(response).map_err(failure)).collect()
    }
    #[cfg(not(target_arch = "wasm32"))]
    {
        // What answers may itself look at what is granted.
        let mut answers = crate::granted::with(|granted| granted.answers.take());
        let answer = |request: &Request| match &mut answers {
            Some(answers) => answers(request),
            None => Err(Failure::Denied(format!("no test answers `{}`", request.url))),
        };
        let all = requests.iter().map(answer).collect();
        crate::granted::with(|granted| granted.answers = answers);
        all
    }
}
