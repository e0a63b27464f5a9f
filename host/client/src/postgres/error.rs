//! PostgreSQL's errors as situations, by the class of their code.

use crate::database::{Address, DatabaseError};
use tokio_postgres::error::DbError;

/// What an error in the middle of a connection means.
pub(super) fn of_statement(address: &Address, error: tokio_postgres::Error) -> DatabaseError {
    let place = address.place();
    match error.as_db_error() {
        Some(said) => of_server(address, said),
        None => DatabaseError::Lost { place, source: Box::new(error) },
    }
}

/// What an error while connecting means.
pub(super) fn of_connecting(address: &Address, error: tokio_postgres::Error) -> DatabaseError {
    if let Some(said) = error.as_db_error() {
        return of_server(address, said);
    }
    let place = address.place();
    let words = error.to_string();
    if words.contains("TLS") {
        return DatabaseError::Tls { place, source: Box::new(error) };
    }
    if words.contains("configuration") || words.contains("authentication") {
        let message = millstream_common::describe_chain(&error);
        return DatabaseError::Denied { place, user: address.user.clone(), message };
    }
    DatabaseError::Unreachable { place, source: Box::new(error) }
}

/// What the server said, with what it said about the row.
fn message(said: &DbError) -> String {
    let mut text = said.message().to_owned();
    for more in [said.detail(), said.where_()].into_iter().flatten() {
        text.push_str("; ");
        text.push_str(&more.replace('\n', " "));
    }
    text
}

fn of_server(address: &Address, said: &DbError) -> DatabaseError {
    let (place, message) = (address.place(), message(said));
    let code = said.code().code();
    match (code.get(..2).unwrap_or_default(), code) {
        ("28", _) => DatabaseError::Denied { place, user: address.user.clone(), message },
        (_, "57P01" | "57P02" | "57P05") | ("08", _) => DatabaseError::Lost { place, source: message.into() },
        ("40" | "53", _) | (_, "55P03" | "55006" | "57P03" | "57014") => DatabaseError::Busy { place, message },
        ("3D" | "3F", _) | (_, "42P01" | "42703" | "42704" | "42883") => DatabaseError::Missing { place, message },
        (_, "42501") => DatabaseError::Forbidden { place, message },
        ("23", _) => DatabaseError::Constraint { place, message },
        ("22", _) | (_, "42804" | "42846") => DatabaseError::Value { place, message },
        _ => DatabaseError::Refused { place, code: code.to_owned(), message },
    }
}
