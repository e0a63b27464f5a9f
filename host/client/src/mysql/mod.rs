//! MySQL and MariaDB: a URL and options become a connection.
