//! A program that serves on a port of this machine.

use crate::folder::Folder;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a server may take to come up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The user under which servers run when the test is root, which they refuse.
const USER: &str = "nobody";

/// A running or killed server.
pub(crate) struct Server {
    folder: Folder,
    child: Mutex<Option<Child>>,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Server {
    pub(crate) fn new(folder: Folder, program: PathBuf, arguments: Vec<String>) -> Self {
        Self { folder, child: Mutex::new(None), program, arguments }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the program; `is_up` says when it serves. One that does not come up at once is started again: it may wait for
    /// what is left of the one before.
    pub(crate) fn start(&self, mut is_up: impl FnMut() -> bool) {
        let begin = Instant::now();
        let mut child = self.child.lock().unwrap();
        assert!(child.is_none(), "it runs already");
        let log = self.folder.path().join("server.log");
        'start: loop {
            let output = File::options().create(true).append(true).open(&log).unwrap();
            let mut command = unprivileged(&self.program);
            command.args(&self.arguments).stdin(Stdio::null());
            let mut started = command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap();
            std::fs::write(self.folder.path().join("server.pid"), started.id().to_string()).unwrap();
            while !is_up() {
                let text = || std::fs::read_to_string(&log).unwrap_or_default();
                if begin.elapsed() > PATIENCE {
                    let _ = started.kill();
                    panic!("{} does not come up: {}", self.program.display(), text());
                }
                if started.try_wait().unwrap().is_some() {
                    std::thread::sleep(Duration::from_millis(200));
                    continue 'start;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            *child = Some(started);
            return;
        }
    }

    /// Ends the program in order, by a signal that it knows for that.
    pub(crate) fn stop(&self, signal: &str) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            run(Command::new("kill").args(["-s", signal, &child.id().to_string()]));
            let begin = Instant::now();
            while child.try_wait().unwrap().is_none() {
                if begin.elapsed() > PATIENCE {
                    let _ = child.kill();
                    panic!("{} does not end", self.program.display());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Ends the program as a crash does.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that nobody uses now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The program in the first of these folders that has it, or in the path.
pub(crate) fn find(name: &str, folders: &[PathBuf]) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = folders.iter().cloned().chain(std::env::split_paths(&path));
    let found = all.map(|folder| folder.join(name)).find(|file| file.exists());
    found.unwrap_or_else(|| panic!("there is no program `{name}`: ./x test installs it"))
}

fn is_root() -> bool {
    id("-u", None) == 0
}

fn id(what: &str, user: Option<&str>) -> u32 {
    let output = Command::new("id").arg(what).args(user).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
}

/// A command that runs without rights.
pub(crate) fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let (user, group) = (id("-u", Some(USER)), id("-g", Some(USER)));
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user.to_string(), "--regid", &group.to_string(), "--clear-groups", "--"]);
    command.arg(program).env("HOME", "/nonexistent");
    command
}

/// Makes a folder that unprivileged commands own.
pub(crate) fn own_folder(path: &Path) {
    std::fs::create_dir(path).unwrap();
    if is_root() {
        std::os::unix::fs::chown(path, Some(id("-u", Some(USER))), Some(id("-g", Some(USER)))).unwrap();
    }
}

/// Runs a command to its good end.
pub(crate) fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
}
