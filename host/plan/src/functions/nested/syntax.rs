//! Rewrites in the syntax tree, before planning, for what only the written text tells.
//!
//! - `struct(a, p.q, 1 AS n)` → `named_struct('a', a, 'q', p.q, 'n', 1)`: fields are named as Spark names them
//! - `arrays_zip(a, b)` → `__arrays_zip('a', a, 'b', b)`
//! - `array_sort(a, (l, r) -> …)` → `__array_sort_by(a, (l, r) -> …)`
//! - `map()` → `__map()`, since the planner wants arguments for `map`
//! - `x -> x.name` → `x -> x['name']`, since the planner looks for `x` among the tables only
//! - `a[0].name`, `f(x).name` → `a[0]['name']`, `f(x)['name']`
//! - `from_json(j, schema_of_json('…'))` → `from_json(j, 'STRUCT<…>')`, and so for CSV; the schema may have options
//! - `from_avro(b, '…', map('mode', 'PERMISSIVE'))` → `from_avro(b, '…', '{"mode":"PERMISSIVE"}')`, and so for all functions
//!   whose options are known when the query is planned: only the planner's constants are known by then
//!
//! Run once over a whole statement, in any order with other rewrites.

use crate::sql::call::call;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Subscript, Value, ValueWithSpan, VisitMut, VisitorMut, visit_expressions_mut,
};

/// Rewrites every expression below `node`.
pub(crate) fn rewrite_nested_syntax<N: VisitMut>(node: &mut N) {
    let flow: ControlFlow<()> = visit_expressions_mut(node, |expr| {
        rewrite(expr);
        ControlFlow::Continue(())
    });
    debug_assert!(flow.is_continue());
}

fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::Struct { values, fields } if fields.is_empty() => {
            *expr = call("named_struct", with_names(std::mem::take(values), NameStyle::Struct));
        }
        Expr::Function(function) => rewrite_call(function),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let mut rooted = matches!(root.as_ref(), Expr::Identifier(_));
            for access in access_chain {
                // Names directly behind a column are part of a compound identifier, which the planner resolves.
                rooted &= matches!(access, AccessExpr::Dot(Expr::Identifier(_)));
                if !rooted {
                    quote_name(access);
                }
            }
        }
        Expr::Lambda(lambda) => {
            let parameters: Vec<Ident> = lambda.params.iter().map(|parameter| parameter.name.clone()).collect();
            let flow = VisitMut::visit(lambda.body.as_mut(), &mut Parameters { names: &parameters });
            debug_assert!(flow.is_continue());
        }
        _ => {}
    }
}

fn rewrite_call(function: &mut Function) {
    let name = function.name.to_string().trim_matches('`').to_ascii_lowercase();
    let FunctionArguments::List(list) = &mut function.args else { return };
    match name.as_str() {
        "struct" | "arrays_zip" => {
            let values = list.args.iter().map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
                _ => None,
            });
            let Some(values) = values.collect::<Option<Vec<_>>>() else { return };
            let (name, style) =
                if name == "struct" { ("named_struct", NameStyle::Struct) } else { ("__arrays_zip", NameStyle::Zip) };
            function.name = ObjectName::from(vec![Ident::new(name)]);
            list.args = with_names(values, style)
                .into_iter()
                .map(|value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value)))
                .collect();
        }
        "array_sort" if list.args.len() == 2 => {
            function.name = ObjectName::from(vec![Ident::new("__array_sort_by")]);
        }
        "map" if list.args.is_empty() => {
            function.name = ObjectName::from(vec![Ident::new("__map")]);
        }
        "from_json" | "from_csv" => {
            for arg in &mut list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = arg
                    && let Some(schema) = constant_schema(value)
                {
                    *value = text(schema);
                }
            }
            fold_options(list);
        }
        "to_json" | "schema_of_json" | "to_csv" | "schema_of_csv" | "from_avro" | "to_avro" | "from_protobuf"
        | "to_protobuf" => fold_options(list),
        _ => {}
    }
}

