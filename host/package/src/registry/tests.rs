//! Registries that lie, stall, flood, and send us elsewhere; on this machine, so over plain HTTP.

use super::*;
use crate::signature::{Payload, SigningKey};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a server does with the path and the head of a request.
type Deed = dyn Fn(&str, &str, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

/// A server that ends with the process; its address, and the heads of the requests that it got.
fn serve(deed: impl Fn(&str, &str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let deed: Arc<Deed> = Arc::new(deed);
    let seen = Arc::clone(&heads);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (deed, seen) = (Arc::clone(&deed), Arc::clone(&seen));
            std::thread::spawn(move || {
                let mut head = String::new();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                seen.lock().unwrap().push(head.clone());
                let mut stream = stream;
                // A client that has enough goes away.
                let _ = deed(&path, &head, &mut stream);
            });
        }
    });
    Server { address, heads }
}

struct Server {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn reference(&self, rest: &str) -> PackageReference {
        format!("oci://{}/acme/words{rest}", self.address).parse().unwrap()
    }
}

fn answer(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

/// A registry with one package whose component is `promised`, and which gives `given` for it.
fn registry(promised: &'static [u8], given: &'static [u8]) -> Server {
    serve(move |path, _, stream| {
        let (_, manifest) = manifest::make(promised, &[], &[]);
        match path.contains("/manifests/") {
            true if path.ends_with(".sig") => answer(stream, "404 Not Found", "", b""),
            true => answer(stream, "200 OK", "", &manifest),
            false => answer(stream, "200 OK", "", given),
        }
    })
}

fn pull(server: &Server, rest: &str) -> Result<Vec<u8>, PackageError> {
    let options = RegistryOptions {
        component_bytes: 1 << 20,
        time: Duration::from_secs(10),
        idle: Duration::from_millis(500),
        ..RegistryOptions::default()
    };
    let (registry, reference) = (Registry::new(options), server.reference(rest));
    let resolved = registry.resolve(&reference)?;
    registry.component(&reference, resolved.package)
}

#[test]
fn a_package_comes_as_it_was_promised() {
    let server = registry(b"component", b"component");
    assert_eq!(pull(&server, ":1").unwrap(), b"component");
    let (_, manifest) = manifest::make(b"component", &[], &[]);
    assert_eq!(pull(&server, &format!("@sha256:{}", Digest::of(&manifest))).unwrap(), b"component");
    let none = Registry::default().signatures(&server.reference(":1"), Digest::of(&manifest)).unwrap();
    assert!(none.is_empty());
}

#[test]
fn other_bytes_than_promised_are_refused() {
    let error = pull(&registry(b"component", b"Component"), ":1").unwrap_err();
    assert!(
        matches!(&error, PackageError::WrongDigest { wanted, .. } if *wanted == Digest::of(b"component")),
        "{error}"
    );
    let error = pull(&registry(b"component", b"comp"), ":1").unwrap_err();
    assert!(matches!(&error, PackageError::WrongDigest { .. }), "{error}");
    let error = pull(&registry(b"component", b"component and more"), ":1").unwrap_err();
    assert!(matches!(&error, PackageError::TooLarge { limit: 9, .. }), "{error}");
    // The manifest of a digest is another one.
    let error = pull(&registry(b"component", b"component"), &format!("@sha256:{}", Digest::of(b"x"))).unwrap_err();
    assert!(matches!(&error, PackageError::WrongDigest { wanted, .. } if *wanted == Digest::of(b"x")), "{error}");
    let liar = serve(|_, _, stream| {
        let (_, manifest) = manifest::make(b"component", &[], &[]);
        answer(stream, "200 OK", &format!("Docker-Content-Digest: sha256:{}\r\n", Digest::of(b"x")), &manifest)
    });
    assert!(matches!(pull(&liar, ":1").unwrap_err(), PackageError::WrongDigest { .. }));
}

#[test]
fn floods_and_silence_end_at_their_limits() {
    let flood = serve(|_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
        loop {
            stream.write_all(&[b' '; 65536])?;
        }
    });
    let error = pull(&flood, ":1").unwrap_err();
    assert!(matches!(&error, PackageError::TooLarge { limit, .. } if *limit == MANIFEST_BYTES), "{error}");
    let silent = serve(|_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")?;
        std::thread::sleep(Duration::from_secs(60));
        Ok(())
    });
    let start = std::time::Instant::now();
    let error = pull(&silent, ":1").unwrap_err();
    assert!(matches!(&error, PackageError::TimedOut { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(8));
    // A byte now and then keeps the connection alive, and the whole has a limit all the same.
    let slow = serve(|_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")?;
        loop {
            stream.write_all(b" ")?;
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let options = RegistryOptions { time: Duration::from_millis(400), ..RegistryOptions::default() };
    let error = Registry::new(options).resolve(&slow.reference(":1")).unwrap_err();
    assert!(matches!(&error, PackageError::TimedOut { time, .. } if *time == Duration::from_millis(400)), "{error}");
    let huge = serve(|_, _, stream| {
        let (_, manifest) = manifest::make(b"component", &[], &[]);
        let text = String::from_utf8(manifest).unwrap().replace("\"size\":9", "\"size\":99999999999");
        answer(stream, "200 OK", "", text.as_bytes())
    });
    let error = pull(&huge, ":1").unwrap_err();
    assert!(matches!(&error, PackageError::TooLarge { limit, .. } if *limit == 1 << 20), "{error}");
}

#[test]
fn what_is_no_package_is_told() {
    let gives =
        |body: &'static str| pull(&serve(move |_, _, stream| answer(stream, "200 OK", "", body.as_bytes())), ":1");
    assert!(gives("<html>").unwrap_err().to_string().contains("is no plugin: its manifest does not have the form"));
    assert!(gives("{\"manifests\":[]}").unwrap_err().to_string().contains("index of several images"));
    let says = |status: &'static str, body: &'static str| {
        pull(&serve(move |_, _, stream| answer(stream, status, "", body.as_bytes())), ":1").unwrap_err()
    };
    assert!(matches!(says("404 Not Found", ""), PackageError::NotFound { .. }));
    let error = says("500 Oh", "{\"errors\":[{\"code\":\"UNKNOWN\",\"message\":\"broken\"}]}");
    assert!(error.to_string().contains("status 500, UNKNOWN: broken"), "{error}");
    let error = pull(&serve(|_, _, _| Ok(())), ":1").unwrap_err();
    assert!(matches!(error, PackageError::Unreachable { .. }), "{error}");
}

#[test]
fn nobody_sends_us_where_we_do_not_go() {
    let elsewhere = registry(b"component", b"component");
    let to = elsewhere.address.clone();
    let redirecting =
        serve(move |path, _, stream| answer(stream, "307 Temporary", &format!("Location: http://{to}{path}\r\n"), b""));
    let error = pull(&redirecting, ":1").unwrap_err();
    assert!(
        matches!(&error, PackageError::Redirect { to, .. } if *to == format!("http://{}", elsewhere.address)),
        "{error}"
    );
    assert!(elsewhere.heads.lock().unwrap().is_empty());

    // Bytes whose digest is known may come from elsewhere, over TLS or from this machine.
    let blobs = |to: String| {
        serve(move |path, _, stream| {
            let (_, manifest) = manifest::make(b"component", &[], &[]);
            match path.contains("/manifests/") {
                true => answer(stream, "200 OK", "", &manifest),
                false => answer(stream, "302 Found", &format!("Location: {to}\r\n"), b""),
            }
        })
    };
    assert_eq!(pull(&blobs(format!("http://{}/elsewhere", elsewhere.address)), ":1").unwrap(), b"component");
    let error = pull(&blobs("http://169.254.169.254/latest".into()), ":1").unwrap_err();
    assert!(matches!(&error, PackageError::Redirect { reason: "it is not over TLS", .. }), "{error}");
    let error = pull(&blobs("/round/and/round".into()), ":1").unwrap_err();
    assert!(error.to_string().contains("too often"), "{error}");
}

#[test]
fn we_say_who_we_are_only_when_asked_and_never_to_a_stranger() {
    let strange = serve(|_, _, stream| {
        let headers = "WWW-Authenticate: Bearer realm=\"http://tokens.example.com/token\",service=\"s\"\r\n";
        answer(stream, "401 Unauthorized", headers, b"")
    });
    let error = pull(&strange, ":1").unwrap_err();
    assert!(matches!(&error, PackageError::Redirect { reason: "credentials go over TLS only", .. }), "{error}");

    let tokens = serve(|path, _, stream| {
        assert!(path.contains("scope=repository%3Aacme%2Fwords%3Apull"), "{path}");
        answer(stream, "200 OK", "", b"{\"token\":\"good\"}")
    });
    let realm = tokens.address.clone();
    let guarded = serve(move |path, head, stream| {
        let (_, manifest) = manifest::make(b"component", &[], &[]);
        if !head.to_ascii_lowercase().contains("authorization: bearer good") {
            let headers = format!("WWW-Authenticate: Bearer realm=\"http://{realm}/token\",service=\"s\"\r\n");
            return answer(stream, "401 Unauthorized", &headers, b"");
        }
        answer(stream, "200 OK", "", if path.contains("/manifests/") { &manifest[..] } else { &b"component"[..] })
    });
    assert_eq!(pull(&guarded, ":1").unwrap(), b"component");
    let first = guarded.heads.lock().unwrap()[0].to_ascii_lowercase();
    assert!(!first.contains("authorization"), "{first}");

    let closed =
        serve(|_, _, stream| answer(stream, "401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"\r\n", b""));
    let error = pull(&closed, ":1").unwrap_err();
    assert!(matches!(&error, PackageError::Denied { .. }), "{error}");
    assert!(millstream_common::Hint::hint(&error).unwrap().contains("docker login 127.0.0.1:"));

    let allowed = RegistryOptions { allow: Some(vec!["registry.example.com".into()]), ..RegistryOptions::default() };
    let error = Registry::new(allowed).resolve(&guarded.reference(":1")).unwrap_err();
    assert!(matches!(error, PackageError::RegistryNotAllowed { .. }));
}

#[test]
fn signatures_of_a_registry_are_read_within_limits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key.pem");
    std::fs::write(&file, crate::signature::new_key()).unwrap();
    let key = SigningKey::read(&file).unwrap();
    let (_, package) = manifest::make(b"component", &[], &[]);
    let digest = Digest::of(&package);
    let payload = Payload::make("r/acme/words", digest);
    let signature = key.sign(&payload).unwrap();
    let told = (payload.clone(), signature.clone());
    let server = serve(move |path, _, stream| {
        let mut layer = manifest::descriptor(SIMPLE_SIGNING, &told.0);
        layer.set_annotations(Some(HashMap::from([(SIGNATURE_ANNOTATION.to_owned(), told.1.clone())])));
        let unsigned = manifest::descriptor(SIMPLE_SIGNING, b"without a signature");
        let layers = vec![unsigned, manifest::descriptor("text/plain", b"x"), layer];
        let manifest = manifest::image(manifest::descriptor("text/plain", b"{}"), layers);
        match path.contains("/manifests/") {
            true => answer(stream, "200 OK", "", &manifest),
            false => answer(stream, "200 OK", "", &told.0),
        }
    });
    let found = Registry::default().signatures(&server.reference(":1"), digest).unwrap();
    assert_eq!(found, [ImageSignature { payload, signature }]);
    let asked = server.heads.lock().unwrap()[0].clone();
    assert!(asked.contains(&format!("/manifests/sha256-{digest}.sig")), "{asked}");
}
