//! Who can write to a folder: machine code is loaded only from where nobody but this user could have put it.

use std::fs::File;
use std::io;
use std::path::Path;

/// Makes `folder` for this user alone, or checks that it is that; the reason if not.
#[cfg(unix)]
pub(super) fn private(folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};

    let shown = folder.display();
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|e| format!("cannot make the folder `{shown}`: {e}"))?;
    let folder = folder.canonicalize().map_err(|e| format!("cannot find the folder `{shown}`: {e}"))?;
    let user = rustix::process::geteuid().as_raw();
    for (depth, part) in folder.ancestors().enumerate() {
        let told = part.display();
        let metadata = part.metadata().map_err(|e| format!("cannot look at `{told}`: {e}"))?;
        let owner = metadata.uid();
        if owner != user && (depth == 0 || owner != 0) {
            return Err(format!("`{told}` belongs to another user"));
        }
        // In a folder with the sticky bit, as for temporary files, others cannot rename what is not theirs.
        let (others_write, sticky) = (metadata.mode() & 0o022 != 0, metadata.mode() & 0o1000 != 0);
        if others_write && (depth == 0 || !sticky) {
            return Err(format!("others than its owner can write to `{told}`"));
        }
    }
    Ok(())
}

/// Without owners and modes nobody can say who wrote what.
#[cfg(not(unix))]
pub(super) fn private(_folder: &Path) -> Result<(), String> {
    Err("on this system the owner of a folder cannot be checked".into())
}

/// Opens a file of the folder that is this user's alone, and no way to another one.
#[cfg(unix)]
pub(super) fn open_own(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::MetadataExt;

    let metadata = path.symlink_metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        return Err(io::Error::other("others than its user can write to it"));
    }
    // Nobody else can put another file here meanwhile: the folder is private.
    File::open(path)
}

/// As [`private`], which has refused the folder already.
#[cfg(not(unix))]
pub(super) fn open_own(path: &Path) -> io::Result<File> {
    File::open(path)
}
