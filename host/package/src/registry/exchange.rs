//! Requests to one registry within limits, and what its answers may be.
//!
//! Rule of its life: one deadline for all requests of an operation. Who we are is told after the registry has asked, to
//! nobody but this registry and the server of tokens that it names, over TLS or on this machine.

use super::RegistryOptions;
use super::challenge::Challenge;
use super::credentials::{self, Credentials};
use crate::{PackageError, PackageReference};
use bytes::Bytes;
use reqwest::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE,
};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response};
use serde::Deserialize;
use std::future::Future;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use url::Url;

/// Redirects that are followed, one after the other.
const REDIRECTS: usize = 5;
/// Bytes of an answer that says what is wrong.
const COMPLAINT_BYTES: u64 = 16 << 10;
/// Bytes of an answer with a token.
const TOKEN_BYTES: u64 = 256 << 10;

/// The requests of one operation.
pub(super) struct Exchange {
    client: Client,
    registry: String,
    base: Url,
    /// For tokens.
    scope: String,
    limits: Limits,
    authorization: Option<HeaderValue>,
    is_plain: bool,
}

/// One request.
pub(super) struct Want {
    method: Method,
    url: Url,
    what: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<Bytes>,
    follows: bool,
}

impl Want {
    pub(super) fn new(method: Method, url: Url, what: &str) -> Self {
        Self { method, url, what: what.to_owned(), headers: Vec::new(), body: None, follows: false }
    }

    pub(super) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(super) fn body(mut self, bytes: Bytes) -> Self {
        self.body = Some(bytes);
        self
    }

    /// Also goes where the answer sends us.
    pub(super) fn following(mut self) -> Self {
        self.follows = true;
        self
    }
}

/// An answer whose body has not come yet.
pub(super) struct Answer {
    response: Response,
    registry: String,
    what: String,
    limits: Limits,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    deadline: Instant,
    /// What led to the deadline.
    time: Duration,
    idle: Duration,
}

impl Exchange {
    pub(super) fn new(
        options: &RegistryOptions,
        reference: &PackageReference,
        actions: &str,
    ) -> Result<Self, PackageError> {
        let registry = reference.registry();
        // The name that people use is not that of the machine.
        let host = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
        let is_local = is_of_this_machine(host);
        let is_plain = is_local || options.plain_http.iter().any(|plain| plain == registry);
        let scheme = if is_plain { "http" } else { "https" };
        let base = format!("{scheme}://{host}/v2/{}/", reference.repository());
        let base = Url::parse(&base).map_err(|error| PackageError::Reference {
            text: reference.to_string(),
            reason: format!("its registry is no host: {error}"),
        })?;
        let mut client = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(options.idle.min(Duration::from_secs(10)))
            .read_timeout(options.idle)
            .user_agent(concat!("millstream/", env!("CARGO_PKG_VERSION")));
        if is_local {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|source| PackageError::Unreachable {
            registry: registry.to_owned(),
            what: format!("`{reference}`"),
            source,
        })?;
        Ok(Self {
            client,
            registry: registry.to_owned(),
            base,
            scope: format!("repository:{}:{actions}", reference.repository()),
            limits: Limits { deadline: Instant::now() + options.time, time: options.time, idle: options.idle },
            authorization: None,
            is_plain,
        })
    }

    /// The URL of something of the repository.
    pub(super) fn url(&self, path: &str) -> Result<Url, PackageError> {
        self.base.join(path).map_err(|error| self.bad(path, format!("it is no path: {error}")))
    }

    /// Where a registry wants an upload; on itself only, for the bytes go there with our authorization.
    pub(super) fn location(&self, answer: &Answer) -> Result<Url, PackageError> {
        let told = answer.header("location").ok_or_else(|| self.bad(&answer.what, "it names no place".into()))?;
        let url =
            self.base.join(told).map_err(|_| self.bad(&answer.what, "the place that it names is no URL".into()))?;
        if url.origin() != self.base.origin() {
            return Err(self.redirect(&answer.what, &url, "uploads go to the registry itself"));
        }
        Ok(url)
    }

    /// Sends a request; the second time with who we are, when the registry asks for that.
    pub(super) async fn send(&mut self, want: Want) -> Result<Answer, PackageError> {
        let answer = self.send_once(&want).await?;
        if answer.status() != 401 || self.authorization.is_some() {
            return Ok(answer);
        }
        let asked = answer.response.headers().get_all(WWW_AUTHENTICATE);
        let Some(challenge) = Challenge::of(asked.iter().filter_map(|value| value.to_str().ok())) else {
            return Ok(answer);
        };
        let Some(authorization) = self.authorize(challenge, &want.what).await? else { return Ok(answer) };
        self.authorization = Some(authorization);
        self.send_once(&want).await
    }

