//! The login of a Java client, `sasl.jaas.config`, read for user and password.
//!
//! `org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";`

/// What a login module says.
#[derive(PartialEq, Eq)]
pub(super) struct Login {
    pub(super) username: String,
    pub(super) password: String,
    /// The mechanism that the module implies when none is named.
    pub(super) mechanism: Option<&'static str>,
}

/// Reads the common forms. The error says what is wrong and never repeats the text, which has a password.
pub(super) fn parse(text: &str) -> Result<Login, &'static str> {
    let tokens = tokens(text).ok_or("a quoted value does not end")?;
    let mut tokens = tokens.into_iter();
    let module = tokens.next().ok_or("it is empty")?;
    let mechanism = match module.rsplit('.').next().unwrap_or_default() {
        "PlainLoginModule" => Some("PLAIN"),
        // SCRAM has two strengths, and the module does not say which.
        "ScramLoginModule" => None,
        "Krb5LoginModule" => return Err("there is no Kerberos here; log in by PLAIN or SCRAM"),
        "OAuthBearerLoginModule" => return Err("tokens of OAuth are not fetched here; log in by PLAIN or SCRAM"),
        _ => return Err("its first word must be PlainLoginModule or ScramLoginModule with the package before it"),
    };
    match tokens.next().map(|flag| flag.to_ascii_lowercase()).as_deref() {
        Some("required" | "requisite" | "sufficient" | "optional") => {}
        _ => return Err("after the module comes `required`"),
    }
    let (mut username, mut password) = (None, None);
    for token in tokens {
        match token.split_once('=') {
            Some(("username", value)) => username = Some(value.to_owned()),
            Some(("password", value)) => password = Some(value.to_owned()),
            Some(("tokenauth", value)) if value.eq_ignore_ascii_case("true") => {
                return Err("logins by delegation token are not made here");
            }
            Some(_) => {}
            None => return Err("after `required` come pairs like username=\"alice\""),
        }
    }
    let username = username.ok_or("username is missing")?;
    let password = password.ok_or("password is missing")?;
    Ok(Login { username, password, mechanism })
}

/// Words up to the first `;` outside of quotes, quotes taken away. `None` when a quote does not end.
fn tokens(text: &str) -> Option<Vec<String>> {
    let mut tokens = Vec::new();
    let mut token: Option<String> = None;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' | '\'' => {
                let word = token.get_or_insert_default();
                loop {
                    match chars.next()? {
                        end if end == char => break,
                        '\\' => word.push(chars.next()?),
                        other => word.push(other),
                    }
                }
            }
            ';' => break,
            white if white.is_whitespace() => tokens.extend(token.take()),
            other => token.get_or_insert_default().push(other),
        }
    }
    tokens.extend(token);
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_forms_are_read_with_their_quotes() {
        let plain = r#"org.apache.kafka.common.security.plain.PlainLoginModule required
            username="alice" password="a \"b\"; c=d" ;"#;
        let login = parse(plain).ok().unwrap();
        assert_eq!((login.username.as_str(), login.password.as_str()), ("alice", "a \"b\"; c=d"));
        assert_eq!(login.mechanism, Some("PLAIN"));
        let scram = "org.apache.kafka.common.security.scram.ScramLoginModule REQUIRED username=bob password='x y'";
        let login = parse(scram).ok().unwrap();
        assert_eq!((login.username.as_str(), login.password.as_str(), login.mechanism), ("bob", "x y", None));
    }

    #[test]
    fn other_forms_are_refused_without_a_word_of_the_text() {
        for text in [
            "",
            "org.example.SecretModule required password=secret;",
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;",
            "x.PlainLoginModule username=alice password=secret;",
            "x.PlainLoginModule required username=alice;",
            "x.PlainLoginModule required username=\"alice password=secret;",
            "x.ScramLoginModule required username=alice password=secret tokenauth=true;",
        ] {
            let reason = parse(text).err().unwrap();
            assert!(!reason.contains("secret") && !reason.contains("Secret"), "{reason}");
        }
    }
}
