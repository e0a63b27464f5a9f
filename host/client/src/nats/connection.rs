//! One connection to a server, for a thread that waits.

use super::error::ApiError;
use super::{Login, NatsAddress, NatsError};
use crate::database::{Driver, Unanswered, proving_config};
use async_nats::client::{Request, RequestErrorKind};
use async_nats::{Client, ConnectOptions, Event, HeaderMap, Message, ServerError};
use bytes::Bytes;
use futures::future::{Either, select};
use millstream_common::StopSignal;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What the client tells beside the answers to questions.
#[derive(Debug, Default)]
struct Signs {
    /// Why the connection is of no more use.
    broken: Option<String>,
    /// What the server said against what it was asked last.
    said: Option<String>,
}

/// An open connection.
pub struct Connection {
    // The client goes before what runs it.
    pub(super) client: Client,
    driver: Driver,
    signs: Arc<watch::Sender<Signs>>,
    place: String,
    who: String,
    /// What subjects of questions to JetStream begin with.
    api: String,
    limit: Option<Duration>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("place", &self.place).field("who", &self.who).finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a connection to one of the servers; `name` is how the server's list of clients calls it. Nothing is waited for
    /// much longer than until `stop` is set, now or later.
    ///
    /// # Errors
    /// When nobody answers, no server lets the user in, or TLS is not as asked for.
    pub fn open(address: &NatsAddress, name: &str, stop: &StopSignal) -> Result<Self, NatsError> {
        let (place, who) = (address.place(), address.login.shown());
        let unreachable = |source: Box<dyn std::error::Error + Send + Sync>| NatsError::Unreachable {
            place: address.place(),
            source,
        };
        let driver = Driver::attended(stop).map_err(|error| unreachable(Box::new(error)))?;
        let signs = Arc::new(watch::Sender::new(Signs::default()));
        let options = options(address)?.name(name).event_callback({
            let signs = Arc::clone(&signs);
            move |event| {
                note(&signs, &event);
                std::future::ready(())
            }
        });
        // Each server has this time.
        let limit = address.connect_timeout.saturating_mul(u32::try_from(address.servers.len()).unwrap_or(u32::MAX));
        let client = match driver.connect(limit, options.connect(address.servers.as_slice())) {
            Ok(connected) => connected.map_err(|error| NatsError::of_connecting(&place, &who, error))?,
            Err(Unanswered::Late) => return Err(unreachable("it takes longer than `connectTimeout`".into())),
            Err(Unanswered::Stopped) => return Err(NatsError::Stopped { place }),
        };
        let api = match &address.domain {
            Some(domain) => format!("$JS.{domain}.API"),
            None => "$JS.API".to_owned(),
        };
        Ok(Self { client, driver, signs, place, who, api, limit: address.query_timeout })
    }

    /// Where it leads.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether it is known to be of no more use.
    pub fn is_broken(&self) -> bool {
        self.signs.borrow().broken.is_some()
    }

    /// What tells one life of one server from all others.
    pub fn server_id(&self) -> String {
        self.client.server_info().server_id
    }

    /// Whether the server is of this version, or a later one.
    pub(super) fn is_from(&self, major: u32, minor: u32) -> bool {
        let version = self.client.server_info().version;
        let mut parts = version.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (major, minor)
    }

    /// How many bytes a message may have here, with its headers.
    pub fn most_bytes(&self) -> usize {
        self.client.max_payload()
    }

    /// How long an answer may take.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// An error about an answer that has another shape than NATS gives it.
    pub(super) fn strange(&self, reason: impl Into<String>) -> NatsError {
        NatsError::Foreign { place: self.place.clone(), reason: reason.into() }
    }

    /// An error about a connection that broke.
    pub(super) fn lost(&self, reason: impl Into<String>) -> NatsError {
        NatsError::Lost { place: self.place.clone(), reason: reason.into() }
    }

    /// An error about a server that cannot do it now.
    pub(super) fn busy(&self, reason: impl Into<String>) -> NatsError {
        NatsError::Busy { place: self.place.clone(), message: reason.into() }
    }

    /// An error about an answer that does not come.
    pub(super) fn late(&self) -> NatsError {
        NatsError::Timeout { place: self.place.clone(), seconds: self.limit.unwrap_or_default().as_secs() }
    }

