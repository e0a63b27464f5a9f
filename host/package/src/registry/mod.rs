//! A registry of containers, which keeps packages of plugins as well: pull, push, and the signatures beside them.
//!
//! Below the query file and the commands. Calls block; each runs its requests on a thread of its own, so it does not matter
//! whether the caller is inside of an asynchronous runtime.
//!
//! Rule of its life: a registry is hostile. Each answer has a limit of size and of time, each body is compared with the
//! digest that was promised, credentials go to the registry that they are for, and a redirect is followed only to fetch
//! bytes whose digest is known, without credentials.
//!
//! It keeps nothing and believes no signature: that is for whoever asks.

mod challenge;
mod credentials;
mod exchange;

use crate::manifest::{self, MANIFEST, MANIFEST_BYTES, PackageManifest};
use crate::signature::{ImageSignature, SIGNATURE_ANNOTATION, SIMPLE_SIGNING, signature_tag};
use crate::{PackageError, PackageReference};
use bytes::Bytes;
use exchange::{Answer, Exchange, Want};
use millstream_common::Digest;
use oci_spec::image::ImageManifest;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

/// Signatures of one package that are looked at.
const SIGNATURES: usize = 32;
/// Bytes of a payload that is signed.
const PAYLOAD_BYTES: u64 = 64 << 10;
const OCTETS: &str = "application/octet-stream";

/// How registries are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryOptions {
    /// Registries that speak plain HTTP, as host and port. Those of this machine do without being named.
    pub plain_http: Vec<String>,
    /// The registries that packages may come from; all when it is not said.
    pub allow: Option<Vec<String>>,
    /// Bytes of a component.
    pub component_bytes: u64,
    /// How long one operation may take.
    pub time: Duration,
    /// How long nothing may come.
    pub idle: Duration,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        Self {
            plain_http: Vec::new(),
            allow: None,
            component_bytes: 256 << 20,
            time: Duration::from_secs(300),
            idle: Duration::from_secs(30),
        }
    }
}

/// Registries, as the operator lets us use them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registry {
    options: RegistryOptions,
}

/// Where a reference leads now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The digest of the manifest.
    pub digest: Digest,
    /// Its bytes.
    pub manifest: Vec<u8>,
    /// What it says.
    pub package: PackageManifest,
}

/// A package that has come whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// Where the reference led.
    pub resolved: Resolved,
    /// The component.
    pub component: Vec<u8>,
}

/// A package that is to be pushed.
#[derive(Debug, Clone, Copy)]
pub struct NewPackage<'a> {
    /// The component.
    pub component: &'a [u8],
    /// The interfaces that it imports.
    pub imports: &'a [String],
    /// The interfaces that it exports.
    pub exports: &'a [String],
}

impl Registry {
    /// Registries under options.
    pub fn new(options: RegistryOptions) -> Self {
        Self { options }
    }

    /// The options.
    pub fn options(&self) -> &RegistryOptions {
        &self.options
    }

    /// Where a reference leads now.
    ///
    /// # Errors
    /// When the registry cannot be reached, has no such package, or answers with something else.
    pub fn resolve(&self, reference: &PackageReference) -> Result<Resolved, PackageError> {
        self.exchange(reference, "pull", async |exchange| resolve(exchange, reference).await)
    }

    /// The component that a manifest names.
    ///
    /// # Errors
    /// When the registry cannot be reached, or the bytes are others or too many.
    pub fn component(&self, reference: &PackageReference, package: PackageManifest) -> Result<Vec<u8>, PackageError> {
        let limit = self.options.component_bytes;
        self.exchange(reference, "pull", async |exchange| {
            let what = format!("the component of `{reference}`");
            if package.size > limit {
                return Err(PackageError::TooLarge { registry: reference.registry().to_owned(), what, limit });
            }
            blob(exchange, reference, package.component, package.size, &what).await
        })
    }

    /// The signatures that the registry has of a manifest; none when there is no tag for them.
    ///
    /// # Errors
    /// When the registry cannot be reached, or answers with something else.
    pub fn signatures(
        &self,
        reference: &PackageReference,
        manifest: Digest,
    ) -> Result<Vec<ImageSignature>, PackageError> {
        self.exchange(reference, "pull", async |exchange| {
            let (tag, what) = (signature_tag(manifest), format!("the signatures of `{reference}`"));
            let Some(bytes) = fetch_manifest(exchange, reference, &tag, &what).await? else { return Ok(Vec::new()) };
            let bad = |reason: String| exchange::bad_answer(reference, &what, reason);
            let found: ImageManifest = serde_json::from_slice(&bytes)
                .map_err(|error| bad(format!("they do not have the form of a manifest: {error}")))?;
            let mut signatures = Vec::new();
            // The newest stand last.
            for layer in found.layers().iter().rev().take(SIGNATURES) {
                let annotations = layer.annotations().as_ref();
                let signature = annotations.and_then(|annotations| annotations.get(SIGNATURE_ANNOTATION));
                let Some(signature) = signature.filter(|_| layer.media_type().as_ref() == SIMPLE_SIGNING) else {
                    continue;
                };
                let digest = manifest::sha256(layer).map_err(bad)?;
                if layer.size() > PAYLOAD_BYTES {
                    return Err(bad(format!("a payload of {} bytes", layer.size())));
                }
                let payload = blob(exchange, reference, digest, layer.size(), &what).await?;
                signatures.push(ImageSignature { payload, signature: signature.clone() });
            }
            Ok(signatures)
        })
    }

