//! Requests of plugins to the hosts that they were granted.
//!
//! Rule of its life: a request goes to a host that a pattern names, at an address that is public unless private ones
//! were granted; the address that was checked is the one that is connected to. Redirects are answers, not followed.
//! All requests of a call end with its deadline at the latest.
//!
//! Answers of the world differ from one day to the next: a batch that is run again may get others.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use millstream_common::{Digest, find_cause};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Method, Url};
use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lift, Lower};

use crate::limits::HostState;
use crate::wasi::Denied;

/// Requests in one call of `send`, and how many of them are under way at a time.
const REQUESTS: usize = 256;
const AT_A_TIME: usize = 16;

/// Headers that say where a request goes and how it is carried. A server of many names answers by `Host`, whatever name was
/// granted.
const OF_THE_HOST: [HeaderName; 7] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Where a plugin may send requests to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpGrant {
    /// The hosts.
    pub hosts: Vec<HostPattern>,
    /// Whether addresses of private networks and of this machine may be reached.
    pub private: bool,
    /// Bytes of one response.
    pub response_bytes: u64,
}

/// Certificates as PEM.
type Authorities = Option<Arc<[u8]>>;

/// A host, or all hosts below one: `api.example.com`, `*.example.com`, `example.com:8443`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: String,
    below: bool,
    port: Option<u16>,
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (below, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        let bad = || format!("`{text}` is no host: write `api.example.com`, `*.example.com` or `example.com:8443`");
        // What a URL makes of it is what requests will be compared with.
        let url = Url::parse(&format!("http://{rest}/")).map_err(|_| bad())?;
        let host = url.host_str().filter(|host| !host.contains('*')).ok_or_else(bad)?;
        let tail = rest.rsplit_once(':').filter(|(head, _)| !rest.ends_with(']') && !head.is_empty());
        let port = tail.map(|(_, port)| port.parse::<u16>().map_err(|_| bad())).transpose()?;
        let plain = url.path() == "/" && url.username().is_empty() && url.query().is_none() && url.fragment().is_none();
        if !plain || below && host.parse::<IpAddr>().is_ok() {
            return Err(bad());
        }
        Ok(Self { host: host.to_owned(), below, port })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.below { "*." } else { "" }, self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl HostPattern {
    fn matches(&self, host: &str, port: u16) -> bool {
        let named = if self.below {
            host.strip_suffix(&self.host).is_some_and(|head| head.len() > 1 && head.ends_with('.'))
        } else {
            host == self.host
        };
        named && self.port.is_none_or(|granted| granted == port)
    }
}

#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(super) struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    #[component(name = "timeout-ms")]
    timeout_ms: u32,
}

#[derive(Debug, ComponentType, Lower)]
#[component(record)]
pub(super) struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, ComponentType, Lower)]
#[component(variant)]
pub(super) enum Failure {
    #[component(name = "denied")]
    Denied(String),
    #[component(name = "unreachable")]
    Unreachable(String),
    #[component(name = "too-large")]
    TooLarge(String),
}

type Answers = Vec<Result<Response, Failure>>;

/// The import `send`.
pub(super) fn send(
    store: StoreContextMut<'_, HostState>,
    (requests,): (Vec<Request>,),
) -> wasmtime::Result<(Answers,)> {
    let state = store.data();
    let grant = state.permissions.http.clone().ok_or(Denied("it sends requests, which it was not granted"))?;
    if requests.len() > REQUESTS {
        return Err(Denied("it sends more than 256 requests at once").into());
    }
    let limits = (state.deadline, state.memory_limit() as u64);
    Ok((send_all((&grant, &state.permissions.http_authorities), requests, limits)?,))
}

/// `room` is what all responses together may have: they are held here until the guest has them.
fn send_all(
    (grant, authorities): (&HttpGrant, &Authorities),
    requests: Vec<Request>,
    (deadline, room): (Instant, u64),
) -> wasmtime::Result<Answers> {
    let room = Arc::new(AtomicU64::new(room));
    static RUNTIME: LazyLock<std::io::Result<tokio::runtime::Runtime>> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).max_blocking_threads(8).thread_name("millstream-http").enable_all().build()
    });
    let runtime = RUNTIME.as_ref().map_err(|e| wasmtime::format_err!("no thread for requests: {e}"))?;
    let client = client(grant.private, authorities)?;
    let mut answers = Vec::with_capacity(requests.len());
    let mut requests = requests.into_iter().peekable();
    while requests.peek().is_some() {
        let (sender, receiver) = sync_channel(AT_A_TIME);
        let mut tasks = Vec::new();
        for (place, request) in requests.by_ref().take(AT_A_TIME).enumerate() {
            let (client, grant, room, sender) = (client.clone(), grant.clone(), Arc::clone(&room), sender.clone());
            tasks.push(runtime.spawn(async move {
                let answer = send_one(&client, (&grant, &room), request, deadline).await;
                // Nobody listens any more when the call was given up.
                let _ = sender.send((place, answer));
            }));
        }
        drop(sender);
        let late = || Err(Failure::Unreachable("no answer in time".into()));
        let mut group: Answers = tasks.iter().map(|_| late()).collect();
        for _ in 0..tasks.len() {
            match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((place, answer)) => group[place] = answer,
                // The time is over, or a task fell.
                Err(_) => break,
            }
        }
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        answers.extend(group);
    }
    Ok(answers)
}

/// What tells clients apart: whether private addresses may be reached, and which authorities are trusted.
type ClientKind = (bool, Option<Digest>);

