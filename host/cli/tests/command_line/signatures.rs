//! Where the host file demands signatures, nothing is loaded that a trusted key has not signed.

use crate::console::Console;
use crate::packages::{console, edition, name_component};
use crate::server::Server;
use millstream_runtime::package::{ImageSignature, PackageReference, Registry, SigningKey};
use std::process::Command;

/// Makes `NAME.pem` and `NAME.pub`.
fn key(console: &Console, name: &str) {
    let openssl = |arguments: &[&str]| {
        let ended = Command::new("openssl").args(arguments).current_dir(console.path("")).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    };
    let (private, public) = (format!("{name}.pem"), format!("{name}.pub"));
    openssl(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", &private]);
    openssl(&["pkey", "-in", &private, "-pubout", "-out", &public]);
}

/// A console whose host file trusts `good` for all, and `acme` for the tenant of that name.
fn guarded() -> Console {
    let console = console();
    ["good", "acme", "stranger"].into_iter().for_each(|name| key(&console, name));
    console.write("host.toml", "[signatures]\nkeys = [\"good.pub\"]\n[tenants.acme]\nkeys = [\"acme.pub\"]\n");
    console
}

const RUN: [&str; 6] = ["run", "query.toml", "--trigger", "once", "--host-file", "host.toml"];
const CHECK: [&str; 4] = ["check", "query.toml", "--host-file", "host.toml"];

fn sign(console: &Console, component: &str, key: &str) {
    console.run(&["plugin", "sign", component, "--key", &format!("{key}.pem")]).expect(0, &[]).prints(&["signed     "]);
}

#[test]
fn a_file_starts_with_a_good_signature_beside_it_only() {
    let console = guarded();
    name_component(&console, "first.wasm");
    let unsigned = ["plugin `calls` has no component: component `", "has no signature, and the host file demands one"];
    console.run(&RUN).expect(1, &unsigned);
    console.run(&CHECK).expect(1, &unsigned);
    assert!(!console.path("checkpoint").exists() && !console.path("cache/millstream/compiled").exists());
    sign(&console, "first.wasm", "stranger");
    console.run(&RUN).expect(1, &["has no valid signature: it is by none of the trusted keys"]);
    console.run(&["plugin", "verify", "first.wasm", "--key", "stranger.pub"]).expect(0, &[]);
    console.run(&["plugin", "verify", "first.wasm", "--key", "good.pub"]).expect(1, &["no valid signature"]);
    sign(&console, "first.wasm", "good");
    console.run(&CHECK).expect(0, &[]);
    console.run(&RUN).expect(0, &[]);
    // The tenant's plugins are vouched for by the tenant's key, and by no other.
    let query = console.read("query.toml");
    console.write("query.toml", format!("tenant = \"acme\"\n{query}"));
    console.run(&RUN).expect(1, &["no valid signature", "acme.pub"]);
    sign(&console, "first.wasm", "acme");
    console.run(&RUN).expect(0, &[]);
    console.write("query.toml", query);
    sign(&console, "first.wasm", "good");
    console.write("first.wasm", edition(3));
    console.run(&RUN).expect(1, &["no valid signature", "or over other bytes"]);
    console.write("host.toml", "[signatures]\nkeys = [\"good.pem\"]\n");
    console.run(&RUN).expect(1, &["host.toml:2: `signatures.keys` cannot be `good.pem`", "it is a private key"]);
    console.write("host.toml", "[signatures]\nkeys = []\n");
    console.run(&RUN).expect(1, &["without a key nothing could run"]);
}

#[test]
fn a_package_starts_with_a_good_signature_of_its_own_digest_and_repository_only() {
    let (server, console) = (Server::open(), guarded());
    let text = server.reference("acme/calls:1");
    console.run(&["plugin", "push", "first.wasm", &text]).expect(0, &[]);
    name_component(&console, &text);
    console.run(&RUN).expect(1, &["package `oci://", "has no signature, and the host file demands one"]);
    assert!(!console.path("query.lock").exists(), "what is not let in is not pinned");
    sign(&console, &text, "stranger");
    console.run(&RUN).expect(1, &["has no valid signature: it is by none of the trusted keys"]);
    sign(&console, &text, "good");
    console.run(&RUN).expect(0, &[]);

    // A good signature of another digest, and one of another repository, in the place of this one's.
    let registry = Registry::default();
    let good = SigningKey::read(&console.path("good.pem")).unwrap();
    let reference: PackageReference = text.parse().unwrap();
    let first = registry.resolve(&reference).unwrap().digest;
    console.run(&["plugin", "push", "second.wasm", &text]).expect(0, &[]);
    let second = registry.resolve(&reference).unwrap().digest;
    let replayed = ImageSignature::make(&good, &reference.place(), first).unwrap();
    registry.push_signature(&reference, second, &replayed).unwrap();
    console
        .run(&["plugin", "update", "query.toml", "--host-file", "host.toml"])
        .expect(1, &["it is over another manifest"]);
    let other = ImageSignature::make(&good, "registry.example.com/acme/calls", second).unwrap();
    registry.push_signature(&reference, second, &other).unwrap();
    let refused = console.run(&["plugin", "pull", &text, "--host-file", "host.toml"]);
    refused.expect(1, &["it is over another manifest", "it is for `registry.example.com/acme/calls`"]);
    assert!(!console.path("calls.wasm").exists());
    // The pinned one goes on, also without the registry and without what was pulled.
    console.run(&RUN).expect(0, &[]);
    drop(server);
    console.run(&RUN).expect(0, &[]);
}

#[test]
fn a_swap_a_check_and_a_restart_let_in_signed_code_only() {
    let console = guarded();
    sign(&console, "first.wasm", "good");
    name_component(&console, "first.wasm");
    let run = ["run", "query.toml", "--trigger", "100 ms", "--host-file", "host.toml"];
    let mut running = console.start(&run);
    running.wait_for_batches(2);
    running.wait_until("the control socket", || !console.names("run").is_empty());
    let check = ["plugin", "check", "second.wasm", "--against", "query.toml", "--host-file", "host.toml"];
    let swap = ["swap", "query.toml", "calls=second.wasm"];
    for command in [&check[..], &swap[..]] {
        let refused = console.run(command).expect(1, &["second.wasm` has no signature, and the host file demands one"]);
        assert_eq!(refused.stdout, "", "there is no verdict, for it was not loaded");
    }
    sign(&console, "second.wasm", "stranger");
    console.run(&swap).expect(1, &["no valid signature"]);
    sign(&console, "second.wasm", "good");
    console.run(&check).expect(0, &[]).prints(&["verdict    ok"]);
    console.run(&swap).expect(0, &[]).prints(&["taken      calls "]);
    console.run(&["stop", "query.toml"]).expect(0, &[]);
    running.end().expect(0, &[]);

    // The checkpoint's code goes on: it was vouched for when it came. Where nobody knows that any more, it is not loaded.
    console.run(&RUN).expect(0, &[]);
    console.run(&["replay", "query.toml", "--batch", "0", "--host-file", "host.toml"]).expect(0, &[]);
    console.run(&["plugin", "cache", "--clear", "--host-file", "host.toml"]).expect(0, &[]);
    let refused = ["plugin `calls` is not loaded: component ", "has no signature that is known here", "plugin verify"];
    console.run(&RUN).expect(1, &refused);
    console.run(&["plugin", "verify", "second.wasm", "--host-file", "host.toml"]).expect(0, &[]);
    console.run(&RUN).expect(0, &[]);
}
