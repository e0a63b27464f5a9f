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

macro_rules! sdk {
    ($language:literal: $($file:literal)*) => {
        &[$((concat!("millstream/", $file), include_str!(concat!("../../../../../guest-sdk/", $language, "/", $file)))),*]
    };
}

/// The SDK itself, for languages whose new plugins get a copy: they build without a checkout and without a network.
pub(super) fn copied_sdk(language: Language) -> Files {
    match language {
        Language::C | Language::Cpp => sdk! { "c": "millstream.h" "millstream.c" },
        Language::Zig => sdk! { "c": "millstream.h" "millstream.c" "millstream.zig" },
        Language::Go => sdk! { "go":
            "go.mod"
            "millstream.go" "function.go" "scalar.go" "table.go" "batch.go" "log.go"
            "host_wasip1.go" "host_native.go" "exports_wasip1.go"
            "aggregate/aggregate.go" "aggregate/exports_wasip1.go"
            "processor/processor.go" "processor/invocation.go" "processor/variable.go" "processor/map.go"
            "processor/exports_wasip1.go"
            "source/source.go" "source/tester.go" "source/exports_wasip1.go"
            "config/config.go" "config/config_native.go" "config/config_wasip1.go"
            "http/http.go" "http/http_native.go" "http/http_wasip1.go"
            "internal/abi/doc.go" "internal/abi/memory_wasip1.go" "internal/abi/answer_wasip1.go"
            "internal/calls/calls.go"
            "internal/columns/field.go" "internal/columns/column.go" "internal/columns/builder.go"
            "internal/columns/values.go" "internal/columns/codec.go" "internal/columns/row.go"
        },
        Language::Rust | Language::Python | Language::JavaScript | Language::TypeScript => &[],
    }
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
        Language::C => template! { "c":
            "plugin.toml" from "plugin.toml"
            "plugin.c" from "plugin.c"
            "test_plugin.c" from "test_plugin.c"
            ".gitignore" from "gitignore"
        },
        Language::Cpp => template! { "cpp":
            "plugin.toml" from "plugin.toml"
            "plugin.cpp" from "plugin.cpp"
            "test_plugin.cpp" from "test_plugin.cpp"
            ".gitignore" from "gitignore"
        },
        Language::Zig => template! { "zig":
            "plugin.toml" from "plugin.toml"
            "plugin.zig" from "plugin.zig"
            ".gitignore" from "gitignore"
        },
        Language::Go => template! { "go":
            "plugin.toml" from "plugin.toml"
            "go.mod" from "go.mod"
            "plugin.go" from "plugin.go"
            "plugin_test.go" from "plugin_test.go"
            ".gitignore" from "gitignore"
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The sources below a folder of `guest-sdk/`, without tests and guides.
    fn sources(folder: &Path, below: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder.join(below)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
            if folder.join(&path).is_dir() {
                if name != "tests" {
                    sources(folder, &path, found);
                }
            } else if !name.ends_with("_test.go") && !name.ends_with(".md") {
                found.push(format!("millstream/{path}"));
            }
        }
    }

    #[test]
    fn a_copied_sdk_is_whole() {
        for language in [Language::Go, Language::Zig] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest-sdk").join(language.sdk_folder());
            let mut found = Vec::new();
            sources(&folder, "", &mut found);
            found.sort();
            let mut copied: Vec<_> = copied_sdk(language).iter().map(|(path, _)| (*path).to_owned()).collect();
            copied.sort();
            assert_eq!(copied, found, "{language}");
        }
        for language in Language::ALL {
            assert_eq!(copied_sdk(language).is_empty(), !language.copies_sdk(), "{language}");
        }
    }
}
