//! How a server of PostgreSQL is made.

use crate::folder::Folder;
use crate::server::{Server, find, free_port, own_folder, run, unprivileged};
use std::path::PathBuf;

/// A server that does not run yet, and its URL.
pub(crate) fn install() -> (Server, String) {
    let folder = Folder::new("postgres");
    let programs = programs();
    let data = folder.path().join("data");
    own_folder(&data);
    let mut init = unprivileged(&find("initdb", &programs));
    init.arg("-D").arg(&data).args(["-U", "mill", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
    run(&mut init);
    let mut certificate = unprivileged(&find("openssl", &[]));
    certificate.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"]);
    certificate.args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]);
    run(certificate.arg("-keyout").arg(data.join("server.key")).arg("-out").arg(data.join("server.crt")));
    let access = "host all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n";
    std::fs::write(data.join("pg_hba.conf"), access).unwrap();
    let port = free_port();
    let mut arguments = vec!["-D".to_owned(), data.display().to_string(), "-p".to_owned(), port.to_string()];
    for setting in [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "ssl=on",
        "wal_level=logical",
        "max_replication_slots=40",
        "max_wal_senders=40",
        "fsync=off",
        "shared_buffers=32MB",
        "log_min_messages=warning",
    ] {
        arguments.extend(["-c".to_owned(), setting.to_owned()]);
    }
    let server = Server::new(folder, find("postgres", &programs), arguments);
    let url = format!("postgresql://mill@127.0.0.1:{port}/postgres?sslmode=disable");
    (server, url)
}

/// Where Debian keeps the server's programs, newest first.
fn programs() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    folders.sort();
    folders.reverse();
    folders
}
