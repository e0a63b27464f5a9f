//! One server of a cluster: a process of Java, which ends with the test program.

use crate::jars;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to end.
const STOP: Duration = Duration::from_secs(30);

/// Sends signals to the server, one name per line; when its input ends, which happens however the test program ends, it kills
/// the server. A signal to the whole group does not end it before that.
const KEEPER: &str = r#"
trap : HUP INT TERM
"$@" >>"$LOG" 2>&1 </dev/null &
server=$!
while read -r signal; do
  kill -s "$signal" $server 2>/dev/null
  [ "$signal" != KILL ] || { wait $server; exit; }
done
kill -s KILL $server 2>/dev/null
wait $server
rm -rf "$FOLDER"
exit 0
"#;

/// What a server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It knows the names.
    NameNode,
    /// It has the bytes.
    DataNode,
}

impl Role {
    fn class(self) -> &'static str {
        match self {
            Self::NameNode => "org.apache.hadoop.hdfs.server.namenode.NameNode",
            Self::DataNode => "org.apache.hadoop.hdfs.server.datanode.DataNode",
        }
    }

    /// How its log is called.
    pub(crate) fn log(self) -> &'static str {
        match self {
            Self::NameNode => "name-node.log",
            Self::DataNode => "data-node.log",
        }
    }
}

/// A server that runs.
#[derive(Debug)]
pub(crate) struct Process {
    keeper: Child,
}

/// A program of Hadoop with the configuration in a folder. Small, and quick to start.
fn program(folder: &Path, role: Role) -> Result<Command> {
    let mut command = Command::new("sh");
    command.args(["-c", KEEPER, "keeper"]).arg(jars::java());
    command.args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
    command.args(["-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]);
    command.arg("-cp").arg(format!("{}:{}", folder.display(), jars::class_path()?)).arg(role.class());
    command.env("LOG", folder.join(role.log())).env("FOLDER", folder).env_remove("HADOOP_USER_NAME");
    command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::piped());
    Ok(command)
}

impl Process {
    /// Starts a server; it does not answer yet.
    pub(crate) fn start(folder: &Path, role: Role) -> Result<Self> {
        let keeper = program(folder, role)?.spawn().context("no shell starts")?;
        Ok(Self { keeper })
    }

    /// Makes the folder of a name node, by Hadoop's own program.
    pub(crate) fn format(folder: &Path) -> Result<()> {
        let mut command = Command::new(jars::java());
        command.args(["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
        command.arg("-cp").arg(format!("{}:{}", folder.display(), jars::class_path()?));
        command.args([Role::NameNode.class(), "-format", "-nonInteractive"]);
        let output = command.stdin(Stdio::null()).output().context("java does not start: run `./x toolchain`")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the folder of a name node cannot be made: {said}");
        Ok(())
    }

    /// Sends a signal: `STOP`, `CONT`, `KILL`; after the last one the process is gone, and the folder is there.
    pub(crate) fn signal(&mut self, signal: &str) -> Result<()> {
        let input = self.keeper.stdin.as_mut().context("the keeper has no input")?;
        writeln!(input, "{signal}")?;
        if signal != "KILL" {
            // It is the shell's turn.
            std::thread::sleep(Duration::from_millis(100));
            return Ok(());
        }
        let begin = Instant::now();
        while self.keeper.try_wait()?.is_none() {
            if begin.elapsed() > STOP {
                bail!("a server does not end");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// What Hadoop's own client says.
pub(crate) fn shell(arguments: &[&str]) -> Result<String> {
    // It wants a file of settings.
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("core-site.xml"), "<configuration/>")?;
    let mut command = Command::new(jars::java());
    command.args(["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]);
    command.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error");
    command.arg("-cp").arg(format!("{}:{}", folder.path().display(), jars::class_path()?));
    command.arg("org.apache.hadoop.fs.FsShell").args(arguments);
    let output = command.stdin(Stdio::null()).output().context("java does not start: run `./x toolchain`")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "Hadoop's client fails: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The end of what a server wrote.
pub(crate) fn log(folder: &Path, role: Role) -> String {
    let log = fs::read_to_string(folder.join(role.log())).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
