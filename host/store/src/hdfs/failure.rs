//! What HDFS says when it does not do what was asked, in words for people: where, what, and the way out.
//!
//! A name node sends a whole stack of Java with each refusal; the first line is what it says.

use super::NAME;
use super::patience::Missed;
use hdfs_native::HdfsError;
use object_store::Error;
use std::io::ErrorKind;

/// How much of a refusal is shown.
const SHOWN: usize = 300;

/// With whom the talk was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Talk {
    /// With the name node.
    Names,
    /// With the data nodes that it named.
    Data,
}

/// A refusal, in words.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct Failure {
    text: String,
}

/// Whether an error says that nobody is there to answer, now; another moment may be better.
pub(super) fn is_outage(error: &HdfsError) -> bool {
    match error {
        HdfsError::IOError(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::TimedOut
        ),
        HdfsError::RPCError(class, _) | HdfsError::FatalRPCError(class, _) => {
            matches!(last(class), "StandbyException" | "RetriableException" | "SafeModeException")
        }
        _ => false,
    }
}

/// The first line of what was said, and not all of a long one.
pub(super) fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// An error about a path; `address` is the name node as people know it.
pub(super) fn failed(address: &str, path: &str, talk: Talk, missed: Missed) -> Error {
    let error = match missed {
        Missed::Refused(error) => error,
        Missed::Silent(limit) => {
            return generic(format!(
                "{address} or a data node of it did not answer within {} s; see whether they run, and whether they can be \
                 reached from here",
                limit.as_secs_f64()
            ));
        }
    };
    match error {
        HdfsError::FileNotFound(_) => missing(address, path),
        HdfsError::AlreadyExists(_) => {
            Error::AlreadyExists { path: path.to_owned(), source: source(format!("{address} has it")) }
        }
        HdfsError::RPCError(class, said) | HdfsError::FatalRPCError(class, said) => {
            refused(address, path, last(&class), &short(&said))
        }
        HdfsError::IOError(error) if talk == Talk::Data => generic(format!(
            "a data node of {address} cannot be talked to: {error}; see whether data nodes run, and whether the addresses \
             that they have given to the name node can be reached from here"
        )),
        HdfsError::IOError(error) if error.kind() == ErrorKind::ConnectionRefused => {
            generic(format!("nobody listens at {address}: {error}; start the name node, or correct host and port"))
        }
        HdfsError::IOError(error) if error.to_string().contains("lookup address") => {
            generic(format!("the host of {address} is not known: {error}; correct its name"))
        }
        HdfsError::IOError(error) => generic(format!(
            "the connection to {address} failed: {error}; see whether this is the port of the name node's clients \
             (`fs.defaultFS`)"
        )),
        HdfsError::DataTransferError(said) | HdfsError::BlocksNotFound(said) => generic(format!(
            "no data node of {address} gave or took the bytes: {}; see whether data nodes run and can be reached from here",
            short(&said)
        )),
        error @ (HdfsError::SASLError(_) | HdfsError::GSSAPIError(..) | HdfsError::NoSASLMechanism) => {
            let text = format!(
                "{address} does not let in: {}; for Kerberos, have a ticket (`kinit`) and \
                 `hadoop.security.authentication` = \"kerberos\"",
                short(&error.to_string())
            );
            Error::Unauthenticated { path: path.to_owned(), source: source(text) }
        }
        error => generic(format!("{address}: {}", short(&error.to_string()))),
    }
}

/// What a name node refused; `class` is the last part of Java's name for it.
fn refused(address: &str, path: &str, class: &str, said: &str) -> Error {
    match class {
        "FileNotFoundException" => missing(address, path),
        "AccessControlException" | "AuthorizationException" => {
            let text = format!(
                "{address} says: {said}; let that user do it, or name another one in the environment variable HADOOP_USER_NAME"
            );
            Error::PermissionDenied { path: path.to_owned(), source: source(text) }
        }
        "ParentNotDirectoryException" => {
            generic(format!("a part of the path is a file on {address}: {said}; choose another path"))
        }
        "SafeModeException" => generic(format!(
            "{address} is in safe mode and changes nothing: {said}; wait until its data nodes have reported, or see \
             `hdfs dfsadmin -safemode get`"
        )),
        "StandbyException" => generic(format!(
            "{address} is a standby: {said}; name the active name node, or the name service with all of them \
             (`dfs.ha.namenodes.…`)"
        )),
        class => generic(format!("{address} refuses: {class}: {said}")),
    }
}