/// Makes constant options, which come last and never first, one text.
fn fold_options(list: &mut FunctionArgumentList) {
    if let [_, .., FunctionArg::Unnamed(FunctionArgExpr::Expr(options))] = list.args.as_mut_slice()
        && let Some(constant) = constant_map(options)
    {
        *options = text(constant);
    }
}

/// The JSON of `map('…', '…')` for constants.
fn constant_map(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    if !function.name.to_string().eq_ignore_ascii_case("map") {
        return None;
    }
    let texts = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(ValueWithSpan { value, .. }))) => string_of(value),
        _ => None,
    });
    let texts = texts.collect::<Option<Vec<_>>>()?;
    let pairs = texts.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].into()));
    Some(serde_json::Value::Object(pairs.collect()).to_string())
}

/// What `schema_of_json('…')` or `schema_of_csv('…')` gives for a constant, with constant options or without.
fn constant_schema(expr: &Expr) -> Option<String> {
    let Expr::Function(function) = expr else { return None };
    let schema_of = match function.name.to_string().to_ascii_lowercase().as_str() {
        "schema_of_json" => super::json::constant_schema,
        "schema_of_csv" => super::csv::constant_schema,
        _ => return None,
    };
    let FunctionArguments::List(list) = &function.args else { return None };
    let constants = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(ValueWithSpan { value, .. }))) => {
            string_of(value).map(str::to_owned)
        }
        FunctionArg::Unnamed(FunctionArgExpr::Expr(options)) => constant_map(options),
        _ => None,
    });
    match constants.collect::<Option<Vec<_>>>()?.as_slice() {
        [sample] => schema_of(sample, None),
        [sample, options] => schema_of(sample, Some(options)),
        _ => None,
    }
}

fn string_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text),
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum NameStyle {
    /// `col1`, `col2`, … for values without a name.
    Struct,
    /// `0`, `1`, … for values without a name.
    Zip,
}

/// Puts its name before each value.
fn with_names(values: Vec<Expr>, style: NameStyle) -> Vec<Expr> {
    let pairs = values.into_iter().enumerate().flat_map(|(position, value)| {
        let name = name_of(&value).unwrap_or_else(|| match style {
            NameStyle::Struct => format!("col{}", position + 1),
            NameStyle::Zip => position.to_string(),
        });
        let value = if let Expr::Named { expr, .. } = value { *expr } else { value };
        [text(name), value]
    });
    pairs.collect()
}

fn name_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Identifier(name) | Expr::Named { name, .. } => Some(name.value.clone()),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.clone()),
        Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last()? {
            AccessExpr::Dot(Expr::Identifier(name)) => Some(name.value.clone()),
            AccessExpr::Dot(Expr::Value(value))
            | AccessExpr::Subscript(Subscript::Index { index: Expr::Value(value) }) => {
                string_of(&value.value).map(str::to_owned)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Makes `.name` behind anything but a column a quoted name, which the planner accepts.
fn quote_name(access: &mut AccessExpr) {
    if let AccessExpr::Dot(Expr::Identifier(name)) = access {
        *access = AccessExpr::Dot(text(name.value.clone()));
    }
}

/// Rewrites the fields of lambda parameters inside a lambda's body.
struct Parameters<'a> {
    names: &'a [Ident],
}

impl Parameters<'_> {
    fn has(&self, name: &Ident) -> bool {
        self.names.iter().any(|parameter| parameter.value.eq_ignore_ascii_case(&name.value))
    }
}

impl VisitorMut for Parameters<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::CompoundIdentifier(names) if names.first().is_some_and(|name| self.has(name)) => {
                let fields = names.split_off(1);
                let access_chain = fields.into_iter().map(|field| AccessExpr::Dot(text(field.value))).collect();
                if let Some(root) = names.pop() {
                    *expr = Expr::CompoundFieldAccess { root: Box::new(Expr::Identifier(root)), access_chain };
                }
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                if matches!(root.as_ref(), Expr::Identifier(name) if self.has(name)) {
                    access_chain.iter_mut().for_each(quote_name);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn text(value: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(value).with_empty_span())
}