    /// Puts a package where a reference with a tag leads.
    ///
    /// # Errors
    /// When the reference has no tag, the registry cannot be reached, or does not take it.
    pub fn push(&self, reference: &PackageReference, package: NewPackage<'_>) -> Result<Digest, PackageError> {
        let tag = match (reference.tag(), reference.digest()) {
            (Some(tag), None) => tag.to_owned(),
            _ => {
                let reason = "a package is pushed to a tag, and its digest follows from its bytes".to_owned();
                return Err(PackageError::Reference { text: reference.to_string(), reason });
            }
        };
        self.exchange(reference, "pull,push", async |exchange| {
            let (config, manifest) = manifest::make(package.component, package.imports, package.exports);
            push_blob(exchange, reference, Bytes::copy_from_slice(package.component)).await?;
            push_blob(exchange, reference, config.into()).await?;
            push_manifest(exchange, reference, &tag, manifest).await
        })
    }

    /// Adds a signature to those of a manifest.
    ///
    /// # Errors
    /// When the registry cannot be reached, or does not take it.
    pub fn push_signature(
        &self,
        reference: &PackageReference,
        manifest: Digest,
        signature: &ImageSignature,
    ) -> Result<(), PackageError> {
        self.exchange(reference, "pull,push", async |exchange| {
            let (tag, what) = (signature_tag(manifest), format!("the signatures of `{reference}`"));
            let there = fetch_manifest(exchange, reference, &tag, &what).await?;
            let there = there.map(|bytes| serde_json::from_slice::<ImageManifest>(&bytes)).transpose();
            let there = there.map_err(|error| {
                let reason = format!("they do not have the form of a manifest: {error}");
                exchange::bad_answer(reference, &what, reason)
            })?;
            let mut layers = there.map(|manifest| manifest.layers().clone()).unwrap_or_default();
            let mut layer = manifest::descriptor(SIMPLE_SIGNING, &signature.payload);
            let annotation = (SIGNATURE_ANNOTATION.to_owned(), signature.signature.clone());
            layer.set_annotations(Some(HashMap::from([annotation])));
            layers.push(layer);
            let config = signature_config(&layers);
            push_blob(exchange, reference, Bytes::copy_from_slice(&signature.payload)).await?;
            push_blob(exchange, reference, config.clone().into()).await?;
            let config = manifest::descriptor("application/vnd.oci.image.config.v1+json", &config);
            push_manifest(exchange, reference, &tag, manifest::image(config, layers)).await?;
            Ok(())
        })
    }

    /// Runs requests to the registry of a reference, on a thread of its own.
    fn exchange<T: Send>(
        &self,
        reference: &PackageReference,
        actions: &str,
        requests: impl AsyncFnOnce(&mut Exchange) -> Result<T, PackageError> + Send,
    ) -> Result<T, PackageError> {
        let registry = reference.registry();
        if self.options.allow.as_ref().is_some_and(|allowed| !allowed.iter().any(|name| name == registry)) {
            return Err(PackageError::RegistryNotAllowed { registry: registry.to_owned() });
        }
        let options = &self.options;
        on_a_thread(reference, move || async move {
            let mut exchange = Exchange::new(options, reference, actions)?;
            requests(&mut exchange).await
        })
    }
}

/// Runs a future to its end on a thread that belongs to no runtime.
fn on_a_thread<T: Send, F: Future<Output = Result<T, PackageError>>>(
    reference: &PackageReference,
    future: impl FnOnce() -> F + Send,
) -> Result<T, PackageError> {
    let broken = |reason: String| PackageError::BadAnswer {
        registry: reference.registry().to_owned(),
        what: format!("`{reference}`"),
        reason,
    };
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| broken(format!("no runtime for requests: {error}")))?;
            runtime.block_on(future())
        };
        let joined = scope.spawn(run).join();
        joined.unwrap_or_else(|_| Err(broken("the thread for requests fell".to_owned())))
    })
}

