//! A folder for a server, which goes when the process goes, however that ends.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Waits for the end of its input, which is the end of the process or of the folder's owner; then nothing is left.
const KEEPER: &str = r#"
cat >/dev/null
for pid in "$1"/*.pid; do [ -e "$pid" ] && kill -9 "$(cat "$pid")" 2>/dev/null; done
for try in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" 2>/dev/null && break; sleep 0.2; done
"#;

/// A folder whose files `*.pid` name the processes that end with it.
pub struct Folder {
    path: PathBuf,
    keeper: Child,
}

impl Folder {
    /// A new one; `name` is part of its own.
    pub fn new(name: &str) -> Self {
        let path = tempfile::Builder::new().prefix(&format!("millstream-{name}-")).tempdir().unwrap().keep();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(&path).stdin(Stdio::piped());
        // A group of its own: what ends the test from the keyboard must not end the keeper.
        let keeper = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        Self { path, keeper }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
