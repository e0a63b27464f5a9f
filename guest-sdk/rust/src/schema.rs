//! Fields as `describe` tells them: pre-order, with Arrow's format strings.

/// One node of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name.
    pub name: String,
    /// The type, as the Arrow C data interface writes it.
    pub format: String,
    /// Whether there may be nulls.
    pub nullable: bool,
    /// How many of the following nodes are direct children.
    pub children: u32,
}

/// Nodes in pre-order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// The nodes.
    pub fields: Vec<Field>,
}

impl Schema {
    /// Appends a node.
    pub fn push(&mut self, name: &str, format: &str, nullable: bool, children: u32) {
        self.fields.push(Field { name: name.to_owned(), format: format.to_owned(), nullable, children });
    }
}
