//! What users write and nobody may show: passwords in options and in URLs.

/// What stands in the place of a secret.
pub const HIDDEN: &str = "(hidden)";

/// The value of an option or setting as it may be shown: [`HIDDEN`] for a secret, and `***` in the place of a password in
/// a URL.
pub fn shown(name: &str, value: &str) -> String {
    if is_secret(name) { HIDDEN.to_owned() } else { without_password(value) }
}

/// Whether a name is one of those that secrets have. Its last part decides, for the parts before it may be named by
/// people; except that all options of object stores may be secrets, and some of Kafka's say it before their last part.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or(&name).replace(['_', '-'], "");
    // The name of a variable is no secret.
    if last.ends_with("env") {
        return false;
    }
    name.starts_with("object_store.")
        || OF_KAFKA.iter().any(|end| name.ends_with(end))
        || WORDS.iter().any(|word| last.contains(word))
}

const OF_KAFKA: [&str; 4] = ["sasl.jaas.config", "sasl.oauthbearer.config", "ssl.keystore.key", ".pem"];
const WORDS: [&str; 9] =
    ["password", "passphrase", "pwd", "secret", "token", "accesskey", "credential", "privatekey", "apikey"];

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
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "password",
            "object_store.aws_region",
            "sink.options.password",
            "source.a.options.api-key",
            "source.a.options.kafka.sasl.jaas.config",
            "sink.options.kafka.ssl.key.pem",
            "kafka.ssl.keystore.key",
            "kafka.ssl.key.password",
            "sasl.password",
            "sasl.jaas.config",
            "ssl.key.pem",
            "ssl.key.password",
            "ssl.keystore.key",
            "ssl.keystore.password",
            "aws_secret_access_key",
        ] {
            assert_eq!(shown(name, "x"), HIDDEN, "{name}");
        }
        for name in [
            "passwordEnv",
            "plugin.tokens.memory",
            "kafka.sasl.username",
            "sasl.username",
            "bootstrap.servers",
            "ssl.ca.location",
        ] {
            assert_eq!(shown(name, "x"), "x", "{name}");
        }
    }
}
