//! What users write and nobody may show: passwords in options and in URLs.

/// The value of an option as it may be shown: `***` for a secret, and in the place of a password in a URL.
pub fn shown(option: &str, value: &str) -> String {
    if is_secret(option) { "***".to_owned() } else { without_password(value) }
}

/// A URL as it may be shown: `***` in the place of a password, before the `@` or among the parameters.
pub fn without_password(url: &str) -> String {
    let (head, query) = match url.split_once('?') {
        Some((head, query)) => (head, Some(query)),
        None => (url, None),
    };
    let mut shown = head.to_owned();
    if let Some((scheme, rest)) = head.split_once("://") {
        let authority = rest.split('/').next().unwrap_or_default();
        // A password may have a `/` that nobody has written as it should be.
        let end = if authority.contains(':') || authority.contains('@') { rest.rfind('@') } else { None };
        if let Some(end) = end
            && let Some(colon) = rest[..end].find(':')
        {
            shown = format!("{scheme}://{}:***{}", &rest[..colon], &rest[end..]);
        }
    }
    if let Some(query) = query {
        let shown_pairs: Vec<String> = query.split('&').map(hidden_parameter).collect();
        shown = format!("{shown}?{}", shown_pairs.join("&"));
    }
    shown
}

fn hidden_parameter(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}=***"),
        _ => pair.to_owned(),
    }
}

fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_named = ["password", "secret", "jaas", "pwd"].iter().any(|word| lower.contains(word));
    // The name of a variable is no secret.
    is_named && !lower.ends_with("env")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (text, shown) in [
            ("mysql://ann:secret@h/x", "mysql://ann:***@h/x"),
            ("mysql://ann:se:c@ret@h/x", "mysql://ann:***@h/x"),
            ("mysql://h/x?user=ann&password=secret", "mysql://h/x?user=ann&password=***"),
            ("mysql://ann@h/x", "mysql://ann@h/x"),
            ("s3://bucket/a:b@c", "s3://bucket/a:b@c"),
            ("what? a=b", "what? a=b"),
        ] {
            assert_eq!(without_password(text), shown);
        }
        assert_eq!(shown("password", "x"), "***");
        assert_eq!(shown("kafka.ssl.key.password", "x"), "***");
        assert_eq!(shown("passwordEnv", "SHOP"), "SHOP");
    }
}
