//! PostgreSQL: a URL and options become a connection.
