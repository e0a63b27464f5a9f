//! Components as packages in a real registry: pushed, pulled, pinned, run.

use crate::console::{Console, Ended};
use crate::raw::Guest;
use crate::server::{LOGIN, Server};

/// A query that calls `f` of a plugin, whose component is still to be named.
pub(crate) const CALLS: &str = r#"
name = "calls"
sql = "SELECT max(f(value)) AS top, count(*) AS n FROM numbers"
output_mode = "complete"
checkpoint = "checkpoint"
[[source]]
name = "numbers"
format = "rate-micro-batch"
options = { rowsPerBatch = 10 }
[sink]
format = "noop"
"#;

/// Components of the same function and the same result, which are not the same.
pub(crate) fn edition(number: u32) -> Vec<u8> {
    Guest { more: format!("(func $edition{number} (drop (i32.const {number})))"), ..Guest::default() }.component()
}

/// A folder with a query, two components, and a cache of its own.
pub(crate) fn console() -> Console {
    let mut console = Console::with(CALLS);
    console.write("first.wasm", edition(1));
    console.write("second.wasm", edition(2));
    console.set("XDG_CACHE_HOME", console.path("cache").display().to_string());
    // Whoever runs the tests may be logged in somewhere.
    console.set("DOCKER_CONFIG", console.path("docker").display().to_string());
    console
}

/// Lets the query call the component of a name.
pub(crate) fn name_component(console: &Console, component: &str) {
    console.write("query.toml", format!("{CALLS}[plugin.calls]\ncomponent = \"{component}\"\n"));
}

/// The digest after a word that a command printed.
fn told(ended: &Ended, word: &str) -> String {
    let line = ended.stdout.lines().find(|line| line.starts_with(word)).unwrap();
    line.rsplit("sha256:").next().unwrap().to_owned()
}

const RUN: [&str; 4] = ["run", "query.toml", "--trigger", "once"];

#[test]
fn a_query_runs_the_bytes_that_its_lock_file_pins_wherever_the_tag_leads() {
    let (server, console) = (Server::open(), console());
    let reference = server.reference("acme/calls:1");
    let first =
        console.run(&["plugin", "push", "first.wasm", &reference]).expect(0, &[]).prints(&["pushed     oci://"]);
    let first = told(&first, "component");
    console
        .run(&["plugin", "pull", &reference, "--out", "pulled.wasm"])
        .expect(0, &[])
        .prints(&[&format!("component  sha256:{first}"), "file       pulled.wasm"]);
    assert_eq!(std::fs::read(console.path("pulled.wasm")).unwrap(), edition(1));

    name_component(&console, &reference);
    let locked = [&RUN[..], &["--locked"]].concat();
    console.run(&locked).expect(1, &["does not pin `oci://", "hint: run `millstream plugin lock"]);
    assert!(!console.path("query.lock").exists());
    console.run(&RUN).expect(0, &[&format!("plugin      calls {}", &first[..12])]);
    let lock = console.read("query.lock");
    assert!(lock.contains(&reference) && lock.contains(&format!("component = \"sha256:{first}\"")), "{lock}");

    // Somebody moves the tag. The query does not care until it is told to.
    let second = console.run(&["plugin", "push", "second.wasm", &reference]).expect(0, &[]);
    let second = told(&second, "component");
    assert_ne!(first, second);
    console.run(&locked).expect(0, &[&format!("plugin      calls {}", &first[..12])]);
    console.run(&["plugin", "lock", "query.toml"]).expect(0, &[]).prints(&["unchanged  calls "]);
    console.run(&["plugin", "update", "query.toml", "others"]).expect(1, &["the query has no plugin `others`"]);
    console.run(&["plugin", "update", "query.toml", "calls"]).expect(0, &[]).prints(&[&format!(
        "moved      calls {reference} {} -> {}",
        &first[..12],
        &second[..12]
    )]);
    console.run(&locked).expect(0, &[&format!("plugin      calls {}", &second[..12])]);

    // Without the registry: from where pulled packages are, then from the checkpoint, then not at all.
    drop(server);
    console.run(&locked).expect(0, &[]);
    console.run(&["plugin", "cache"]).expect(0, &[]).prints(&["compiled   2 components", "packages   4 files"]);
    console.run(&["plugin", "cache", "--clear"]).expect(0, &[]).prints(&["compiled   0 ", "packages   0 files"]);
    console.run(&locked).expect(0, &[&format!("plugin      calls {}", &second[..12])]);
    std::fs::remove_dir_all(console.path("checkpoint")).unwrap();
    console.run(&locked).expect(2, &["plugin `calls` has no component", "cannot get package `oci://"]);
}

