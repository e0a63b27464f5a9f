//! How a row looks as a line, as Spark's rows look: `(hello,1)`.

/// A row as a line.
pub trait Show {
    /// The line.
    fn show(&self) -> String;
}

macro_rules! shown_as_displayed {
    ($($kind:ty),*) => { $(impl Show for $kind {
        fn show(&self) -> String {
            self.to_string()
        }
    })* };
}

shown_as_displayed!(String, &'static str, bool, char, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);

/// Numbers with a point always have one, as `1.0`.
impl Show for f64 {
    fn show(&self) -> String {
        format!("{self:?}")
    }
}

/// As `f64`.
impl Show for f32 {
    fn show(&self) -> String {
        format!("{self:?}")
    }
}

impl Show for () {
    fn show(&self) -> String {
        "()".to_owned()
    }
}

impl<T: Show> Show for Option<T> {
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "None".to_owned(), |value| format!("Some({})", value.show()))
    }
}

impl<T: Show> Show for Vec<T> {
    fn show(&self) -> String {
        format!("[{}]", self.iter().map(Show::show).collect::<Vec<_>>().join(","))
    }
}

impl<A: Show, B: Show> Show for (A, B) {
    fn show(&self) -> String {
        format!("({},{})", self.0.show(), self.1.show())
    }
}

impl<A: Show, B: Show, C: Show> Show for (A, B, C) {
    fn show(&self) -> String {
        format!("({},{},{})", self.0.show(), self.1.show(), self.2.show())
    }
}

impl<A: Show, B: Show, C: Show, D: Show> Show for (A, B, C, D) {
    fn show(&self) -> String {
        format!("({},{},{},{})", self.0.show(), self.1.show(), self.2.show(), self.3.show())
    }
}

#[cfg(test)]
mod tests {
    use super::Show;

    #[test]
    fn rows_look_as_in_spark() {
        assert_eq!(("hello".to_owned(), 1_i64).show(), "(hello,1)");
        assert_eq!(("041.html", (Some(6.3), None::<i64>)).show(), "(041.html,(Some(6.3),None))");
        assert_eq!(vec![1.0, 2.5].show(), "[1.0,2.5]");
    }
}
