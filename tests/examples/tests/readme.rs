//! What the README says to type works.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "shared with another test")]
#[path = "../../../host/package/tests/registry/server.rs"]
mod server;

use test_examples::{bash, output_of, root};

/// The text of the code blocks below a heading.
fn commands_below(document: &str, heading: &str) -> String {
    let section = document.split(&format!("\n## {heading}\n")).nth(1).expect("the README has the heading");
    let section = section.split("\n## ").next().unwrap_or(section);
    let mut commands = String::new();
    let mut is_shell = false;
    for line in section.lines() {
        if let Some(language) = line.strip_prefix("```") {
            is_shell = language == "sh";
        } else if is_shell {
            commands.push_str(line);
            commands.push('\n');
        }
    }
    commands
}

/// The second part takes what the first one made.
#[test]
fn a_plugin_of_ones_own_is_made_run_and_swapped_and_goes_through_a_registry() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let commands = commands_below(&readme, "A plugin of your own in five minutes");
    assert!(commands.contains("millstream plugin new"), "{commands}");
    let registry = server::Server::open();
    let packages = commands_below(&readme, "Plugins as packages");
    assert!(packages.contains("plugin push") && packages.contains("plugin verify"), "{packages}");
    let packages = packages.replace("localhost:5000", &registry.address);
    let mut command = bash();
    command.env("TMPDIR", folder.path());
    command.args(["-euo", "pipefail", "-c", &format!("{commands}echo packages follow\n{packages}")]);
    let output = output_of(command);
    let (output, packages) = output.split_once("packages follow").unwrap();
    for said in [
        "pushed     oci://",
        "pulled     oci://",
        "pinned     loud oci://",
        "accepted",
        "stopping",
        "signed     oci://",
    ] {
        assert!(packages.contains(said), "`{said}` is missing: {packages}");
    }
    let tables: Vec<&str> = output.split("Batch: ").collect();
    assert!(tables.iter().any(|table| table.contains("|  HELP|")), "{output}");
    assert!(tables.last().is_some_and(|table| table.contains("|  help|")), "{output}");
    assert!(output.contains("accepted"), "{output}");
}
