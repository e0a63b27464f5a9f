//! What is printed when a story fails: the steps with an arrow, offsets, watermark, sink, plan.

use crate::player::Player;
use std::fmt::Write;

/// The report of a failure at a step.
pub(crate) fn failure(player: &mut Player<'_>, at: usize, reason: &str) -> String {
    let mut text = format!("story `{}`: {reason}\n\n== Steps ==\n", player.story.name);
    for (index, step) in player.story.steps.iter().enumerate() {
        let arrow = if index == at { "=>" } else { "  " };
        line(&mut text, format_args!("{arrow} {:>3}  {}", step.line, step.text.replace('\n', " ")));
    }
    text.push_str("\n== Offsets and watermark ==\n");
    let newest = player.world.checkpoint().and_then(|checkpoint| {
        let Some(log) = checkpoint.map(|checkpoint| checkpoint.offset_log()) else { return Ok(None) };
        Ok(match log.batches()?.last() {
            Some(batch) => log.get(*batch)?,
            None => None,
        })
    });
    match newest {
        Ok(Some(entry)) => {
            for (source, range) in &entry.sources {
                let of = |offset: &Option<_>| offset.as_ref().map_or("none".to_owned(), ToString::to_string);
                line(&mut text, format_args!("{source}: ({}, {}]", of(&range.start), of(&range.end)));
            }
            line(&mut text, format_args!("batch {}, watermark {:?} ms", entry.batch, entry.watermark_ms));
        }
        Ok(None) => text.push_str("no batch was defined\n"),
        Err(error) => line(&mut text, format_args!("unreadable: {error:#}")),
    }
    if let Some(progress) = &player.last {
        line(&mut text, format_args!("event time {:?}, state {:?}", progress.event_time, progress.state_operators));
    }
    text.push_str("\n== Sink ==\n");
    match player.batches() {
        Ok(batches) => batches.iter().for_each(|(id, rows)| line(&mut text, format_args!("{id}: {rows:?}"))),
        Err(error) => line(&mut text, format_args!("unreadable: {error:#}")),
    }
    if let Some(run) = &mut player.run {
        line(&mut text, format_args!("\n{}", run.explain()));
    }
    text
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}
