//! Who we are to a registry: what `docker login`, `podman login` or a credential helper left for it.
//!
//! The first of these that knows the registry: the variable `DOCKER_AUTH_CONFIG` (a `config.json` as text), the file of
//! `REGISTRY_AUTH_FILE`, `config.json` in `DOCKER_CONFIG` or in `.docker`, and the file of podman.

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Who we are.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Credentials {
    /// Nobody.
    Anonymous,
    /// A user with a password.
    User { name: String, password: String },
    /// A token that is given for others.
    Token(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::User { .. } => "User",
            Self::Token(_) => "Token",
        })
    }
}

/// What the environment of this process knows of us. A helper that does not answer is given up after `time`.
pub(super) fn of_process(registry: &str, time: Duration) -> Result<Credentials, String> {
    let (sender, receiver) = sync_channel(1);
    let asked = registry.to_owned();
    let ask = move || {
        // Nobody listens any more when it took too long.
        let _ = sender.send(of(&asked, &|name| std::env::var_os(name)));
    };
    let spawned = std::thread::Builder::new().name("credentials".into()).spawn(ask);
    spawned.map_err(|error| format!("no thread to ask for them: {error}"))?;
    receiver.recv_timeout(time).unwrap_or_else(|_| Err(format!("a helper did not answer within {time:?}")))
}

/// What is known of us; the reason when it cannot be used. `env` is the environment.
fn of(registry: &str, env: &dyn Fn(&str) -> Option<OsString>) -> Result<Credentials, String> {
    // The name under which the registry of Docker has always been kept.
    let server = if registry == "docker.io" { "https://index.docker.io/v1/" } else { registry };
    if let Some(text) = env("DOCKER_AUTH_CONFIG").filter(|text| !text.is_empty()) {
        let text = text.to_string_lossy().into_owned();
        if let Some(found) = known(get_credential_from_reader(text.as_bytes(), server), "DOCKER_AUTH_CONFIG")? {
            return Ok(found);
        }
    }
    for file in files(env) {
        let Ok(opened) = File::open(&file) else { continue };
        let found = get_credential_from_reader(BufReader::new(opened), server);
        if let Some(found) = known(found, &file.display().to_string())? {
            return Ok(found);
        }
    }
    Ok(Credentials::Anonymous)
}

fn files(env: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let mut files: Vec<PathBuf> = folder("REGISTRY_AUTH_FILE").into_iter().collect();
    files.extend(
        folder("DOCKER_CONFIG").or_else(|| Some(folder("HOME")?.join(".docker"))).map(|dir| dir.join("config.json")),
    );
    files.extend(folder("XDG_RUNTIME_DIR").map(|dir| dir.join("containers/auth.json")));
    files
}

fn known(
    found: Result<DockerCredential, CredentialRetrievalError>,
    place: &str,
) -> Result<Option<Credentials>, String> {
    match found {
        Ok(DockerCredential::UsernamePassword(name, password)) => Ok(Some(Credentials::User { name, password })),
        Ok(DockerCredential::IdentityToken(token)) => Ok(Some(Credentials::Token(token))),
        Err(CredentialRetrievalError::NoCredentialConfigured) => Ok(None),
        // What a helper says may have secrets in it.
        Err(CredentialRetrievalError::HelperFailure { helper, .. }) => {
            Err(format!("`{helper}`, which `{place}` names, has failed"))
        }
        Err(error) => Err(format!("`{place}`: {}", error.to_string().to_lowercase())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Credentials {
        Credentials::User { name: name.into(), password: "secret".into() }
    }

    // "ann:secret" and "bob:secret".
    const ANN: &str = r#"{"auths": {"localhost:5000": {"auth": "YW5uOnNlY3JldA=="}}}"#;
    const BOB: &str = r#"{"auths": {"localhost:5000": {"auth": "Ym9iOnNlY3JldA=="}, "other": {"auth": "%"}}}"#;

    fn of_environment(registry: &str, variables: &[(&str, &str)]) -> Result<Credentials, String> {
        of(registry, &|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into()))
    }

    #[test]
    fn the_first_place_that_knows_the_registry_says_who_we_are() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), BOB).unwrap();
        let docker = ("DOCKER_CONFIG", folder.path().to_str().unwrap());
        let is = |registry: &str, variables: &[(&str, &str)], wanted: Credentials| {
            assert!(of_environment(registry, variables).unwrap() == wanted);
        };
        is("localhost:5000", &[], Credentials::Anonymous);
        is("localhost:5000", &[docker], user("bob"));
        is("localhost:5000", &[("DOCKER_AUTH_CONFIG", ANN), docker], user("ann"));
        is("localhost:5001", &[("DOCKER_AUTH_CONFIG", ANN), docker], Credentials::Anonymous);
        assert!(of_environment("other", &[docker]).unwrap_err().contains("config.json"));
        assert!(of_environment("other", &[("DOCKER_AUTH_CONFIG", "{")]).unwrap_err().contains("DOCKER_AUTH_CONFIG"));
        let helper = r#"{"credHelpers": {"helped": "there-is-none-of-this-name"}}"#;
        assert!(of_environment("helped", &[("DOCKER_AUTH_CONFIG", helper)]).is_err());
    }
}
