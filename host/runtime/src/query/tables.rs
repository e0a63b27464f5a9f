//! Static tables that are read anew while the query runs.
//!
//! Before a batch is computed, its tables are as fresh as their option `refresh` asks for. The plan stays what it is; only
//! the rows behind it are others. A batch that runs again after a crash sees the tables as they are then.

use super::open;
use super::run::QueryRun;
use crate::{RuntimeError, TableSpec};
use millstream_source::Refresh;

/// Whether a table that was read then is to be read again now.
fn is_due(refresh: Refresh, read_ms: i64, now_ms: i64) -> bool {
    match refresh {
        Refresh::Never => false,
        Refresh::EveryBatch => true,
        Refresh::Every { ms } => now_ms.saturating_sub(read_ms) >= ms,
    }
}

/// Reads what is due.
pub(super) fn refresh(run: &mut QueryRun) -> Result<(), RuntimeError> {
    let now_ms = run.clock.now_ms();
    for (at, table) in run.tables.iter_mut().enumerate() {
        let (Some(live), Some(TableSpec::Files(spec))) = (&table.live, run.spec.tables.get(at)) else { continue };
        let read_ms = run.tables_read_ms.entry(spec.name.clone()).or_insert(now_ms);
        if is_due(Refresh::of(spec)?, *read_ms, now_ms) {
            table.rows = open::read_table(&run.session, spec, &run.stop)?.rows;
            live.fill(table.rows.clone());
            *read_ms = now_ms;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_again_when_its_time_has_come() {
        assert!(!is_due(Refresh::Never, 0, i64::MAX));
        assert!(is_due(Refresh::EveryBatch, 5, 5));
        assert!(!is_due(Refresh::Every { ms: 10 }, 5, 14));
        assert!(is_due(Refresh::Every { ms: 10 }, 5, 15));
    }
}
