//! Casts that would give two columns one name.
//!
//! ```text
//! SELECT sum(v), sum(CAST(v AS DOUBLE)) FROM t
//!     →  SELECT sum(v), sum(__typed('DOUBLE', CAST(v AS DOUBLE))) FROM t
//! ```
//!
//! DataFusion calls a column after its expression and leaves casts out of the name, so an aggregation of `v` and one of
//! `CAST(v AS DOUBLE)` would be one column. Where that would happen, and only there, each cast says its type in
//! a call that the optimiser takes out again.

use crate::sql::call::call;
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr as LogicalExpr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderBy, Query, Select, SelectItem, SetExpr, Value, VisitMut, VisitorMut,
};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

const TYPED: &str = "__typed";

/// Marks the casts of each SELECT of the query in which they would make columns of one name.
pub(crate) fn rewrite(query: &mut Query) {
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut Queries);
}

struct Queries;

impl VisitorMut for Queries {
    type Break = Infallible;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let mut order_by = query.order_by.take();
        match query.body.as_mut() {
            // ORDER BY stands outside of the SELECT that it sorts.
            SetExpr::Select(select) => mark(select, &mut order_by),
            body => mark_branches(body),
        }
        query.order_by = order_by;
        ControlFlow::Continue(())
    }
}

/// The SELECTs of a set operation.
fn mark_branches(body: &mut SetExpr) {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            mark_branches(left);
            mark_branches(right);
        }
        SetExpr::Select(select) => mark(select, &mut None),
        _ => {}
    }
}

fn mark(select: &mut Select, order_by: &mut Option<OrderBy>) {
    let mut names = Names::default();
    visit_select(select, order_by, &mut names);
    if let GroupByExpr::Expressions(keys, _) = &select.group_by {
        keys.iter().for_each(|key| names.add(key));
    }
    if names.is_ambiguous {
        name_columns(&mut select.projection);
        visit_select(select, order_by, &mut Mark);
    }
}

/// Visits what is computed from the rows of `select`: not its FROM, which has queries of its own.
fn visit_select<V: VisitorMut<Break = Infallible>>(
    select: &mut Select,
    order_by: &mut Option<OrderBy>,
    visitor: &mut V,
) {
    let ControlFlow::Continue(()) = VisitMut::visit(&mut select.projection, visitor);
    let ControlFlow::Continue(()) = VisitMut::visit(&mut select.group_by, visitor);
    let ControlFlow::Continue(()) = VisitMut::visit(&mut select.having, visitor);
    let ControlFlow::Continue(()) = VisitMut::visit(order_by, visitor);
}

/// The names that DataFusion would give to calls and keys, with what they stand for.
#[derive(Default)]
struct Names {
    by_name: BTreeMap<String, String>,
    is_ambiguous: bool,
}

impl Names {
    fn add(&mut self, expr: &Expr) {
        let mut without_casts = expr.clone();
        let ControlFlow::Continue(()) = VisitMut::visit(&mut without_casts, &mut Strip);
        let spelled = expr.to_string();
        let first = self.by_name.entry(without_casts.to_string()).or_insert_with(|| spelled.clone());
        self.is_ambiguous |= *first != spelled;
    }
}

impl VisitorMut for Names {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if matches!(expr, Expr::Function(_)) {
            self.add(expr);
        }
        ControlFlow::Continue(())
    }
}

struct Strip;

impl VisitorMut for Strip {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Cast { expr: inner, .. } = expr {
            *expr = inner.as_ref().clone();
        }
        ControlFlow::Continue(())
    }
}

struct Mark;

impl VisitorMut for Mark {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Cast { data_type, .. } = expr {
            let name = Expr::value(Value::SingleQuotedString(data_type.to_string()));
            *expr = call(TYPED, vec![name, expr.clone()]);
        }
        ControlFlow::Continue(())
    }
}

/// A column without a name is called as it is written; a cast column keeps the name of what it casts.
fn name_columns(projection: &mut [SelectItem]) {
    for item in projection {
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        let name = match &*expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => continue,
            Expr::Cast { expr: inner, .. } => match inner.as_ref() {
                Expr::Identifier(name) => Some(name),
                Expr::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            },
            _ => None,
        };
        let alias = name.cloned().unwrap_or_else(|| Ident::new(expr.to_string()));
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
    }
}

/// `__typed(name, value)`: the value.
pub(crate) fn typed_function() -> ScalarUDF {
    ScalarUDF::from(Typed { signature: Signature::any(2, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Typed {
    signature: Signature,
}

impl ScalarUDFImpl for Typed {
    fn name(&self) -> &str {
        TYPED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, value] => Ok(value.clone()),
            _ => plan_err!("{TYPED} takes a name and a value"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<arrow::datatypes::FieldRef> {
        match args.arg_fields {
            [_, value] => Ok(std::sync::Arc::clone(value)),
            _ => plan_err!("{TYPED} takes a name and a value"),
        }
    }

    fn simplify(&self, mut args: Vec<LogicalExpr>, _context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match args.pop() {
            Some(value) => Ok(ExprSimplifyResult::Simplified(value)),
            None => plan_err!("{TYPED} takes a name and a value"),
        }
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.pop() {
            Some(value) => Ok(value),
            None => plan_err!("{TYPED} takes a name and a value"),
        }
    }
}
