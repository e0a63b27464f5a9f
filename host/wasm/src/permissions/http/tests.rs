//! Hosts that match or do not, addresses that are public or not, and requests to a server of this test.

use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;

fn grant(hosts: &[&str], private: bool) -> HttpGrant {
    let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    HttpGrant { hosts, private, response_bytes: 1000 }
}

fn get(url: &str) -> Request {
    Request { method: "GET".into(), url: url.into(), headers: vec![], body: vec![], timeout_ms: 5000 }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

#[test]
fn patterns_name_a_host_or_all_below_it() {
    let matches = |pattern: &str, host, port| pattern.parse::<HostPattern>().unwrap().matches(host, port);
    assert!(matches("api.example.com", "api.example.com", 443));
    assert!(matches("API.Example.com", "api.example.com", 443));
    assert!(!matches("api.example.com", "evil-api.example.com", 443));
    assert!(!matches("api.example.com", "api.example.com.evil.org", 443));
    assert!(matches("*.example.com", "a.b.example.com", 80));
    assert!(!matches("*.example.com", "example.com", 80));
    assert!(!matches("*.example.com", "evilexample.com", 80));
    assert!(matches("example.com:8443", "example.com", 8443));
    assert!(!matches("example.com:8443", "example.com", 443));
    assert!(matches("[::1]", "[::1]", 80));
    assert!(matches("[::1]:99", "[::1]", 99));
    for bad in ["", "*", "*.*.com", "http://x", "a/b", "a?b", "user@host", "*.1.2.3.4", "a:99999", "a b"] {
        assert!(bad.parse::<HostPattern>().is_err(), "{bad}");
    }
}

#[test]
fn addresses_of_this_machine_and_of_private_networks_are_not_public() {
    for private in [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.5.4",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "198.18.0.1",
        "192.0.0.8",
        "240.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:db8::1",
        "::127.0.0.1",
    ] {
        assert!(!is_public(private.parse().unwrap()), "{private}");
    }
    for public in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "100.128.0.1", "172.32.0.1"] {
        assert!(is_public(public.parse().unwrap()), "{public}");
    }
}

/// What all answers of a call may have.
const ROOM: u64 = 3000;

#[test]
fn headers_that_choose_another_server_are_not_sent() {
    let grant = grant(&["a.example.com"], false);
    for name in ["Host", "host", "Transfer-Encoding", "Proxy-Authorization"] {
        let mut request = get("http://a.example.com/");
        request.headers.push((name.into(), "b.example.com".into()));
        let answers = send_all((&grant, &None), vec![request], (soon(), ROOM)).unwrap();
        assert!(matches!(&answers[0], Err(Failure::Denied(why)) if why.contains(name)), "{:?}", answers[0]);
    }
}

#[test]
fn all_answers_of_a_call_together_have_a_limit() {
    let body = format!("HTTP/1.1 200 OK\r\ncontent-length: 900\r\nconnection: close\r\n\r\n{}", "x".repeat(900));
    let port = server(vec![body; 5]);
    let grant = grant(&["127.0.0.1"], true);
    let requests = (0..5).map(|_| get(&format!("http://127.0.0.1:{port}/"))).collect();
    let answers = send_all((&grant, &None), requests, (soon(), ROOM)).unwrap();
    let is_large = |answer: &&Result<Response, Failure>| matches!(answer, Err(Failure::TooLarge(_)));
    assert_eq!(
        (answers.iter().filter(|answer| answer.is_ok()).count(), answers.iter().filter(is_large).count()),
        (3, 2)
    );
}

#[test]
fn what_was_not_granted_is_denied_before_anything_is_sent() {
    let public = grant(&["localhost", "127.0.0.1", "*.example.com"], false);
    for url in [
        "http://other.org/",
        "ftp://a.example.com/",
        "file:///etc/passwd",
        "http://user:pw@a.example.com/",
        "nonsense",
        "http://127.0.0.1/",
        "http://localhost/",
        "http://2130706433/",
        "http://0x7f.1/",
    ] {
        let answers = send_all((&public, &None), vec![get(url)], (soon(), ROOM)).unwrap();
        assert!(matches!(&answers[0], Err(Failure::Denied(_))), "{url}: {:?}", answers[0]);
    }
}

