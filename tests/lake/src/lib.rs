//! Files and tables as other systems read them: real Spark, and the Python package of Delta Lake.
//!
//! [`Stage`] runs a query whose writes can crash; [`Readers`] is a process of Python that reads and writes what others
//! would. `./x toolchain` gets both packages; `MILLSTREAM_TEST_SPARK` names another Python that has them.

mod readers;
mod stage;

pub use readers::Readers;
pub use stage::Stage;
