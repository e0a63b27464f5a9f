//! Rewriting an expression of a plan under the name that it had.
//!
//! The columns of a plan are called after its expressions, so what stands above refers to the old name. In a grouping
//! set it is the keys inside that name columns, not the set.

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, GroupingSet};

/// `expr` as `rewrite` makes it, called as before.
pub(super) fn rewrite_named(
    expr: Expr,
    names: &NamePreserver,
    rewrite: &mut dyn FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<Expr>> {
    let mut each = |keys: Vec<Expr>| -> Result<(Vec<Expr>, bool)> {
        let mut changed = false;
        let mut rewritten = Vec::with_capacity(keys.len());
        for key in keys {
            let key = rewrite_named(key, names, rewrite)?;
            changed |= key.transformed;
            rewritten.push(key.data);
        }
        Ok((rewritten, changed))
    };
    let set = |set: GroupingSet, changed: bool| {
        let set = Expr::GroupingSet(set);
        if changed { Transformed::yes(set) } else { Transformed::no(set) }
    };
    match expr {
        Expr::GroupingSet(GroupingSet::Rollup(keys)) => {
            each(keys).map(|(keys, changed)| set(GroupingSet::Rollup(keys), changed))
        }
        Expr::GroupingSet(GroupingSet::Cube(keys)) => {
            each(keys).map(|(keys, changed)| set(GroupingSet::Cube(keys), changed))
        }
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
            let mut changed = false;
            let mut rewritten = Vec::with_capacity(sets.len());
            for keys in sets {
                let (keys, any) = each(keys)?;
                changed |= any;
                rewritten.push(keys);
            }
            Ok(set(GroupingSet::GroupingSets(rewritten), changed))
        }
        expr => {
            let name = names.save(&expr);
            rewrite(expr).map(|rewritten| rewritten.update_data(|expr| name.restore(expr)))
        }
    }
}
