//! The parts of a URI, told apart as Java's `java.net.URI` does.
//!
//! Where it stands: under `parse_url`.
//!
//! Rule of its life: a text is a URI by the grammar of RFC 2396 with Java's additions (visible characters beyond ASCII stand
//! anywhere, the authority may be empty, IPv6 addresses stand in brackets), or it is none. Parts are slices of the text as they
//! are written: nothing is lower-cased, decoded or left out.

use std::net::Ipv6Addr;

/// A URI, cut into its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Uri<'a> {
    /// Before the first colon.
    pub(super) scheme: Option<&'a str>,
    /// Behind `//`.
    pub(super) authority: Option<&'a str>,
    /// Of an authority that names a server: what stands before `@`.
    pub(super) user: Option<&'a str>,
    /// Of an authority that names a server: its name or address.
    pub(super) host: Option<&'a str>,
    /// Unless the scheme is followed by something else than a slash, as in `mailto:a@b.c`.
    pub(super) path: Option<&'a str>,
    /// Behind `?`.
    pub(super) query: Option<&'a str>,
    /// Behind `#`.
    pub(super) fragment: Option<&'a str>,
}

fn is_unreserved(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-!.~'()*".contains(c)
}

fn is_user(c: char) -> bool {
    is_unreserved(c) || ";:&=+$,".contains(c)
}

fn is_registry(c: char) -> bool {
    is_user(c) || c == '@'
}

fn is_server(c: char) -> bool {
    is_registry(c) || "[]%".contains(c)
}

fn is_path(c: char) -> bool {
    is_unreserved(c) || ":@&=+$,;/".contains(c)
}

fn is_any(c: char) -> bool {
    is_unreserved(c) || ";/?:@&=+$,[]".contains(c)
}

/// Whether a text has nothing but characters of a kind, escapes, and visible characters beyond ASCII.
fn consists_of(text: &str, is_of_kind: fn(char) -> bool) -> bool {
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let fits = match c {
            c if is_of_kind(c) => true,
            '%' => [rest.next(), rest.next()].iter().all(|digit| digit.is_some_and(|digit| digit.is_ascii_hexdigit())),
            c => c > '\u{80}' && !c.is_whitespace() && !c.is_control(),
        };
        if !fits {
            return false;
        }
    }
    true
}

impl<'a> Uri<'a> {
    /// The parts of a text; `None` when it is no URI.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let mut uri = Self::default();
        let (text, fragment) = cut(text, '#');
        uri.fragment = fragment;
        if !fragment.is_none_or(|fragment| consists_of(fragment, is_any)) {
            return None;
        }
        let rest = match text.find([':', '/', '?']).filter(|&at| text[at..].starts_with(':')) {
            None => text,
            Some(at) => {
                let scheme = &text[..at];
                let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
                if !is_scheme {
                    return None;
                }
                uri.scheme = Some(scheme);
                let rest = &text[at + 1..];
                if !rest.starts_with('/') {
                    return (!rest.is_empty() && consists_of(rest, is_any)).then_some(uri);
                }
                rest
            }
        };
        let rest = match rest.strip_prefix("//") {
            None => rest,
            Some(rest) => {
                let end = rest.find(['/', '?']).unwrap_or(rest.len());
                // An empty authority needs something behind it.
                if end > 0 {
                    uri.take_authority(&rest[..end])?;
                } else if rest.is_empty() && fragment.is_none() {
                    return None;
                }
                &rest[end..]
            }
        };
        let (path, query) = cut(rest, '?');
        uri.path = Some(path);
        uri.query = query;
        let fits = consists_of(path, is_path) && query.is_none_or(|query| consists_of(query, is_any));
        fits.then_some(uri)
    }

    /// The authority names a server if it can, else it is the name of a registry.
    fn take_authority(&mut self, text: &'a str) -> Option<()> {
        let server = if text.chars().all(|c| is_server(c) || !c.is_ascii()) { server(text) } else { None };
        match server {
            Some((user, host)) => (self.user, self.host) = (user, Some(host)),
            None if !consists_of(text, is_registry) => return None,
            None => {}
        }
        self.authority = Some(text);
        Some(())
    }
}

