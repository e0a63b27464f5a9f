//! How a server of MariaDB is made.

use crate::folder::Folder;
use crate::server::{Server, find, free_port, own_folder, run, unprivileged};

/// A server that does not run yet, and its URL. It has these settings beside its usual ones.
pub(crate) fn install(settings: &[(&str, &str)]) -> (Server, String) {
    let folder = Folder::new("mariadb");
    let data = folder.path().join("data");
    own_folder(&data);
    let folders = ["/usr/sbin".into(), "/usr/bin".into(), "/usr/libexec".into()];
    let mut init = unprivileged(&find("mariadb-install-db", &folders));
    init.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
    init.args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]);
    run(&mut init);
    let users = "CREATE DATABASE IF NOT EXISTS mill;\n\
         CREATE USER IF NOT EXISTS 'mill'@'%' IDENTIFIED BY 'mill-secret';\n\
         GRANT ALL ON *.* TO 'mill'@'%';\n";
    std::fs::write(folder.path().join("users.sql"), users).unwrap();
    let port = free_port();
    let mut arguments = vec!["--no-defaults".to_owned()];
    for (name, value) in [
        ("datadir", data.display().to_string()),
        ("port", port.to_string()),
        ("bind-address", "127.0.0.1".to_owned()),
        ("socket", data.join("socket").display().to_string()),
        ("pid-file", data.join("server.id").display().to_string()),
        ("init-file", folder.path().join("users.sql").display().to_string()),
        ("log-bin", "binlog".to_owned()),
        ("binlog-format", "ROW".to_owned()),
        ("binlog-row-image", "FULL".to_owned()),
        ("binlog-row-metadata", "FULL".to_owned()),
        ("character-set-server", "utf8mb4".to_owned()),
        ("server-id", "1".to_owned()),
        ("innodb-flush-log-at-trx-commit", "2".to_owned()),
        ("innodb-buffer-pool-size", "32M".to_owned()),
        ("innodb-log-file-size", "16M".to_owned()),
    ] {
        arguments.push(format!("--{name}={value}"));
    }
    arguments.push("--skip-name-resolve".to_owned());
    arguments.extend(settings.iter().map(|(name, value)| format!("--{name}={value}")));
    let server = Server::new(folder, find("mariadbd", &folders), arguments);
    let url = format!("mysql://mill:mill-secret@127.0.0.1:{port}/mill?sslmode=disable");
    (server, url)
}