async fn resolve(exchange: &mut Exchange, reference: &PackageReference) -> Result<Resolved, PackageError> {
    let what = format!("package `{reference}`");
    let manifest = fetch_manifest(exchange, reference, &reference.wanted(), &what).await?;
    let manifest = manifest
        .ok_or_else(|| PackageError::NotFound { registry: reference.registry().to_owned(), what: what.clone() })?;
    let digest = Digest::of(&manifest);
    if let Some(wanted) = reference.digest().filter(|wanted| *wanted != digest) {
        return Err(wrong_digest(reference, &what, wanted, digest));
    }
    let package = PackageManifest::of(reference, &manifest)?;
    Ok(Resolved { digest, manifest, package })
}

/// A manifest by tag or digest; `None` when there is none.
async fn fetch_manifest(
    exchange: &mut Exchange,
    reference: &PackageReference,
    wanted: &str,
    what: &str,
) -> Result<Option<Vec<u8>>, PackageError> {
    let want = Want::new(Method::GET, exchange.url(&format!("manifests/{wanted}"))?, what);
    let accept =
        HeaderValue::from_static("application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json");
    let mut answer = exchange.send(want.with(ACCEPT, accept)).await?;
    if answer.status() == 404 {
        return Ok(None);
    }
    answer.expect(&[200]).await?;
    let bytes = answer.body(MANIFEST_BYTES).await?;
    // A registry that says what it gives must mean it.
    let told = answer.header("docker-content-digest").and_then(|told| told.strip_prefix("sha256:")?.parse().ok());
    let found = Digest::of(&bytes);
    match told {
        Some(told) if told != found => Err(wrong_digest(reference, what, told, found)),
        _ => Ok(Some(bytes)),
    }
}

/// Bytes by their digest.
async fn blob(
    exchange: &mut Exchange,
    reference: &PackageReference,
    digest: Digest,
    size: u64,
    what: &str,
) -> Result<Vec<u8>, PackageError> {
    let url = exchange.url(&format!("blobs/sha256:{digest}"))?;
    // Large registries keep bytes elsewhere; what comes from there is known by its digest.
    let mut answer = exchange.send(Want::new(Method::GET, url, what).following()).await?;
    answer.expect(&[200]).await?;
    let bytes = answer.body(size).await?;
    let found = Digest::of(&bytes);
    if found != digest {
        return Err(wrong_digest(reference, what, digest, found));
    }
    Ok(bytes)
}

async fn push_blob(exchange: &mut Exchange, reference: &PackageReference, bytes: Bytes) -> Result<(), PackageError> {
    let digest = Digest::of(&bytes);
    let what = format!("a place for a part of `{reference}`");
    let url = exchange.url(&format!("blobs/sha256:{digest}"))?;
    // A registry that keeps bytes elsewhere tells where they are, when it has them.
    let answer = exchange.send(Want::new(Method::HEAD, url, &what)).await?;
    if answer.status() == 200 || answer.is_elsewhere() {
        return Ok(());
    }
    let mut answer = exchange.send(Want::new(Method::POST, exchange.url("blobs/uploads/")?, &what)).await?;
    answer.expect(&[202]).await?;
    let mut url = exchange.location(&answer)?;
    url.query_pairs_mut().append_pair("digest", &format!("sha256:{digest}"));
    let want = Want::new(Method::PUT, url, &what).with(CONTENT_TYPE, HeaderValue::from_static(OCTETS)).body(bytes);
    exchange.send(want).await?.expect(&[201]).await
}

async fn push_manifest(
    exchange: &mut Exchange,
    reference: &PackageReference,
    tag: &str,
    manifest: Vec<u8>,
) -> Result<Digest, PackageError> {
    let (digest, what) = (Digest::of(&manifest), format!("a place for the manifest of `{reference}`"));
    let want = Want::new(Method::PUT, exchange.url(&format!("manifests/{tag}"))?, &what);
    let want = want.with(CONTENT_TYPE, HeaderValue::from_static(MANIFEST)).body(manifest.into());
    let mut answer: Answer = exchange.send(want).await?;
    answer.expect(&[201]).await?;
    Ok(digest)
}

/// What cosign writes as the configuration of signatures: an image without files.
fn signature_config(layers: &[oci_spec::image::Descriptor]) -> Vec<u8> {
    let files: Vec<String> = layers.iter().map(|layer| layer.digest().to_string()).collect();
    let config = serde_json::json!({
        "architecture": "",
        "config": {},
        "created": "0001-01-01T00:00:00Z",
        "history": files.iter().map(|_| serde_json::json!({"created": "0001-01-01T00:00:00Z"})).collect::<Vec<_>>(),
        "os": "",
        "rootfs": {"type": "layers", "diff_ids": files},
    });
    config.to_string().into_bytes()
}

fn wrong_digest(reference: &PackageReference, what: &str, wanted: Digest, found: Digest) -> PackageError {
    PackageError::WrongDigest { registry: reference.registry().to_owned(), what: what.to_owned(), wanted, found }
}

#[cfg(test)]
mod tests;
