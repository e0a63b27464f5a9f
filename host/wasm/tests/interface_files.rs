//! The files of the plugin interface, as a generator of bindings reads them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail a test")]

use std::path::Path;
use wit_parser::{Resolve, WorldItem};

#[test]
fn they_are_one_package_whose_worlds_all_describe_themselves_and_may_log() {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../wit");
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(&folder).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(resolve.packages[package].name.to_string(), "millstream:plugin@0.2.0");
    let worlds = &resolve.packages[package].worlds;
    assert!(worlds.len() >= 6, "{worlds:?}");
    for (name, world) in worlds {
        let world = &resolve.worlds[*world];
        let names = |items: &mut dyn Iterator<Item = &WorldItem>| -> Vec<String> {
            items
                .filter_map(|item| match item {
                    WorldItem::Interface { id, .. } => resolve.interfaces[*id].name.clone(),
                    _ => None,
                })
                .collect()
        };
        assert!(names(&mut world.imports.values()).contains(&"log".to_owned()), "{name} may not log");
        assert!(names(&mut world.exports.values()).contains(&"describe".to_owned()), "{name} does not describe itself");
    }
}
