//! The files of a new plugin, one list per language.
//!
//! In their texts `{name}` is the plugin's name, `{sdk}` the quoted path of the SDK, and `{path}` the same without its
//! quotes.

use millstream_runtime::inspect::Language;

type Files = &'static [(&'static str, &'static str)];

macro_rules! template {
    ($folder:literal: $($file:literal from $source:literal)*) => {
        &[$(($file, include_str!(concat!("../../../templates/", $folder, "/", $source, ".template")))),*]
    };
}

/// The files of a language, by their names in the plugin's folder.
pub(super) fn files(language: Language) -> Files {
    match language {
        Language::Rust => template! { "rust":
            "Cargo.toml" from "Cargo.toml"
            "src/lib.rs" from "lib.rs"
            ".gitignore" from "gitignore"
        },
        Language::Python => template! { "python":
            "plugin.toml" from "plugin.toml"
            "plugin.py" from "plugin.py"
            "test_plugin.py" from "test_plugin.py"
            ".gitignore" from "gitignore"
        },
        Language::JavaScript => template! { "javascript":
            "plugin.toml" from "plugin.toml"
            "plugin.js" from "plugin.js"
            "plugin.test.js" from "plugin.test.js"
            "package.json" from "package.json"
            ".gitignore" from "gitignore"
        },
        Language::TypeScript => template! { "typescript":
            "plugin.toml" from "plugin.toml"
            "plugin.ts" from "plugin.ts"
            "plugin.test.ts" from "plugin.test.ts"
            "package.json" from "package.json"
            "tsconfig.json" from "tsconfig.json"
            ".gitignore" from "gitignore"
        },
    }
}
