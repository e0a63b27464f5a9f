//! Compiled components, and slots around them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, Int64Array};
use millstream_wasm::build::{self, Part, Profile};
use millstream_wasm::{Component, FaultPolicy, PluginHost, PluginLimits, PluginSlot, WasmError};

/// The folder of the workspace.
pub(crate) fn workspace() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests")).join("../..")
}

/// The bytes of a component: an example of `tests/components`, or `text` and `heat` of `plugins/`.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    static BUILT: OnceLock<HashMap<String, PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let target = build::guest_target_dir();
        let toolchain = build::find_toolchain(&target, &|_| {}).unwrap();
        let build = |folder: &str, part| {
            let folder = workspace().join(folder);
            build::build_with(&toolchain, &folder, part, Profile::Release, &target, &|_| {})
                .expect("the test components compile")
        };
        let mut files = build("tests/components", Part::Examples);
        files.extend(build("plugins/text", Part::Library));
        files.extend(build("plugins/heat", Part::Library));
        files.into_iter().map(|file| (file.file_stem().unwrap().to_string_lossy().into_owned(), file)).collect()
    });
    let file = built.get(name).expect("a component of that name");
    std::fs::read(file).unwrap()
}

/// The host that all tests share.
pub(crate) fn host() -> Arc<PluginHost> {
    static HOST: OnceLock<Arc<PluginHost>> = OnceLock::new();
    Arc::clone(HOST.get_or_init(|| PluginHost::new().unwrap()))
}

pub(crate) fn load(name: &str) -> Result<Arc<Component>, WasmError> {
    host().load(name, &bytes(name))
}

pub(crate) fn slot_with(name: &str, policy: FaultPolicy, change: impl FnOnce(&mut PluginLimits)) -> Arc<PluginSlot> {
    let mut limits = PluginLimits { deadline: Duration::from_secs(5), ..PluginLimits::default() };
    change(&mut limits);
    PluginSlot::new(name, host(), load(name).unwrap(), limits, policy)
}

pub(crate) fn slot(name: &str, policy: FaultPolicy) -> Arc<PluginSlot> {
    slot_with(name, policy, |_| {})
}

/// A column of 64-bit integers.
pub(crate) fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// The same number in `rows` rows.
pub(crate) fn constant(value: i64, rows: usize) -> ArrayRef {
    numbers(std::iter::repeat_n(value, rows))
}

/// A column as numbers, nulls as `None`.
pub(crate) fn read(column: &ArrayRef) -> Vec<Option<i64>> {
    column.as_any().downcast_ref::<Int64Array>().unwrap().iter().collect()
}
