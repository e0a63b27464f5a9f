//! Commands in the form in which they travel: arrays of strings that say their lengths.

/// Commands that are sent together.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    bytes: Vec<u8>,
    count: usize,
}

impl Commands {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// One.
    pub fn one(arguments: &[&[u8]]) -> Self {
        let mut commands = Self::new();
        commands.add(arguments);
        commands
    }

    /// Adds a command: its name and what follows.
    pub fn add<A: AsRef<[u8]>>(&mut self, arguments: &[A]) {
        self.head(b'*', arguments.len());
        for argument in arguments {
            let argument = argument.as_ref();
            self.head(b'$', argument.len());
            self.bytes.extend_from_slice(argument);
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.count += 1;
    }

    fn head(&mut self, kind: u8, length: usize) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(length.to_string().as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many bytes they have.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// What is sent.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_tells_how_long_its_parts_are() {
        let mut commands = Commands::one(&[b"SET", b"k", b"a\r\nb"]);
        commands.add(&["PING"]);
        assert_eq!((commands.len(), commands.is_empty()), (2, false));
        assert_eq!(commands.bytes(), b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n*1\r\n$4\r\nPING\r\n");
        assert_eq!(commands.size(), commands.bytes().len());
    }
}