/// What stands before a sign, and what behind it.
fn cut(text: &str, sign: char) -> (&str, Option<&str>) {
    text.split_once(sign).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

/// User and host of `[user@]host[:port]`.
fn server(text: &str) -> Option<(Option<&str>, &str)> {
    let (user, rest) = match text.split_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, text),
    };
    if !user.is_none_or(|user| consists_of(user, is_user)) {
        return None;
    }
    let host = if rest.starts_with('[') {
        let end = rest.find(']')?;
        let (address, scope) = cut(&rest[1..end], '%');
        let is_scope =
            |scope: &str| !scope.is_empty() && scope.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
        address.parse::<Ipv6Addr>().ok()?;
        if !scope.is_none_or(is_scope) {
            return None;
        }
        &rest[..=end]
    } else {
        let end = rest.find(':').unwrap_or(rest.len());
        Some(&rest[..end]).filter(|host| is_ipv4(host) || is_host_name(host))?
    };
    let port = &rest[host.len()..];
    let is_port = |digits: &str| {
        digits.is_empty() || (digits.bytes().all(|b| b.is_ascii_digit()) && digits.parse::<i32>().is_ok())
    };
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some((user, host))
}

fn is_ipv4(host: &str) -> bool {
    let is_byte = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.parse::<u32>().is_ok_and(|value| value < 256)
    };
    host.split('.').count() == 4 && host.split('.').all(is_byte)
}

/// Labels of letters, digits and inner dashes between points; the last of several starts with a letter.
fn is_host_name(host: &str) -> bool {
    let labels = host.strip_suffix('.').unwrap_or(host);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = labels.rsplit('.').next().unwrap_or(labels);
    labels.split('.').all(is_label)
        && (last.len() == labels.len() || last.starts_with(|c: char| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_out_as_they_are_written() {
        let uri = Uri::parse("http://user:pw@Ex.COM:8080/p/a?q=1&r=%20#frag").unwrap();
        let expected = Uri {
            scheme: Some("http"),
            authority: Some("user:pw@Ex.COM:8080"),
            user: Some("user:pw"),
            host: Some("Ex.COM"),
            path: Some("/p/a"),
            query: Some("q=1&r=%20"),
            fragment: Some("frag"),
        };
        assert_eq!(uri, expected);
    }

    /// Texts, and what Spark 4.3 gives for AUTHORITY, HOST and PATH.
    #[test]
    fn an_authority_may_be_no_server_and_a_path_may_be_missing() {
        for (text, authority, host, path) in [
            ("http://[::1]:80", Some("[::1]:80"), Some("[::1]"), Some("")),
            ("mailto:a@b.c", None, None, None),
            ("urn:a:b", None, None, None),
            ("", None, None, Some("")),
            ("p", None, None, Some("p")),
            ("//h/p?q", Some("h"), Some("h"), Some("/p")),
            ("http:///p", None, None, Some("/p")),
            ("http://a_b/c", Some("a_b"), None, Some("/c")),
            ("http://h:99999/", Some("h:99999"), Some("h"), Some("/")),
            ("http://h:/", Some("h:"), Some("h"), Some("/")),
            ("http://h:x/", Some("h:x"), None, Some("/")),
            ("http://é.com/é", Some("é.com"), None, Some("/é")),
            ("http://@h", Some("@h"), Some("h"), Some("")),
            ("http://1.2.3.4", Some("1.2.3.4"), Some("1.2.3.4"), Some("")),
            ("http://1.2.3.4.5/", Some("1.2.3.4.5"), None, Some("/")),
            ("http://-h/", Some("-h"), None, Some("/")),
            ("http://h..x/", Some("h..x"), None, Some("/")),
            ("a+b.c-d://h", Some("h"), Some("h"), Some("")),
            ("http:/p", None, None, Some("/p")),
            ("?q", None, None, Some("")),
        ] {
            let uri = Uri::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((uri.authority, uri.host, uri.path), (authority, host, path), "{text}");
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "http://h/a b",
            "not a url",
            "http:",
            "http://",
            "1http://h",
            "http://h/%zz",
            "http://h/[x]",
            "http://h/a|b",
            "http://h/a\\b",
            " http://h",
            "http://h ",
            "http://h?x=1#a#b",
            "http://h/\u{1}",
            "http://h/{x}",
            "http://h/^",
        ] {
            assert_eq!(Uri::parse(text), None, "{text}");
        }
    }
}
