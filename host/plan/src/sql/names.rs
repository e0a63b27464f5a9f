//! Names without regard to case: Spark finds `Word` when the column is `word`.
//!
//! Every identifier of the query is spelled as the first declaration of that name does: columns and fields of
//! streams and tables first, then names in the query itself.

use arrow::datatypes::{DataType, Fields};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, TableFactor, VisitMut, VisitorMut,
};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// The known spellings, by lower case.
#[derive(Debug, Default, Clone)]
pub(crate) struct Names {
    by_lower: HashMap<String, String>,
    /// How many queries enclose the one being visited.
    depth: usize,
}

impl Names {
    /// Adds a name; an earlier spelling stays.
    pub(crate) fn add(&mut self, name: &str) {
        self.by_lower.entry(name.to_lowercase()).or_insert_with(|| name.to_owned());
    }

    /// How a name was declared, if it was.
    pub(super) fn declared(&self, name: &str) -> Option<&str> {
        self.by_lower.get(&name.to_lowercase()).map(String::as_str)
    }

    /// Adds columns and the fields inside them.
    pub(crate) fn add_fields(&mut self, fields: &Fields) {
        for field in fields {
            self.add(field.name());
            self.add_type(field.data_type());
        }
    }

    fn add_type(&mut self, data_type: &DataType) {
        match data_type {
            DataType::Struct(fields) => self.add_fields(fields),
            DataType::List(item) => self.add_type(item.data_type()),
            DataType::Map(entries, _) => {
                if let DataType::Struct(entry) = entries.data_type()
                    && let Some(value) = entry.get(1)
                {
                    self.add_type(value.data_type());
                }
            }
            _ => {}
        }
    }

    /// Spells every identifier of the query as it was declared. Aliases of the outermost SELECT stay as written: they
    /// are the names of the result.
    pub(crate) fn apply(&mut self, query: &mut Query) {
        self.depth = 0;
        let ControlFlow::Continue(()) = VisitMut::visit(query, self);
    }

    fn spell(&mut self, ident: &mut Ident) {
        match self.by_lower.get(&ident.value.to_lowercase()) {
            Some(known) => ident.value.clone_from(known),
            None => self.add(&ident.value),
        }
    }

    fn spell_parts(&mut self, name: &mut ObjectName) {
        for part in &mut name.0 {
            if let ObjectNamePart::Identifier(ident) = part {
                self.spell(ident);
            }
        }
    }
}

/// The name by which a relation of FROM is known: its alias, or the table's own.
pub(super) fn relation_name(factor: &TableFactor) -> Option<ObjectName> {
    match factor {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(ObjectName::from(vec![alias.name.clone()]))
        }
        TableFactor::Table { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// The last part of a name.
pub(super) fn last_part(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(ObjectNamePart::as_ident)
}

impl VisitorMut for Names {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            self.spell(&mut cte.alias.name);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        let inner = self.depth > 1;
        for item in &mut select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } if inner => self.spell(alias),
                SelectItem::ExprWithAlias { alias, .. } => self.add(&alias.value),
                SelectItem::ExprWithAliases { aliases, .. } => aliases.iter_mut().for_each(|alias| self.spell(alias)),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    self.spell_parts(name);
                }
                _ => {}
            }
        }
        for view in &mut select.lateral_views {
            view.lateral_col_alias.iter_mut().for_each(|alias| self.spell(alias));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } = factor
        {
            self.spell(&mut alias.name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Identifier(ident) => self.spell(ident),
            Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(|part| self.spell(part)),
            Expr::Function(call) => {
                if let FunctionArguments::List(list) = &mut call.args {
                    for argument in &mut list.args {
                        if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) = argument {
                            self.spell_parts(name);
                        }
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Self::Break> {
        self.spell_parts(relation);
        ControlFlow::Continue(())
    }
}
