//! What a registry demands before it answers: the header `WWW-Authenticate`.

/// How we are to say who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// With each request.
    Basic,
    /// With a token, which another server gives.
    Bearer {
        /// Where tokens are given.
        realm: String,
        /// For whom the token is.
        service: Option<String>,
    },
}

impl Challenge {
    /// The first challenge that we can meet.
    pub(super) fn of<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Self> {
        headers.filter_map(Self::parse).next()
    }

    fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service) = (None, None);
        let mut rest = rest;
        while let Some((name, value, after)) = parameter(rest) {
            match name.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                _ => {}
            }
            rest = after;
        }
        Some(Self::Bearer { realm: realm?, service })
    }
}

/// `name="value"` or `name=value` at the front of a text, and what comes after it.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let text = text.trim_start_matches([' ', ',', '\t']);
    let (name, rest) = text.split_once('=')?;
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        return Some((name.trim().to_owned(), rest[..end].to_owned(), &rest[end..]));
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((name.trim().to_owned(), value, &quoted[at + 1..])),
            '\\' => value.push(letters.next()?.1),
            letter => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_and_garbage_is_none() {
        let of = |header: &str| Challenge::of([header].into_iter());
        assert_eq!(of("Basic realm=\"x\""), Some(Challenge::Basic));
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer { realm: realm.into(), service: service.map(Into::into) })
        };
        assert_eq!(
            of("Bearer realm=\"https://a/token\",service=\"a, b\",scope=\"repository:x:pull\""),
            bearer("https://a/token", Some("a, b"))
        );
        assert_eq!(of("bearer service=s, realm=\"a\\\"b\""), bearer("a\"b", Some("s")));
        for garbage in
            ["", "Bearer", "Bearer realm=\"", "Bearer service=\"s\"", "Negotiate abc", "Bearer ===", "Bearer \\"]
        {
            assert_eq!(of(garbage), None, "{garbage}");
        }
    }
}
