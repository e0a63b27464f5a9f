//! A host in a process of its own, which is killed (SIGKILL) where it is to die.
//!
//! ```text
//!   parent ──order, a line of JSON──► child: obeys ──answer, a line of JSON──► parent
//!                                     at the step: says so, and waits for its end ◄── SIGKILL
//! ```

use super::host::Host;
use super::{Answer, Order, Shape};
use anyhow::{Context, Result, bail};
use millstream_checkpoint::open_files;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The word that makes the program a host.
pub(super) const HOST: &str = "host";

/// Obeys orders on standard input until it ends or the process dies.
///
/// # Errors
/// When it is not called as [`Process`] calls it.
pub fn serve(arguments: &[String]) -> Result<()> {
    let [folder, shape] = arguments else { bail!("a host needs a folder and a shape") };
    let shape = if shape == "tracker" { Shape::Tracker } else { Shape::Ledger };
    let disk = open_files(folder, &[])?;
    let on_strike = |step: &str| {
        // A failure to say so shows as a child that says nothing.
        let _ = say(&Answer::Struck { step: step.to_owned() });
        loop {
            std::thread::park();
        }
    };
    let components = Path::new(folder).join("components");
    let mut host = Host::new(shape, disk, Some(&components), Arc::new(on_strike))?;
    for line in std::io::stdin().lines() {
        let order: Order = serde_json::from_str(&line?)?;
        let answer = host.obey(&order);
        // After a strike the parent has been told by the thread that died.
        if !matches!(answer, Answer::Struck { .. }) {
            say(&answer)?;
        }
    }
    Ok(())
}

fn say(answer: &Answer) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(answer)?)?;
    Ok(out.flush()?)
}

/// A host that lives in processes.
pub(super) struct Process {
    program: PathBuf,
    folder: PathBuf,
    shape: Shape,
    child: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
    /// Processes that were killed.
    pub(super) kills: u64,
}

impl Process {
    pub(super) fn new(program: &Path, folder: &Path, shape: Shape) -> Self {
        Self { program: program.to_owned(), folder: folder.to_owned(), shape, child: None, kills: 0 }
    }

    /// As [`obey`](Self::obey), and kills the child after some time, if it has not answered by then.
    pub(super) fn obey_until(&mut self, order: &Order, time: Duration, step: &str) -> Result<Answer> {
        self.tell(order)?;
        let Some((child, ..)) = &self.child else { bail!("there is no child") };
        let (pid, (done, is_done)) = (child.id(), channel::<()>());
        let killer = std::thread::spawn(move || {
            // The child is not waited for before this thread has ended, so its number stays its own.
            is_done.recv_timeout(time).is_err()
                && Command::new("kill").args(["-9", &pid.to_string()]).status().is_ok_and(|status| status.success())
        });
        let answer = self.answer();
        // Nobody listens when it has killed already.
        let _ = done.send(());
        let was_killed = killer.join().unwrap_or(false);
        match answer {
            Ok(Some(answer)) if !was_killed => Ok(answer),
            Ok(_) if was_killed => {
                self.kill()?;
                Ok(Answer::Struck { step: step.to_owned() })
            }
            Ok(_) => bail!("the child ended"),
            Err(error) => Err(error),
        }
    }

    /// Tells the child, which is started when there is none.
    pub(super) fn obey(&mut self, order: &Order) -> Result<Answer> {
        self.tell(order)?;
        let Some(answer) = self.answer()? else { bail!("the child ended") };
        if matches!(answer, Answer::Struck { .. }) {
            self.kill()?;
        }
        Ok(answer)
    }

    fn tell(&mut self, order: &Order) -> Result<()> {
        if self.child.is_none() {
            let shape = if self.shape == Shape::Tracker { "tracker" } else { "ledger" };
            let mut child = Command::new(&self.program)
                .args([HOST, self.folder.to_str().context("a path is no UTF-8")?, shape])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let (input, output) = (child.stdin.take(), child.stdout.take());
            let (input, output) = input.zip(output).context("the child has no pipes")?;
            self.child = Some((child, input, BufReader::new(output)));
        }
        let Some((_, input, _)) = &mut self.child else { bail!("there is no child") };
        writeln!(input, "{}", serde_json::to_string(order)?)?;
        Ok(input.flush()?)
    }

    /// `None` when the child has ended.
    fn answer(&mut self) -> Result<Option<Answer>> {
        let Some((_, _, output)) = &mut self.child else { bail!("there is no child") };
        let mut line = String::new();
        if output.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&line)?))
    }

    /// SIGKILL.
    pub(super) fn kill(&mut self) -> Result<()> {
        if let Some((mut child, ..)) = self.child.take() {
            child.kill()?;
            child.wait()?;
            self.kills += 1;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some((mut child, ..)) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
