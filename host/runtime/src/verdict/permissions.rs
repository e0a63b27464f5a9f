//! What a candidate asks for beyond computing, beside what the running code asks for, and what of it is granted.
//!
//! Part of every verdict, so that a swap never widens what a plugin does in silence. It decides nothing: that is for the
//! findings.

use millstream_wasm::{Component, Permission, Permissions};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One permission that the running code or the candidate asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionChange {
    /// `config`, `clock`, `random`, `http`.
    pub permission: String,
    /// Whether the running code asks for it.
    pub was_asked: bool,
    /// Whether the candidate does.
    pub is_asked: bool,
    /// What the host file says.
    pub granted: Granted,
}

/// What the host file says of a permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "what")]
pub enum Granted {
    /// Nobody has named the query, and with it the grants.
    Unknown,
    /// It is not granted.
    No,
    /// It is granted; what of it, in words, where there is something to say.
    Yes(String),
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("whether it is granted is not known without the query"),
            Self::No => f.write_str("not granted"),
            Self::Yes(what) if what.is_empty() => f.write_str("granted"),
            Self::Yes(what) => write!(f, "granted for {what}"),
        }
    }
}

impl fmt::Display for PermissionChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { permission, was_asked, is_asked, granted } = self;
        match (was_asked, is_asked) {
            (true, false) => write!(f, "`{permission}` no more"),
            (true, true) => write!(f, "`{permission}` as before: {granted}"),
            (false, _) => write!(f, "`{permission}` anew: {granted}"),
        }
    }
}

/// Every permission that one of the two asks for.
pub(super) fn compare(
    old: Option<&Component>,
    new: &Component,
    granted: Option<&Permissions>,
) -> Vec<PermissionChange> {
    let (was, is) = (old.map(Component::asks_for).unwrap_or_default(), new.asks_for());
    let change = |permission: &Permission| PermissionChange {
        permission: permission.to_string(),
        was_asked: was.contains(permission),
        is_asked: is.contains(permission),
        granted: of(granted, *permission),
    };
    was.union(&is).map(change).collect()
}

fn of(granted: Option<&Permissions>, permission: Permission) -> Granted {
    match granted.map(|granted| granted.scope(permission)) {
        None => Granted::Unknown,
        Some(None) => Granted::No,
        Some(Some(what)) => Granted::Yes(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_wasm::HttpGrant;

    #[test]
    fn a_change_says_what_is_new_and_what_comes_of_it() {
        let hosts = ["api.example.com", "*.example.org:8443"].map(|host| host.parse().unwrap());
        let http = HttpGrant { hosts: hosts.to_vec(), private: false, response_bytes: 1 };
        let granted = Permissions { http: Some(http), clock: true, ..Permissions::default() };
        let says = |permission, (was_asked, is_asked), granted: Option<&Permissions>| {
            let (name, granted) = (permission, of(granted, permission));
            PermissionChange { permission: name.to_string(), was_asked, is_asked, granted }.to_string()
        };
        let (anew, before, gone) = ((false, true), (true, true), (true, false));
        assert_eq!(
            says(Permission::Http, anew, Some(&granted)),
            "`http` anew: granted for api.example.com, *.example.org:8443"
        );
        assert_eq!(says(Permission::Random, anew, Some(&granted)), "`random` anew: not granted");
        assert_eq!(says(Permission::Clock, before, Some(&granted)), "`clock` as before: granted");
        assert_eq!(says(Permission::Clock, gone, Some(&granted)), "`clock` no more");
        assert!(says(Permission::Http, anew, None).contains("not known without the query"));
    }
}