    /// Waits for an answer, but no longer than the connection holds, the server says nothing against it, and somebody wants it.
    pub(super) fn wait<T>(
        &self,
        limit: Option<Duration>,
        answer: impl Future<Output = Result<T, NatsError>>,
    ) -> Result<T, NatsError> {
        self.signs.send_modify(|signs| signs.said = None);
        let mut signs = self.signs.subscribe();
        let told = async {
            loop {
                let error = {
                    let signs = signs.borrow_and_update();
                    let said = signs.said.as_ref().map(|said| NatsError::of_server(&self.place, &self.who, said));
                    said.or_else(|| signs.broken.as_ref().map(|reason| self.lost(reason.as_str())))
                };
                if let Some(error) = error {
                    return error;
                }
                if signs.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let first = async {
            match select(pin!(answer), pin!(told)).await {
                Either::Left((answer, _)) => answer,
                Either::Right((error, _)) => Err(error),
            }
        };
        match self.driver.wait(limit, first) {
            Ok(answer) => answer,
            Err(Unanswered::Late) => Err(self.late()),
            Err(Unanswered::Stopped) => Err(NatsError::Stopped { place: self.place.clone() }),
        }
    }

    /// Sends a message that asks for an answer; `None` when nobody listens.
    pub(super) fn request(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<Option<Message>, NatsError> {
        let request = Request::new().headers(headers).payload(payload).timeout(None);
        self.wait(self.limit, async {
            match self.client.send_request(subject, request).await {
                Ok(answer) => Ok(Some(answer)),
                Err(error) => match error.kind() {
                    RequestErrorKind::NoResponders => Ok(None),
                    RequestErrorKind::TimedOut => Err(self.late()),
                    RequestErrorKind::Other => Err(self.lost(millstream_common::describe_chain(&error))),
                    _ => {
                        let message = millstream_common::describe_chain(&error);
                        Err(NatsError::Refused { place: self.place.clone(), message })
                    }
                },
            }
        })
    }

    /// Puts a question to JetStream, such as `STREAM.INFO.orders`; inside is what it refuses.
    pub(super) fn ask<T: DeserializeOwned>(
        &self,
        what: &str,
        question: &Value,
    ) -> Result<Result<T, ApiError>, NatsError> {
        let payload = if question.is_null() { Bytes::new() } else { Bytes::from(question.to_string()) };
        let Some(answer) = self.request(self.api_subject(what), HeaderMap::new(), payload)? else {
            let message = format!("nobody answers to `{}`", self.api_subject(what));
            return Err(NatsError::NoJetStream { place: self.place.clone(), message });
        };
        self.answered(&answer.payload)
    }

    /// The subject of a question to JetStream.
    pub(super) fn api_subject(&self, what: &str) -> String {
        format!("{}.{what}", self.api)
    }

    /// What JetStream answered.
    pub(super) fn answered<T: DeserializeOwned>(&self, answer: &[u8]) -> Result<Result<T, ApiError>, NatsError> {
        #[derive(Deserialize)]
        struct Refusal {
            error: Option<ApiError>,
        }
        let strange = |error: serde_json::Error| self.strange(format!("its answer is not understood: {error}"));
        match serde_json::from_slice::<Refusal>(answer).map_err(strange)?.error {
            Some(error) => Ok(Err(error)),
            None => serde_json::from_slice(answer).map(Ok).map_err(strange),
        }
    }

    /// The error that JetStream's refusal is.
    pub(super) fn refused(&self, error: ApiError) -> NatsError {
        NatsError::of_api(&self.place, error)
    }
}

/// What to connect with.
fn options(address: &NatsAddress) -> Result<ConnectOptions, NatsError> {
    let place = address.place();
    let mut options = ConnectOptions::new()
        .connection_timeout(address.connect_timeout)
        .request_timeout(None)
        // Only what the user has named is known to be theirs.
        .ignore_discovered_servers()
        .require_tls(address.tls);
    let own = address.certificate.as_ref().map(|(certificate, key)| (certificate.as_str(), key.as_str()));
    match proving_config(address.root_certificates.as_deref(), own) {
        Ok(config) => options = options.tls_client_config(config),
        Err(source) if address.tls => return Err(NatsError::Tls { place, source }),
        // It is only needed when the server demands it.
        Err(_) => {}
    }
    if let Some(prefix) = &address.inbox_prefix {
        options = options.custom_inbox_prefix(prefix);
    }
    let unusable =
        |file: &str, reason: String| NatsError::Credentials { place: place.clone(), file: file.to_owned(), reason };
    let read = |file: &str| std::fs::read_to_string(file).map_err(|error| unusable(file, error.to_string()));
    Ok(match &address.login {
        Login::Nobody => options,
        Login::User { name, password } => options.user_and_password(name.clone(), password.reveal().to_owned()),
        Login::Token(token) => options.token(token.reveal().to_owned()),
        Login::Nkey(file) => options.nkey(read(file)?.trim().to_owned()),
        Login::Credentials(file) => {
            // What the client says against it may have parts of it.
            let text = read(file)?;
            options.credentials(&text).map_err(|_| unusable(file, "it has no token and key of a user".to_owned()))?
        }
    })
}

/// Remembers what the client tells.
fn note(signs: &watch::Sender<Signs>, event: &Event) {
    let (broken, said) = match event {
        Event::Disconnected | Event::Closed => (Some("the other side is gone".to_owned()), None),
        // The client has dropped messages.
        Event::SlowConsumer(_) => (Some("more messages came than were taken".to_owned()), None),
        Event::ServerError(ServerError::Other(said)) => (None, Some(said.clone())),
        Event::ServerError(ServerError::AuthorizationViolation) => (None, Some("Authorization Violation".to_owned())),
        _ => return,
    };
    signs.send_modify(|signs| {
        signs.broken = signs.broken.take().or(broken);
        signs.said = said.or(signs.said.take());
    });
}
