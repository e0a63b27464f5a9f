//! Where the sockets of running queries are: a folder that only their user can enter.

use super::failed;
use crate::RuntimeError;
use millstream_common::QueryId;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The longest path that a socket can have everywhere.
const SOCKET_PATH: usize = 100;
const VARIABLE: &str = "MILLSTREAM_RUN_DIR";

/// The folder of the sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    folder: PathBuf,
}

impl RunDir {
    /// The folder that the environment or the host file names: `$MILLSTREAM_RUN_DIR`, else `host`, else
    /// `$XDG_RUNTIME_DIR/millstream`, else `millstream-<uid>` among the temporary files.
    ///
    /// # Errors
    /// When it has to be found out who the user is and that fails.
    pub fn locate(env: &[(String, String)], host: Option<&Path>) -> Result<Self, RuntimeError> {
        let variable = |name: &str| {
            let found = env.iter().find(|(known, value)| known == name && !value.is_empty());
            found.map(|(_, value)| PathBuf::from(value))
        };
        let named = variable(VARIABLE).or_else(|| host.map(Path::to_owned));
        let folder = match named.or_else(|| variable("XDG_RUNTIME_DIR").map(|folder| folder.join("millstream"))) {
            Some(folder) => folder,
            None => std::env::temp_dir().join(format!("millstream-{}", own_uid()?)),
        };
        Ok(Self { folder })
    }

    /// A folder of the caller's choice.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder if it is not there, and refuses one that others can enter.
    pub(super) fn ensure(&self) -> Result<(), RuntimeError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|error| {
            failed(
                format!("cannot make the folder `{}`: {error}", self.folder.display()),
                Some("set MILLSTREAM_RUN_DIR"),
            )
        })?;
        self.check()
    }

    /// Refuses a folder that is not this user's alone.
    pub(super) fn check(&self) -> Result<(), RuntimeError> {
        let shown = self.folder.display();
        let metadata = std::fs::symlink_metadata(&self.folder)
            .map_err(|error| failed(format!("cannot look at the folder `{shown}`: {error}"), None))?;
        let reason = if !metadata.is_dir() {
            "it is no folder"
        } else if metadata.uid() != own_uid()? {
            "it belongs to another user"
        } else if metadata.mode() & 0o077 != 0 {
            "other users can enter it"
        } else {
            return Ok(());
        };
        let hint = format!("run `chmod 700 {shown}`, or set MILLSTREAM_RUN_DIR to a folder of your own");
        Err(failed(format!("cannot use the folder `{shown}` for control sockets: {reason}"), Some(&hint)))
    }

    /// The socket of a query.
    pub(super) fn socket(&self, id: QueryId) -> Result<PathBuf, RuntimeError> {
        let path = self.folder.join(format!("{id}.sock"));
        if path.as_os_str().len() > SOCKET_PATH {
            let reason = format!("the path of the control socket is too long: `{}`", path.display());
            return Err(failed(reason, Some("set MILLSTREAM_RUN_DIR to a folder with a short path")));
        }
        Ok(path)
    }

    /// The queries that have a socket, dead or alive.
    pub(super) fn ids(&self) -> Vec<QueryId> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut ids: Vec<QueryId> =
            names.filter_map(|name| name.to_str()?.strip_suffix(".sock")?.parse().ok().map(QueryId)).collect();
        ids.sort_unstable_by_key(|id| id.0);
        ids
    }
}

/// The user of this process, as the owner of a file that it has made.
fn own_uid() -> Result<u32, RuntimeError> {
    let made = tempfile::tempfile().and_then(|file| file.metadata());
    let hint = Some("set MILLSTREAM_RUN_DIR and make room for temporary files");
    made.map(|metadata| metadata.uid())
        .map_err(|error| failed(format!("cannot find out who the user is: {error}"), hint))
}
