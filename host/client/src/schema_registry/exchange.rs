//! One question to a registry and its answer: limits, and asking again when it is busy.

use super::address::{Login, RegistryAddress};
use super::error::RegistryError;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response};
use serde_json::Value;
use std::time::Duration;

/// What registries speak.
const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/vnd.schemaregistry.v1+json");
/// What registries take.
const MEDIA_TYPES: HeaderValue =
    HeaderValue::from_static("application/vnd.schemaregistry.v1+json, application/json;q=0.9");
/// The largest answer.
const ANSWER_BYTES: usize = 4 << 20;
/// How much of what a registry says is told.
const MESSAGE_CHARS: usize = 500;

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// `Null` when it is not JSON.
    pub(super) body: Value,
}

impl Answer {
    /// The registry's own number of what is wrong.
    pub(super) fn code(&self) -> u64 {
        self.body.get("error_code").and_then(Value::as_u64).unwrap_or_default()
    }

    /// What the registry says is wrong.
    pub(super) fn message(&self) -> String {
        let message = self.body.get("message").and_then(Value::as_str).unwrap_or("it says nothing more");
        message.chars().take(MESSAGE_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect()
    }
}

/// What follows an answer.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// It is taken as it is.
    Take,
    /// The question is put again after a while.
    Again(Duration),
}

/// Asks once and again. A `body` makes it a POST.
///
/// # Errors
/// When nobody answers, or nobody lets us in; statuses that say something about what was asked are answers.
pub(super) async fn ask(
    address: &RegistryAddress,
    path: &[&str],
    body: Option<&Value>,
) -> Result<Answer, RegistryError> {
    let client = client(address)?;
    let mut tried = 0;
    loop {
        let answer = once(&client, address, path, body).await;
        match after(address, &answer, tried) {
            Next::Take => return refused_at_the_door(address, answer?.0),
            Next::Again(wait) => {
                tracing::debug!(registry = address.place(), tried, "asking the schema registry again");
                tokio::time::sleep(wait).await;
            }
        }
        tried += 1;
    }
}

fn after(address: &RegistryAddress, answer: &Result<(Answer, Option<Duration>), RegistryError>, tried: u32) -> Next {
    let told = match answer {
        Ok((answer, told)) if answer.status == 429 || answer.status >= 500 => *told,
        Err(RegistryError::Unreachable { .. } | RegistryError::TimedOut { .. }) => None,
        _ => return Next::Take,
    };
    if tried >= address.retries {
        return Next::Take;
    }
    let wait = told.unwrap_or_else(|| address.wait.saturating_mul(1 << tried.min(16)));
    Next::Again(wait.min(address.wait_max))
}

fn refused_at_the_door(address: &RegistryAddress, answer: Answer) -> Result<Answer, RegistryError> {
    let place = address.place().to_owned();
    match answer.status {
        401 | 403 => Err(RegistryError::Denied { place, status: answer.status }),
        status if status == 429 || status >= 500 => {
            Err(RegistryError::Busy { place, status, message: answer.message() })
        }
        300..=399 => {
            let reason = format!("it sends elsewhere with status {}, and credentials go nowhere else", answer.status);
            Err(RegistryError::NoRegistry { place, reason })
        }
        _ => Ok(answer),
    }
}

fn client(address: &RegistryAddress) -> Result<Client, RegistryError> {
    let wrong = |reason: String| RegistryError::Address { place: address.place().to_owned(), reason };
    let mut builder = Client::builder()
        .redirect(Policy::none())
        // Reading the system's authorities takes longer than a question without TLS.
        .tls_built_in_root_certs(address.is_encrypted())
        .connect_timeout(address.connect_timeout)
        .timeout(address.connect_timeout.saturating_add(address.read_timeout));
    if let Some(file) = &address.authorities {
        let unfit = |error: &dyn std::fmt::Display| wrong(format!("the certificates in `{}`: {error}", file.display()));
        let pem = std::fs::read(file).map_err(|error| unfit(&error))?;
        let certificates = reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| unfit(&error))?;
        if certificates.is_empty() {
            return Err(unfit(&"there are none"));
        }
        for certificate in certificates {
            builder = builder.add_root_certificate(certificate);
        }
    }
    builder.build().map_err(|error| wrong(format!("no client can be made: {error}")))
}

async fn once(
    client: &Client,
    address: &RegistryAddress,
    path: &[&str],
    body: Option<&Value>,
) -> Result<(Answer, Option<Duration>), RegistryError> {
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let mut request = client.request(method, address.at(path)).header(ACCEPT, MEDIA_TYPES);
    request = match &address.login {
        Some(Login::Basic { user, password }) => request.basic_auth(user, Some(password.reveal())),
        Some(Login::Bearer(token)) => request.bearer_auth(token.reveal()),
        None => request,
    };
    if let Some(body) = body {
        request = request.header(CONTENT_TYPE, MEDIA_TYPE).body(body.to_string());
    }
    let response = request.send().await.map_err(|error| failed(address, error))?;
    let status = response.status().as_u16();
    let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let bytes = bytes_of(address, response).await?;
    let body = match serde_json::from_slice(&bytes) {
        Ok(body) => body,
        Err(error) if status == 200 => {
            let reason = format!("the answer is not JSON: {error}");
            return Err(RegistryError::NoRegistry { place: address.place().to_owned(), reason });
        }
        Err(_) => Value::Null,
    };
    Ok((Answer { status, body }, wait.map(Duration::from_secs)))
}

async fn bytes_of(address: &RegistryAddress, mut response: Response) -> Result<Vec<u8>, RegistryError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(address, error))? {
        if bytes.len() + chunk.len() > ANSWER_BYTES {
            return Err(RegistryError::TooLarge { place: address.place().to_owned(), limit: ANSWER_BYTES });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn failed(address: &RegistryAddress, error: reqwest::Error) -> RegistryError {
    let place = address.place().to_owned();
    if error.is_timeout() {
        let milliseconds = (address.connect_timeout + address.read_timeout).as_millis();
        return RegistryError::TimedOut { place, milliseconds };
    }
    RegistryError::Unreachable { place, source: Box::new(error.without_url()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_common::Options;

    fn address() -> RegistryAddress {
        let options = Options::new().with("max.retries", "3").with("retries.wait.ms", "100");
        RegistryAddress::new("http://x", &options.with("retries.max.wait.ms", "250"), |_| None).unwrap()
    }

    fn status(status: u16, wait: Option<u64>) -> Result<(Answer, Option<Duration>), RegistryError> {
        Ok((Answer { status, body: Value::Null }, wait.map(Duration::from_secs)))
    }

    #[test]
    fn a_busy_registry_is_asked_again_after_longer_and_longer_waits_up_to_a_limit() {
        let waits: Vec<Next> = (0..4).map(|tried| after(&address(), &status(503, None), tried)).collect();
        let again = |milliseconds| Next::Again(Duration::from_millis(milliseconds));
        assert_eq!(waits, [again(100), again(200), again(250), Next::Take]);
    }

    #[test]
    fn a_registry_may_say_how_long_to_wait_but_not_longer_than_we_want() {
        assert_eq!(after(&address(), &status(429, Some(0)), 2), Next::Again(Duration::ZERO));
        assert_eq!(after(&address(), &status(429, Some(3600)), 0), Next::Again(Duration::from_millis(250)));
    }

    #[test]
    fn what_the_registry_knows_for_sure_is_taken() {
        for known in [200, 301, 401, 404, 409, 422] {
            assert_eq!(after(&address(), &status(known, None), 0), Next::Take);
        }
    }
}
