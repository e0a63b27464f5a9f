//! A real registry on this machine, which ends with the test.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Whom a guarded registry lets in, with the password `abc`.
pub(crate) const USER: &str = "ann";
const HASHED: &str = "ann:$2a$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i\n";
/// `config.json` with that user, `{}` stands for the registry.
pub(crate) const LOGIN: &str = r#"{"auths": {"{}": {"auth": "YW5uOmFiYw=="}}}"#;

/// The registry.
pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) folder: TempDir,
    child: Child,
}

impl Server {
    /// One that lets everybody in.
    pub(crate) fn open() -> Self {
        Self::start(false)
    }

    /// One that lets only [`USER`] in.
    pub(crate) fn guarded() -> Self {
        Self::start(true)
    }

    fn start(is_guarded: bool) -> Self {
        let program = program();
        let folder = tempfile::tempdir().unwrap();
        // Somebody else may take the port before the registry does.
        for _ in 0..5 {
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
            let root = folder.path().display();
            let mut config = format!(
                "version: 0.1\nlog:\n  level: error\n  accesslog:\n    disabled: true\nstorage:\n  filesystem:\n    \
                 rootdirectory: {root}/data\nhttp:\n  addr: {address}\n  secret: of-a-test\n"
            );
            if is_guarded {
                std::fs::write(folder.path().join("users"), HASHED).unwrap();
                config.push_str(&format!("auth:\n  htpasswd:\n    realm: test\n    path: {root}/users\n"));
            }
            let file = folder.path().join("config.yml");
            std::fs::write(&file, config).unwrap();
            let mut command = Command::new(&program);
            command.arg("serve").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
                if TcpStream::connect(&address).is_ok() {
                    return Self { address, folder, child };
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("the registry `{}` does not start", program.display());
    }

    /// A reference to something in it.
    pub(crate) fn reference(&self, rest: &str) -> String {
        format!("oci://{}/{rest}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Debian's package, installed or unpacked by `./x toolchain`.
fn program() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let toolchains = variable("MILLSTREAM_TOOLCHAINS").or_else(|| Some(cache()?.join("millstream/toolchains")));
    let unpacked = toolchains.map(|folder| folder.join("registry/usr/bin/docker-registry"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|folder| folder.join("docker-registry"));
    let found = unpacked.into_iter().chain(installed).find(|program| program.is_file());
    found.expect("`docker-registry` is not here: run `./x toolchain`, which gets it")
}