    async fn send_once(&self, want: &Want) -> Result<Answer, PackageError> {
        let mut url = want.url.clone();
        for _ in 0..=REDIRECTS {
            let mut request = self.client.request(want.method.clone(), url.clone());
            for (name, value) in &want.headers {
                request = request.header(name, value);
            }
            if let Some(authorization) = self.authorization.as_ref().filter(|_| url.origin() == self.base.origin()) {
                request = request.header(AUTHORIZATION, authorization);
            }
            match &want.body {
                Some(body) => request = request.body(body.clone()),
                None if want.method == Method::POST => request = request.header(CONTENT_LENGTH, 0),
                None => {}
            }
            let answer = self.answer(self.within(&want.what, request.send()).await?, &want.what);
            if !answer.response.status().is_redirection() {
                return Ok(answer);
            }
            let told = answer.header(LOCATION.as_str()).unwrap_or_default();
            let next = url.join(told).map_err(|_| self.bad(&want.what, "it sends us to no URL".into()))?;
            if next.origin() != self.base.origin() {
                // Where it would be read from, and so it is there. Such an address is often good for reading alone.
                if want.method == Method::HEAD {
                    return Ok(answer);
                }
                if !want.follows {
                    return Err(self.redirect(
                        &want.what,
                        &next,
                        "only the bytes of a component may come from elsewhere",
                    ));
                }
                if next.scheme() != "https" && !(self.is_plain && next.host_str().is_some_and(is_of_this_machine)) {
                    return Err(self.redirect(&want.what, &next, "it is not over TLS"));
                }
            }
            url = next;
        }
        Err(self.redirect(&want.what, &url, "it has sent us around too often"))
    }

    /// What is sent from now on; `None` when we are nobody and nobody is let in.
    async fn authorize(&self, challenge: Challenge, what: &str) -> Result<Option<HeaderValue>, PackageError> {
        let unusable = |reason: String| PackageError::Credentials { registry: self.registry.clone(), reason };
        let who = credentials::of_process(&self.registry, self.limits.idle).map_err(unusable)?;
        let header = |text: String| -> Result<Option<HeaderValue>, PackageError> {
            let mut value = HeaderValue::from_str(&text)
                .map_err(|_| unusable("they have characters that cannot be sent".into()))?;
            value.set_sensitive(true);
            Ok(Some(value))
        };
        match (challenge, who) {
            (Challenge::Basic, Credentials::User { name, password }) => header(basic(&name, &password)),
            (Challenge::Basic, _) => Ok(None),
            (Challenge::Bearer { realm, service }, who) => {
                let token = self.token(&realm, service.as_deref(), &who, what).await?;
                header(format!("Bearer {token}"))
            }
        }
    }

    /// Asks for a token where the registry says that they are given.
    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        who: &Credentials,
        what: &str,
    ) -> Result<String, PackageError> {
        #[derive(Deserialize)]
        struct Token {
            token: Option<String>,
            access_token: Option<String>,
        }

        let mut url = Url::parse(realm).map_err(|_| self.bad(what, "its server of tokens is no URL".into()))?;
        let is_near = url.host_str() == self.base.host_str() || url.host_str().is_some_and(is_of_this_machine);
        if url.scheme() != "https" && !(self.is_plain && url.scheme() == "http" && is_near) {
            return Err(self.redirect(what, &url, "credentials go over TLS only"));
        }
        let mut pairs = vec![("scope", self.scope.as_str())];
        pairs.extend(service.map(|service| ("service", service)));
        let request = match who {
            Credentials::Token(token) => {
                pairs.extend([
                    ("grant_type", "refresh_token"),
                    ("refresh_token", token.as_str()),
                    ("client_id", "millstream"),
                ]);
                let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
                let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
                self.client.post(url).header(CONTENT_TYPE, form_type).body(form)
            }
            who => {
                url.query_pairs_mut().extend_pairs(pairs);
                let request = self.client.get(url);
                match who {
                    Credentials::User { name, password } => request.header(AUTHORIZATION, basic(name, password)),
                    _ => request,
                }
            }
        };
        let what = format!("a token for {what}");
        let mut answer = self.answer(self.within(&what, request.send()).await?, &what);
        answer.expect(&[200]).await?;
        let body = answer.body(TOKEN_BYTES).await?;
        let token: Token =
            serde_json::from_slice(&body).map_err(|_| self.bad(&what, "it does not have the form of one".into()))?;
        let token = token.token.or(token.access_token).filter(|token| !token.is_empty());
        token.ok_or_else(|| self.bad(&what, "there is none in it".into()))
    }

    async fn within<T>(
        &self,
        what: &str,
        future: impl Future<Output = Result<T, reqwest::Error>>,
    ) -> Result<T, PackageError> {
        within(&self.registry, what, self.limits, future).await
    }

    fn answer(&self, response: Response, what: &str) -> Answer {
        let (registry, what) = (self.registry.clone(), what.to_owned());
        Answer { response, registry, what, limits: self.limits }
    }

    fn bad(&self, what: &str, reason: String) -> PackageError {
        PackageError::BadAnswer { registry: self.registry.clone(), what: what.to_owned(), reason }
    }

    fn redirect(&self, what: &str, to: &Url, reason: &'static str) -> PackageError {
        let to = shown(&to.origin().ascii_serialization());
        PackageError::Redirect { registry: self.registry.clone(), what: what.to_owned(), to, reason }
    }
}