/// One client for each kind of grant: connections are kept, and never to an address that was not checked, nor to one
/// that showed a certificate of an authority that this grant does not trust.
fn client(private: bool, authorities: &Authorities) -> wasmtime::Result<Client> {
    static CLIENTS: LazyLock<Mutex<HashMap<ClientKind, Client>>> = LazyLock::new(Mutex::default);
    let kind = (private, authorities.as_ref().map(|pem| Digest::of(pem)));
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&kind) {
        return Ok(client.clone());
    }
    let client = make_client(private, authorities.as_deref())
        .map_err(|e| wasmtime::format_err!("no client for requests: {}", chain(&e)))?;
    clients.insert(kind, client.clone());
    Ok(client)
}

fn make_client(private: bool, authorities: Option<&[u8]>) -> reqwest::Result<Client> {
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .dns_resolver(Arc::new(Resolver { private }))
        .connect_timeout(Duration::from_secs(10))
        .pool_idle_timeout(Duration::from_secs(30));
    if let Some(pem) = authorities {
        for authority in Certificate::from_pem_bundle(pem)? {
            builder = builder.add_root_certificate(authority);
        }
    }
    builder.build()
}

/// Whether requests could be sent with these certificates, PEM, trusted.
///
/// # Errors
/// What is wrong with them.
pub fn check_authorities(pem: &[u8]) -> Result<(), String> {
    match Certificate::from_pem_bundle(pem) {
        Ok(found) if found.is_empty() => return Err("there is no certificate in it".into()),
        Ok(_) => {}
        Err(error) => return Err(chain(&error)),
    }
    make_client(false, Some(pem)).map(drop).map_err(|error| chain(&error))
}

async fn send_one(
    client: &Client,
    (grant, room): (&HttpGrant, &AtomicU64),
    request: Request,
    deadline: Instant,
) -> Result<Response, Failure> {
    let url = check(grant, &request.url)?;
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| Failure::Denied(format!("`{}` is no method", shown(&request.method))))?;
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let bad = || Failure::Denied(format!("header `{}` cannot be sent", shown(name)));
        let name = HeaderName::from_str(name).map_err(|_| bad())?;
        if OF_THE_HOST.contains(&name) {
            return Err(bad());
        }
        headers.append(name, HeaderValue::from_str(value).map_err(|_| bad())?);
    }
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = left.min(Duration::from_millis(request.timeout_ms.into()));
    let broken = |e: reqwest::Error| {
        let denied = std::error::Error::source(&e).and_then(denied_address);
        denied.map_or_else(|| Failure::Unreachable(chain(&e)), Failure::Denied)
    };
    let request = client.request(method, url).headers(headers).body(request.body).timeout(timeout);
    let mut response = request.send().await.map_err(broken)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if (body.len() + chunk.len()) as u64 > grant.response_bytes {
            return Err(Failure::TooLarge(format!("the response has more than {} bytes", grant.response_bytes)));
        }
        let taken =
            room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(chunk.len() as u64));
        if taken.is_err() {
            return Err(Failure::TooLarge(
                "the responses of one call have more bytes than the plugin has memory".into(),
            ));
        }
        body.extend_from_slice(&chunk);
    }
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    Ok(Response { status: response.status().as_u16(), headers, body })
}

/// The URL, if its host was granted. An address in the place of a name is checked here, names when they are resolved.
fn check(grant: &HttpGrant, url: &str) -> Result<Url, Failure> {
    let denied = |reason: &str| Failure::Denied(format!("`{}` {reason}", shown(url)));
    let parsed = Url::parse(url).map_err(|_| denied("is no URL"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(denied("is neither http nor https"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(denied("has a user; send a header instead"));
    }
    let host = parsed.host_str().unwrap_or_default();
    let port = parsed.port_or_known_default().unwrap_or_default();
    if !grant.hosts.iter().any(|pattern| pattern.matches(host, port)) {
        return Err(denied("is at a host that was not granted"));
    }
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    if address.is_ok_and(|address| !grant.private && !is_public(address)) {
        return Err(denied("is at a private address"));
    }
    Ok(parsed)
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    shown(&text)
}

/// Looks names up, and keeps what may be connected to.
struct Resolver {
    private: bool,
}

/// A name leads to private addresses only.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is at a private address")]
struct PrivateAddress(String);

fn denied_address(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    find_cause::<PrivateAddress>(error).map(ToString::to_string)
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let private = self.private;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let granted: Vec<SocketAddr> =
                found.iter().copied().filter(|address| private || is_public(address.ip())).collect();
            if granted.is_empty() && !found.is_empty() {
                return Err(PrivateAddress(name.as_str().to_owned()).into());
            }
            Ok(Box::new(granted.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is somewhere in the world: not of this machine, of a private network, or special.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast();
    // This network, shared by carriers, of protocols, of benchmarks, reserved.
    let reserved =
        a == 0 || a == 100 && b & 0xc0 == 64 || (a, b, c) == (192, 0, 0) || a == 198 && b & 0xfe == 18 || a >= 240;
    !special && !reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // Addresses that carry one of the fourth version are judged by that one.
    let segments = address.segments();
    let carried = match segments {
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] if high != 0 => Some((high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some((high, low)),
        [0x2002, high, low, ..] => Some((high, low)),
        _ => None,
    };
    if let Some((high, low)) = carried {
        return is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    }
    // Global unicast is 2000::/3; of that, documentation and tunnels are not.
    segments[0] & 0xe000 == 0x2000 && !(segments[0] == 0x2001 && (segments[1] == 0xdb8 || segments[1] < 0x200))
}

#[cfg(test)]
mod tests;
