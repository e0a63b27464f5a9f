//! The parts of a URL of a database: `postgresql://user:password@host:port/database?name=value`.
//!
//! A `jdbc:` in front is allowed, so that what a Spark user wrote works unchanged.

/// What a URL says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) scheme: String,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    pub(crate) database: Option<String>,
    pub(crate) parameters: Vec<(String, String)>,
}

/// Takes a URL apart; answers what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Parts, String> {
    let plain = text.strip_prefix("jdbc:").unwrap_or(text);
    let (scheme, rest) = plain.split_once("://").ok_or("write it as scheme://user@host:port/database")?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, place) = match authority.rsplit_once('@') {
        Some((login, place)) => (Some(login), place),
        None => (None, authority),
    };
    let mut parts = Parts { scheme: scheme.to_ascii_lowercase(), ..Parts::default() };
    if let Some(login) = login {
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decode(password)?)),
            None => (login, None),
        };
        parts.user = Some(decode(user)?).filter(|user| !user.is_empty());
        parts.password = password;
    }
    let (host, port) = split_port(place)?;
    parts.host = decode(host)?;
    parts.port = port;
    parts.database = Some(decode(database)?).filter(|name| !name.is_empty());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        parts.parameters.push((decode(name)?, decode(value)?));
    }
    Ok(parts)
}

fn split_port(place: &str) -> Result<(&str, Option<u16>), String> {
    if place.contains(',') {
        return Err("name one host".into());
    }
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("the `]` of the address is missing")?;
            (host, rest.strip_prefix(':'))
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    match port {
        None | Some("") => Ok((host, None)),
        Some(port) => match port.parse() {
            Ok(number) if number != 0 => Ok((host, Some(number))),
            _ => Err("its port is no number from 1 to 65535".into()),
        },
    }
}

/// Resolves `%20` and the like.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let code = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let value = code.filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let value = value.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(value.ok_or("a `%` in it is followed by no two hexadecimal digits")?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| "it is no UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_its_parts_with_and_without_jdbc_in_front() {
        for text in [
            "postgresql://ann:p%40ss@db:5433/shop?sslmode=require",
            "jdbc:postgresql://ann:p%40ss@db:5433/shop?sslmode=require",
        ] {
            let parts = parse(text).unwrap();
            assert_eq!((parts.scheme.as_str(), parts.host.as_str(), parts.port), ("postgresql", "db", Some(5433)));
            assert_eq!((parts.user.as_deref(), parts.password.as_deref()), (Some("ann"), Some("p@ss")));
            assert_eq!(parts.database.as_deref(), Some("shop"));
            assert_eq!(parts.parameters, [("sslmode".to_owned(), "require".to_owned())]);
        }
        let parts = parse("mysql://[::1]:3306").unwrap();
        assert_eq!((parts.host.as_str(), parts.port, parts.database), ("::1", Some(3306), None));
    }

    #[test]
    fn what_is_no_url_is_refused_with_the_reason() {
        for text in [
            "shop",
            "mysql://h:0/x",
            "mysql://h:70000/x",
            "mysql://h/%zz",
            "mysql://[::1/x",
            "mysql://a,b/x",
            "mysql://h/%f",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
