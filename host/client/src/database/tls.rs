//! TLS for connections to servers, by the modes that the users of databases know.

use super::TlsMode;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, WantsVerifier,
};
use std::sync::Arc;

/// What goes wrong with files and settings of TLS.
type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// The configuration of a client that trusts as `mode` says.
pub(crate) fn client_config(mode: TlsMode, root_certificates: Option<&str>) -> Result<ClientConfig, Trouble> {
    if mode == TlsMode::VerifyFull {
        return proving_config(root_certificates, None);
    }
    let (builder, provider) = builder()?;
    let anyone = Arc::new(Anyone { provider });
    Ok(builder.dangerous().with_custom_certificate_verifier(anyone).with_no_client_auth())
}

/// The configuration of a client to which the server must prove its name, and which proves its own if there are files with
/// its certificate and the key for it.
pub(crate) fn proving_config(
    root_certificates: Option<&str>,
    own: Option<(&str, &str)>,
) -> Result<ClientConfig, Trouble> {
    let mut roots = RootCertStore::empty();
    match root_certificates {
        Some(file) => {
            for certificate in CertificateDer::pem_file_iter(file)? {
                roots.add(certificate?)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err("there are no certificates to trust; name a file of them with `sslrootcert`".into());
    }
    let builder = builder()?.0.with_root_certificates(roots);
    let Some((certificate, key)) = own else { return Ok(builder.with_no_client_auth()) };
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    Ok(builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key)?)?)
}

fn builder() -> Result<(ConfigBuilder<ClientConfig, WantsVerifier>, Arc<CryptoProvider>), Trouble> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    Ok((builder, provider))
}

/// Encrypts for whoever answers, as `require` and `prefer` mean it: against listeners, not against impostors.
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether words of a client are about TLS; that the other side is gone is not.
pub(crate) fn is_of_tls(said: &str) -> bool {
    ["certificate", "handshake", "corrupt message", "fatal alert"].iter().any(|word| said.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_goes_is_no_trouble_with_tls() {
        assert!(is_of_tls("invalid peer certificate: UnknownIssuer"));
        assert!(is_of_tls("received corrupt message of type InvalidContentType"));
        assert!(!is_of_tls("peer closed connection without sending TLS close_notify"));
    }
}
