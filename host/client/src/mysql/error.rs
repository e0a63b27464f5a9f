//! MySQL's errors as situations, by their codes.

use crate::database::{Address, DatabaseError};
use mysql_async::{DriverError, Error, IoError, ServerError};

/// What an error in the middle of a connection means.
pub fn of_statement(address: &Address, error: Error) -> DatabaseError {
    let place = address.place();
    match error {
        Error::Server(said) => of_server(address, &said),
        Error::Driver(DriverError::PacketTooLarge) => {
            DatabaseError::Value { place, message: "a row is larger than the server's `max_allowed_packet`".to_owned() }
        }
        other => DatabaseError::Lost { place, source: Box::new(other) },
    }
}

/// What an error while connecting means.
pub(super) fn of_connecting(address: &Address, error: Error) -> DatabaseError {
    let place = address.place();
    match error {
        Error::Server(said) => of_server(address, &said),
        Error::Io(IoError::Tls(source)) => DatabaseError::Tls { place, source: Box::new(source) },
        Error::Driver(source @ DriverError::NoClientSslFlagFromServer) => {
            DatabaseError::Tls { place, source: Box::new(source) }
        }
        Error::Driver(source @ DriverError::UnknownAuthPlugin { .. }) => {
            DatabaseError::Denied { place, user: address.user.clone(), message: source.to_string() }
        }
        other => DatabaseError::Unreachable { place, source: Box::new(other) },
    }
}

fn of_server(address: &Address, said: &ServerError) -> DatabaseError {
    let (place, message) = (address.place(), said.message.clone());
    if is_of_same_number(said) {
        let source = format!("another reader of its log has the number of this one: {message}");
        return DatabaseError::Lost { place, source: source.into() };
    }
    match said.code {
        1044 | 1045 | 1130 | 1251 | 1524 | 1698 | 4151 => {
            DatabaseError::Denied { place, user: address.user.clone(), message }
        }
        // Shutdown, killed, gone away.
        1053 | 1077 | 1079 | 1317 | 1927 | 2006 | 2013 => DatabaseError::Lost { place, source: message.into() },
        // Too many connections, lock timeout, deadlock, read only for now.
        1040 | 1203 | 1205 | 1213 | 1290 | 1836 | 1020 => DatabaseError::Busy { place, message },
        1049 | 1051 | 1054 | 1146 | 1305 => DatabaseError::Missing { place, message },
        1142 | 1143 | 1227 | 1370 => DatabaseError::Forbidden { place, message },
        1022 | 1048 | 1062 | 1169 | 1216 | 1217 | 1364 | 1451 | 1452 | 3819 | 4025 => {
            DatabaseError::Constraint { place, message }
        }
        1264 | 1265 | 1292 | 1366 | 1367 | 1406 | 1411 | 1416 | 3140 | 3141 | 3156 | 1690 | 1153 => {
            DatabaseError::Value { place, message }
        }
        code => DatabaseError::Refused { place, code: format!("{code} ({})", said.state), message },
    }
}

/// Whether the server has ended a reading of its log for another reader with the same number. MariaDB has a code for that;
/// MySQL has one for all that goes wrong with its log.
fn is_of_same_number(said: &ServerError) -> bool {
    said.code == 4052 || said.code == 1236 && said.message.contains("the same server_uuid/server_id")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Product;
    use crate::patience::Transient;
    use millstream_common::{Options, describe_chain};

    fn error_of(code: u16, message: &str) -> DatabaseError {
        let options = Options::new().with("url", "mysql://mill@db/shop");
        let address = Address::new(Product::Mysql, "the test", &options, &|_| None).unwrap();
        of_server(&address, &ServerError { code, message: message.to_owned(), state: "HY000".to_owned() })
    }

    #[test]
    fn a_reader_that_gave_way_to_another_of_its_number_may_try_again() {
        let message = "A slave with the same server_uuid/server_id as this slave has connected to the master";
        for code in [4052, 1236] {
            let error = error_of(code, message);
            assert!(error.is_transient() && describe_chain(&error).contains("has the number of this one"), "{error:?}");
        }
        let gone = error_of(1236, "Could not find first log file name in binary log index file");
        assert!(matches!(&gone, DatabaseError::Refused { .. }) && !gone.is_transient(), "{gone:?}");
    }
}