fn missing(address: &str, path: &str) -> Error {
    Error::NotFound { path: path.to_owned(), source: source(format!("{address} has no such file")) }
}

pub(super) fn generic(text: String) -> Error {
    Error::Generic { store: NAME, source: source(text) }
}

fn source(text: String) -> Box<dyn std::error::Error + Send + Sync> {
    Box::new(Failure { text })
}

fn last(class: &str) -> &str {
    class.rsplit(['.', '$']).next().unwrap_or(class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::time::Duration;

    fn told(error: HdfsError) -> Error {
        failed("name node n:8020", "/a/b", Talk::Names, Missed::Refused(error))
    }

    fn rpc(class: &str, said: &str) -> HdfsError {
        HdfsError::RPCError(
            format!("org.apache.hadoop.{class}"),
            format!("{said}\n\tat org.apache.hadoop.X.y(X.java:1)\n"),
        )
    }

    #[test]
    fn refusals_have_their_kind_and_no_stack() {
        let denied = told(rpc("security.AccessControlException", "Permission denied: user=ann, access=WRITE"));
        assert!(matches!(denied, Error::PermissionDenied { .. }));
        let text = denied.to_string();
        assert!(text.contains("user=ann") && text.contains("HADOOP_USER_NAME") && !text.contains("\tat"), "{text}");
        let missing = told(HdfsError::RPCError("java.io.FileNotFoundException".into(), "File does not exist".into()));
        assert!(matches!(missing, Error::NotFound { .. }));
        assert!(matches!(told(HdfsError::FileNotFound("/a/b".into())), Error::NotFound { .. }));
        assert!(matches!(told(HdfsError::AlreadyExists("/a/b".into())), Error::AlreadyExists { .. }));
        assert!(matches!(told(HdfsError::NoSASLMechanism), Error::Unauthenticated { .. }));
        for (error, words) in [
            (rpc("fs.ParentNotDirectoryException", "/a (is not a directory)"), "is a file"),
            (rpc("hdfs.server.namenode.SafeModeException", "Cannot create"), "safe mode"),
            (rpc("ipc.StandbyException", "Operation category READ"), "standby"),
            (rpc("hdfs.protocol.QuotaExceededException", "The quota is 3"), "QuotaExceededException: The quota is 3"),
            (HdfsError::DataTransferError("x".repeat(5000)), "no data node"),
        ] {
            let text = told(error).to_string();
            assert!(text.contains(words) && text.contains("n:8020") && text.len() < 1000, "{text}");
        }
    }

    #[test]
    fn an_outage_is_told_from_an_answer() {
        let io = |kind| HdfsError::IOError(io::Error::from(kind));
        assert!(is_outage(&io(ErrorKind::ConnectionRefused)) && is_outage(&io(ErrorKind::UnexpectedEof)));
        assert!(
            is_outage(&rpc("ipc.StandbyException", ""))
                && is_outage(&rpc("hdfs.server.namenode.SafeModeException", ""))
        );
        assert!(!is_outage(&rpc("security.AccessControlException", "")) && !is_outage(&io(ErrorKind::InvalidData)));
        assert!(!is_outage(&HdfsError::DataTransferError(String::new())));
    }

    #[test]
    fn addresses_that_lead_nowhere_are_named() {
        let refused = told(HdfsError::IOError(io::Error::from(ErrorKind::ConnectionRefused))).to_string();
        assert!(refused.contains("nobody listens at name node n:8020"), "{refused}");
        let text = "failed to lookup address information: Name or service not known";
        let unknown = told(HdfsError::IOError(io::Error::other(text))).to_string();
        assert!(unknown.contains("is not known"), "{unknown}");
        let silent = failed("name node n:8020", "/", Talk::Data, Missed::Silent(Duration::from_secs(60))).to_string();
        assert!(silent.contains("within 60 s"), "{silent}");
        let io = HdfsError::IOError(io::Error::from(ErrorKind::ConnectionRefused));
        let data = failed("name node n:8020", "/", Talk::Data, Missed::Refused(io)).to_string();
        assert!(data.contains("data node"), "{data}");
    }
}