/// A server that gives each connection the next answer.
fn server(answers: Vec<String>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = connection.read(&mut request);
            let _ = connection.write_all(answer.as_bytes());
        }
        // Then it is silent.
        let silent = listener.accept();
        std::thread::sleep(Duration::from_secs(30));
        drop(silent);
    });
    port
}

#[test]
fn answers_come_back_whole_or_not_at_all() {
    let body =
        |length: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nx-a: b\r\n\r\n{}", "x".repeat(length));
    let redirect = "HTTP/1.1 302 Found\r\nlocation: http://other.org/\r\ncontent-length: 0\r\n\r\n";
    let port =
        server(vec![body(10), body(2000), redirect.into(), "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nxx".into()]);
    let grant = grant(&["127.0.0.1"], true);
    let one = |request| send_all((&grant, &None), vec![request], (soon(), ROOM)).unwrap().remove(0);
    let url = format!("http://127.0.0.1:{port}/");
    let close = |mut request: Request| {
        request.headers.push(("connection".into(), "close".into()));
        request
    };
    let answer = one(close(get(&url))).unwrap();
    assert_eq!((answer.status, answer.body.len()), (200, 10));
    assert!(answer.headers.contains(&("x-a".into(), "b".into())));
    assert!(matches!(one(close(get(&url))), Err(Failure::TooLarge(_))));
    assert_eq!(one(close(get(&url))).unwrap().status, 302, "redirects are not followed");
    assert!(matches!(one(close(get(&url))), Err(Failure::Unreachable(_))), "torn");
    let start = Instant::now();
    let late = send_all((&grant, &None), vec![get(&url)], (Instant::now() + Duration::from_millis(200), ROOM)).unwrap();
    assert!(matches!(&late[0], Err(Failure::Unreachable(_))), "{:?}", late[0]);
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// A server that speaks TLS with a certificate of an authority of its own, and answers everybody with `hello`.
fn tls_server() -> u16 {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let chain = CertificateDer::pem_slice_iter(include_bytes!("certificates/server.pem"));
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("certificates/server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (config, connection) = (Arc::clone(&config), connection.unwrap());
            std::thread::spawn(move || {
                let session = rustls::ServerConnection::new(config).unwrap();
                let mut stream = rustls::StreamOwned::new(session, connection);
                // Whoever does not trust the certificate hangs up.
                if stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
                }
            });
        }
    });
    port
}

#[test]
fn tls_is_spoken_with_hosts_whose_authority_is_trusted_and_with_no_others() {
    let port = tls_server();
    let trusted: Authorities = Some(Arc::from(include_bytes!("certificates/authority.pem").as_slice()));
    let one = |authorities: &Authorities, grant: HttpGrant, url: &str| {
        send_all((&grant, authorities), vec![get(url)], (soon(), ROOM)).unwrap().remove(0)
    };
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("https://{host}:{port}/");
        let answer = one(&trusted, grant(&[host], true), &url).unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"hello".as_slice()));
        let unknown = one(&None, grant(&[host], true), &url).unwrap_err();
        assert!(matches!(&unknown, Failure::Unreachable(reason) if reason.contains("certificate")), "{unknown:?}");
    }
    // A name that is not in the certificate.
    let other = one(&trusted, grant(&["*.localhost"], true), &format!("https://other.localhost:{port}/"));
    assert!(matches!(&other, Err(Failure::Unreachable(_))), "{other:?}");
    // Trust grants no host, and no address.
    let url = format!("https://localhost:{port}/");
    assert!(matches!(one(&trusted, grant(&["example.com"], true), &url), Err(Failure::Denied(_))));
    assert!(matches!(one(&trusted, grant(&["localhost"], false), &url), Err(Failure::Denied(_))));
    let plain = format!("http://localhost:{port}/");
    assert!(matches!(one(&trusted, grant(&["localhost"], true), &plain), Err(Failure::Unreachable(_))));
}

#[test]
fn what_is_no_certificate_is_found_out_before_anything_runs() {
    assert!(check_authorities(include_bytes!("certificates/authority.pem")).is_ok());
    assert_eq!(check_authorities(b""), Err("there is no certificate in it".to_owned()));
    let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(check_authorities(broken).is_err());
}
