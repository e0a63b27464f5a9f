//! A verdict for people.

use super::{DryRun, VerdictReport};
use std::fmt;

impl fmt::Display for VerdictReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "verdict    {}", self.verdict)?;
        let from = self.from.as_deref().map_or("nothing yet", short);
        writeln!(f, "plugin     {}: {from} -> {}", self.plugin, short(&self.to))?;
        let used = if self.used.is_empty() { "nothing".to_owned() } else { self.used.join(", ") };
        writeln!(f, "calls      {used}")?;
        match self.permissions.as_deref() {
            None => {}
            Some([]) => writeln!(f, "asks for   nothing")?,
            Some(permissions) => {
                for permission in permissions {
                    writeln!(f, "asks for   {permission}")?;
                }
            }
        }
        for finding in &self.findings {
            writeln!(f, "{:<10} {}", finding.verdict.to_string().split(' ').next().unwrap_or_default(), finding.what)?;
        }
        for step in &self.migration {
            writeln!(f, "migration  {step}")?;
        }
        if let Some(dry_run) = &self.dry_run {
            dry_run.write("dry run", f)?;
        }
        if let Some(shadow) = &self.shadow {
            shadow.write("shadow", f)?;
        }
        for note in &self.notes {
            writeln!(f, "note       {note}")?;
        }
        Ok(())
    }
}

impl DryRun {
    fn write(&self, title: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = match (self.batches.first(), self.batches.last()) {
            (Some(first), Some(last)) if first != last => format!("batches {first} to {last}"),
            (Some(first), _) => format!("batch {first}"),
            _ => "no batch".to_owned(),
        };
        let (input, old, new) = (self.input_rows, self.rows_before, self.rows_after);
        writeln!(f, "{title:<10} {span}: {input} rows in, {old} out before, {new} out now")?;
        writeln!(f, "           {} rows come out otherwise, {} keys of state", self.rows_changed, self.keys_changed)?;
        for example in &self.examples {
            writeln!(f, "           {example}")?;
        }
        for failing in &self.failing_rows {
            let (batch, function, message) = (failing.batch, &failing.function, &failing.message);
            writeln!(f, "           batch {batch}, {function}{}: {message}", failing.arguments)?;
        }
        if let Some(ratio) = self.cost_ratio {
            let (old, new) = (self.old_us as f64 / 1000.0, self.new_us as f64 / 1000.0);
            writeln!(f, "           time in the plugin {old:.1} ms before, {new:.1} ms now: {ratio:.2} times")?;
        }
        if self.migrated_keys > 0 {
            let (keys, time) = (self.migrated_keys, self.pause_ms);
            writeln!(
                f,
                "           {keys} keys migrated in {time} ms: so long a start stands still, a running query less"
            )?;
        }
        Ok(())
    }
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
