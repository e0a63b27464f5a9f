//! A broker that lets users in by TLS and SCRAM only, beside the plain listener that the tests themselves use.
//!
//! ```text
//!   outside   SASL_SSL, SCRAM-SHA-256    alice may do everything, bob nothing
//!   plain     for the tests: topics, and records to look at
//! ```
//!
//! Certificates are made for the cluster, in its folder, and end with it.

use crate::jars;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The password of every user, and of the stores.
const PASSWORD: &str = "open sesame";

/// The files that clients need, and who may come in.
#[derive(Debug)]
pub struct Secured {
    /// The address for users.
    pub address: String,
    /// The certificate that the broker's is signed by, as PEM.
    pub authority: PathBuf,
    /// One that has signed nothing.
    pub stranger: PathBuf,
}

impl Secured {
    /// Options of a user of the outside listener, for source and sink.
    pub fn options(&self, user: &str, password: &str) -> Vec<(String, String)> {
        let login = format!(
            "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"{user}\" password=\"{password}\";"
        );
        let said = [
            ("kafka.bootstrap.servers", self.address.clone()),
            ("kafka.security.protocol", "SASL_SSL".to_owned()),
            ("kafka.sasl.mechanism", "SCRAM-SHA-256".to_owned()),
            ("kafka.sasl.jaas.config", login),
            ("kafka.ssl.truststore.location", self.authority.display().to_string()),
        ];
        said.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// The password that users have.
    pub fn password() -> &'static str {
        PASSWORD
    }
}

/// What a broker with such a listener on a port is told, beside what all are.
pub(crate) fn properties(folder: &Path, (plain, controller, outside): (u16, u16, u16)) -> Vec<(String, String)> {
    let listener = |name: &str| format!("listener.name.outside.{name}");
    let said = [
        (
            "listeners".to_owned(),
            format!("BROKER://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},OUTSIDE://127.0.0.1:{outside}"),
        ),
        ("advertised.listeners".to_owned(), format!("BROKER://127.0.0.1:{plain},OUTSIDE://127.0.0.1:{outside}")),
        (
            "listener.security.protocol.map".to_owned(),
            "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,OUTSIDE:SASL_SSL".to_owned(),
        ),
        (listener("sasl.enabled.mechanisms"), "SCRAM-SHA-256".to_owned()),
        (
            listener("scram-sha-256.sasl.jaas.config"),
            "org.apache.kafka.common.security.scram.ScramLoginModule required;".to_owned(),
        ),
        (listener("ssl.keystore.location"), folder.join("broker.p12").display().to_string()),
        (listener("ssl.keystore.type"), "PKCS12".to_owned()),
        (listener("ssl.keystore.password"), PASSWORD.to_owned()),
        (listener("ssl.key.password"), PASSWORD.to_owned()),
        ("authorizer.class.name".to_owned(), "org.apache.kafka.metadata.authorizer.StandardAuthorizer".to_owned()),
        // Whoever comes by the plain listener has no name.
        ("super.users".to_owned(), "User:ANONYMOUS;User:alice".to_owned()),
    ];
    said.into()
}

/// What the broker's folder is made with, so that the users are there from the start.
pub(crate) fn users() -> Vec<String> {
    let user = |name: &str| ["--add-scram".to_owned(), format!("SCRAM-SHA-256=[name={name},password={PASSWORD}]")];
    ["alice", "bob"].iter().flat_map(|name| user(name)).collect()
}

/// Makes a key with a certificate that it has signed itself, and writes the certificate as PEM.
pub(crate) fn certificate(folder: &Path, name: &str) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let (store, pem) = (folder.join(format!("{name}.p12")), folder.join(format!("{name}.pem")));
    let keytool = |arguments: &[&str]| -> Result<()> {
        let mut command = Command::new(jars::java().with_file_name("keytool"));
        command.args(arguments).args(["-alias", name, "-storepass", PASSWORD, "-keystore"]).arg(&store);
        let output = command.stdin(Stdio::null()).output().context("keytool, which comes with Java, does not start")?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "keytool fails: {said}{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    };
    keytool(&[
        "-genkeypair",
        "-keyalg",
        "EC",
        "-dname",
        &format!("CN={name}"),
        "-ext",
        "SAN=ip:127.0.0.1,dns:localhost",
        "-ext",
        "bc:c=ca:true",
        "-validity",
        "30",
        "-storetype",
        "PKCS12",
    ])?;
    keytool(&["-exportcert", "-rfc", "-file", pem.to_str().context("the folder is no UTF-8")?])?;
    Ok(pem)
}
