//! A file that is being written, and has its name only when it is whole.

use super::name_node::NameNode;
use bytes::Bytes;
use hdfs_native::file::FileWriter;
use object_store::{Error, Result};
use uuid::Uuid;

/// How many bytes are handed over in a step, which has a limit of time.
const PIECE: usize = 1 << 20;
const BEGIN: &str = ".";
const END: &str = ".tmp";
/// A number in hexadecimal digits, without hyphens.
const ID: usize = 32;

/// The file.
pub(super) struct TemporaryFile {
    node: NameNode,
    path: String,
    target: String,
    writer: FileWriter,
}

impl TemporaryFile {
    /// Begins the file that is to have the name `target`, beside it. The folders above are made.
    pub(super) async fn create(node: &NameNode, target: String) -> Result<Self> {
        let folder = target.rsplit_once('/').map_or("", |(folder, _)| folder);
        let name = || format!("{folder}/{BEGIN}{}{END}", Uuid::new_v4().simple());
        let mut path = name();
        let writer = match node.create(&path).await {
            // Nobody else has this name: it was made, and the answer was lost.
            Err(Error::AlreadyExists { .. }) => {
                path = name();
                node.create(&path).await
            }
            created => created,
        };
        Ok(Self { node: node.clone(), path, writer: writer?, target })
    }

    /// Adds bytes at the end.
    pub(super) async fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            self.node.step(&self.target, self.writer.write(piece)).await?;
        }
        Ok(())
    }

    /// Ends the file and gives it its name, `over` a file that has it, or not at all. When that fails nothing is left.
    pub(super) async fn finish(mut self, over: bool) -> Result<()> {
        let closed = self.node.step(&self.target, self.writer.close()).await;
        let named = match closed {
            Ok(()) => self.node.rename(&self.path, &self.target, over).await,
            Err(error) => Err(error),
        };
        if named.is_err() {
            self.discard().await;
        }
        named
    }

    /// Removes it.
    pub(super) async fn discard(self) {
        self.node.clean(&self.path).await;
    }
}

/// Whether a name is one of an unfinished file of ours.
pub(super) fn is_temporary(name: &str) -> bool {
    let id = name.strip_prefix(BEGIN).and_then(|name| name.strip_suffix(END));
    id.is_some_and(|id| id.len() == ID && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_files_are_known_by_their_names() {
        let name = format!("{BEGIN}{}{END}", Uuid::new_v4().simple());
        assert!(is_temporary(&name));
        for name in [".x.tmp", "0", ".0f.tmp.1", "0f5bd4e17f4e4a519a4b111111111111.tmp", ""] {
            assert!(!is_temporary(name), "{name}");
        }
    }
}