impl Answer {
    /// Whether what was asked for is there, and kept by somebody else.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.response.status().is_redirection()
    }

    pub(super) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// Turns an answer of another status into what it means.
    pub(super) async fn expect(&mut self, statuses: &[u16]) -> Result<(), PackageError> {
        let status = self.status();
        if statuses.contains(&status) {
            return Ok(());
        }
        let (registry, what) = (self.registry.clone(), self.what.clone());
        let told = self.body(COMPLAINT_BYTES).await.map(|body| complaint(&body)).unwrap_or_default();
        let reason = if told.is_empty() { format!("status {status}") } else { format!("status {status}, {told}") };
        Err(match status {
            401 | 403 => PackageError::Denied { registry, what, reason },
            404 => PackageError::NotFound { registry, what },
            _ => PackageError::BadAnswer { registry, what, reason },
        })
    }

    /// The body, of at most `limit` bytes.
    pub(super) async fn body(&mut self, limit: u64) -> Result<Vec<u8>, PackageError> {
        let too_large = || PackageError::TooLarge { registry: self.registry.clone(), what: self.what.clone(), limit };
        if self.response.content_length().is_some_and(|length| length > limit) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        let (registry, what) = (self.registry.clone(), self.what.clone());
        let limits = self.limits;
        while let Some(chunk) = within(&registry, &what, limits, self.response.chunk()).await? {
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(PackageError::TooLarge { registry, what, limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

async fn within<T>(
    registry: &str,
    what: &str,
    Limits { deadline, time, idle }: Limits,
    future: impl Future<Output = Result<T, reqwest::Error>>,
) -> Result<T, PackageError> {
    let (registry, what) = (registry.to_owned(), what.to_owned());
    match tokio::time::timeout(deadline.saturating_duration_since(Instant::now()), future).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) if source.is_timeout() => Err(PackageError::TimedOut { registry, what, time: idle }),
        Ok(Err(source)) => Err(PackageError::Unreachable { registry, what, source: source.without_url() }),
        Err(_) => Err(PackageError::TimedOut { registry, what, time }),
    }
}

pub(super) fn bad_answer(reference: &PackageReference, what: &str, reason: String) -> PackageError {
    PackageError::BadAnswer { registry: reference.registry().to_owned(), what: what.to_owned(), reason }
}

fn basic(name: &str, password: &str) -> String {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

/// Whether a host with a port is this machine.
fn is_of_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// What a registry says in words.
fn complaint(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Complaint {
        errors: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        #[serde(default)]
        code: String,
        #[serde(default)]
        message: String,
    }
    let Ok(complaint) = serde_json::from_slice::<Complaint>(body) else { return String::new() };
    let entries = complaint.errors.iter().take(3).map(|entry| format!("{}: {}", entry.code, entry.message));
    shown(&entries.collect::<Vec<_>>().join("; "))
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_told_from_others() {
        for host in ["localhost", "localhost:5000", "127.0.0.1:1", "127.9.9.9", "[::1]:5000"] {
            assert!(is_of_this_machine(host), "{host}");
        }
        for host in ["localhost.example.com", "example.com:5000", "10.0.0.1", "127.0.0.1.example.com", "[::2]:1"] {
            assert!(!is_of_this_machine(host), "{host}");
        }
    }

    #[test]
    fn complaints_are_shown_without_control_characters_and_garbage_not_at_all() {
        let body = b"{\"errors\":[{\"code\":\"DENIED\",\"message\":\"go\\u001b[31m away\"}]}";
        assert_eq!(complaint(body), "DENIED: go[31m away");
        assert_eq!(complaint(b"<html>"), "");
    }
}