#[test]
fn a_digest_in_the_reference_pins_by_itself_and_functions_are_created_from_packages() {
    let (server, console) = (Server::open(), console());
    let reference = server.reference("acme/calls:1");
    let pushed = console.run(&["plugin", "push", "first.wasm", &reference]).expect(0, &[]);
    let pinned = format!("{reference}@sha256:{}", told(&pushed, "manifest"));
    console.run(&["plugin", "push", "second.wasm", &reference]).expect(0, &[]);
    let created = CALLS.replace("sql = \"", &format!("sql = \"CREATE FUNCTION f USING COMPONENT '{pinned}'; "));
    console.write("query.toml", created);
    let first = told(&pushed, "component");
    console.run(&[&RUN[..], &["--locked"]].concat()).expect(0, &[&format!("plugin      calls {}", &first[..12])]);
    let other = format!("{reference}@sha256:{}", "0".repeat(64));
    name_component(&console, &other);
    console.run(&RUN).expect(1, &["has no package `oci://"]);
}

#[test]
fn a_guarded_registry_takes_and_gives_to_whom_docker_has_logged_in() {
    let (server, mut console) = (Server::guarded(), console());
    let reference = server.reference("acme/calls:1");
    let push = ["plugin", "push", "first.wasm", &reference];
    console.run(&push).expect(1, &["does not let us have", "hint: say who you are: `docker login 127.0.0.1:"]);
    let login = LOGIN.replace("{}", &server.address);
    console.write("docker/config.json", login.replace("YW5uOmFiYw==", "YW5uOndyb25n"));
    console.run(&push).expect(1, &["does not let us have"]);
    console.write("docker/config.json", &login);
    console.run(&push).expect(0, &[]);
    std::fs::remove_file(console.path("docker/config.json")).unwrap();
    name_component(&console, &reference);
    console.run(&RUN).expect(1, &["plugin `calls` has no component: `127.0.0.1:", "does not let us have"]);
    console.set("DOCKER_AUTH_CONFIG", login);
    console.run(&RUN).expect(0, &["plugin      calls "]);
}

#[test]
fn what_is_no_component_is_not_pushed_and_a_foreign_registry_is_not_asked() {
    let (server, console) = (Server::open(), console());
    console.write("text.wasm", "hello");
    let reference = server.reference("acme/calls:1");
    console.run(&["plugin", "push", "text.wasm", &reference]).expect(1, &["is not a WebAssembly component"]);
    console
        .run(&["plugin", "push", "first.wasm", "calls:1"])
        .expect(1, &["is no reference to a package", "hint: write `oci://"]);
    console.write("host.toml", "[registries]\nallow = [\"registry.example.com\"]\n");
    name_component(&console, &reference);
    let run = [&RUN[..], &["--host-file", "host.toml"]].concat();
    console.run(&run).expect(1, &["packages may not come from `127.0.0.1:", "`allow` under [registries]"]);
    console.write("host.toml", "[registries]\nplain_http = [\"http://a\"]\n");
    console.run(&run).expect(1, &["host.toml:2: `registries.plain_http` cannot be `http://a`"]);
    console.write("query.lock", "<<<<<<<\n");
    console.run(&RUN).expect(1, &["cannot use the lock file"]);
}
