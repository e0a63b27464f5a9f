//! What new code asks for beyond computing, at a check and at a swap.

use crate::packages::{console, name_component};
use crate::raw::Guest;

/// One that imports an interface and never calls it: its results are those of the others.
fn asking(interface: &str, function: &str, signature: &str) -> Vec<u8> {
    let import = format!("(import \"millstream:plugin/{interface}@0.2.0\" \"{function}\" (func $import {signature}))");
    Guest::default().with_wasi(&format!("import millstream:plugin/{interface}@0.2.0;"), &import).component()
}

#[test]
fn a_swap_shows_what_new_code_asks_for_and_what_it_gets() {
    let console = console();
    console.write("clock.wasm", asking("clock", "batch-time-ms", "(result i64)"));
    console.write("http.wasm", asking("http", "send", "(param i32 i32 i32)"));
    name_component(&console, "first.wasm");
    let host = |approval: &str| {
        let grants = "[grants.calls]\nclock = true\nhttp = [\"api.example.com\", \"*.example.org:8443\"]\n";
        console.write("host.toml", format!("[plugins]\nasked_anew = \"{approval}\"\n{grants}"));
    };
    host("needs approval");
    let run = ["run", "query.toml", "--trigger", "100 ms", "--host-file", "host.toml"];
    let mut running = console.start(&run);
    running.wait_for_batches(2);
    running.wait_until("the control socket", || !console.names("run").is_empty());
    let check = |component: &str, host: &[&str]| {
        console.run(&[&["plugin", "check", component, "--against", "query.toml"][..], host].concat())
    };
    let with_host = ["--host-file", "host.toml"];
    check("second.wasm", &with_host).expect(0, &[]).prints(&["verdict    ok\n", "asks for   nothing\n"]);
    let granted = "asks for   `http` anew: granted for api.example.com, *.example.org:8443\n";
    check("http.wasm", &with_host).expect(1, &[]).prints(&["verdict    needs approval\n", granted]);
    let refused = check("http.wasm", &[]).expect(1, &[]);
    refused.prints(&["verdict    reject\n", "asks for   `http` anew: not granted\n"]);
    let json = check("http.wasm", &[&with_host[..], &["--json"]].concat()).expect(1, &[]);
    json.prints(&["\"permission\": \"http\"", "\"was_asked\": false", "\"is_asked\": true"]);
    // The operator of a machine may say that a grant is enough, or that nothing may come anew.
    host("ok");
    check("http.wasm", &with_host).expect(0, &[]).prints(&["verdict    ok\n", granted]);
    host("reject");
    check("http.wasm", &with_host).expect(1, &[]).prints(&["verdict    reject\n", granted]);
    host("whatever");
    check("http.wasm", &with_host).expect(1, &["`plugins.asked_anew` cannot be `whatever`"]);

    // The query that runs goes by what the host file said when it started.
    let swap = ["swap", "query.toml", "calls=http.wasm"];
    console.run(&swap).expect(1, &["--approve"]).prints(&["verdict    needs approval\n", granted]);
    console.run(&[&swap[..], &["--approve"]].concat()).expect(0, &[]).prints(&[granted, "taken      calls "]);
    let swap = ["swap", "query.toml", "calls=clock.wasm", "--approve"];
    let swapped = console.run(&swap).expect(0, &[]);
    swapped.prints(&["asks for   `clock` anew: granted\n", "asks for   `http` no more\n", "taken      calls "]);
    console.run(&["stop", "query.toml"]).expect(0, &[]);
    running.end().expect(0, &[]);
}
