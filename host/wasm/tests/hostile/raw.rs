//! Guests that no compiler makes: a core module in the text format, wrapped as a component.
//!
//! [`Guest::default`] is honest: one scalar function `f(x BIGINT) -> y BIGINT` that gives `x` back. Each test replaces one
//! part of it.

use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Where the description lies in the guest's memory.
const DESCRIPTION: u32 = 1024;

/// The parts of a guest.
#[derive(Clone)]
pub(crate) struct Guest {
    /// The interface that it exports beside `describe`: `scalar` or `table`.
    pub(crate) interface: &'static str,
    /// Imports of its world, in WIT.
    pub(crate) world: String,
    /// Imports of its core module.
    pub(crate) imports: String,
    /// Pages of memory, the first and the most.
    pub(crate) memory: String,
    /// Further functions, globals and so on.
    pub(crate) more: String,
    /// The body of `cabi_realloc` with parameters `$old`, `$old_len`, `$align`, `$len`.
    pub(crate) realloc: String,
    /// What `describe` says.
    pub(crate) functions: Vec<Function>,
    /// The body of `describe`, instead of saying that.
    pub(crate) describe: Option<String>,
    /// The body of `call` with parameters `$function`, `$rows`, `$buffers`, `$len` and the local `$i`.
    pub(crate) call: String,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            interface: "scalar",
            world: String::new(),
            imports: String::new(),
            memory: "4".into(),
            more: String::new(),
            realloc: "(call $bump (local.get $len))".into(),
            functions: vec![Function::default()],
            describe: None,
            call: "(call $answer (local.get $rows) (local.get $buffers) (local.get $len))".into(),
        }
    }
}

/// A function as it is described.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: u8,
    pub(crate) arguments: Vec<Field>,
    pub(crate) results: Vec<Field>,
    pub(crate) volatility: u8,
    pub(crate) nulls: u8,
}

/// A field as it is described: name, format, number of children.
pub(crate) type Field = (Vec<u8>, &'static str, u32);

impl Default for Function {
    fn default() -> Self {
        let field = |name: &str| (name.into(), "l", 0);
        Self {
            name: "f".into(),
            kind: 0,
            arguments: vec![field("x")],
            results: vec![field("y")],
            volatility: 0,
            nulls: 0,
        }
    }
}

impl Guest {
    /// Honest but for the body of `call`.
    pub(crate) fn calling(body: &str) -> Self {
        Self { call: body.into(), ..Self::default() }
    }

    /// One that writes a number over `x` in the first row and gives that back.
    pub(crate) fn answering(number: &str) -> Self {
        let store = "(i64.store (i32.load (i32.add (local.get $buffers) (i32.const 8)))";
        let answer = "(call $answer (local.get $rows) (local.get $buffers) (local.get $len))";
        Self::calling(&format!("{store} {number}) {answer}"))
    }

    /// Its world imports these WASI interfaces too.
    pub(crate) fn with_wasi(mut self, world: &str, imports: &str) -> Self {
        self.world = world.into();
        self.imports = imports.into();
        self
    }

    /// The text of the core module.
    fn text(&self) -> String {
        let (bytes, list) = described(&self.functions);
        let data: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
        let end = (DESCRIPTION as usize + bytes.len()).next_multiple_of(4096);
        let describe = self.describe.clone().unwrap_or_else(|| format!("(i32.const {list})"));
        format!(
            r#"(module
              {imports}
              (memory (export "memory") {memory})
              (global $top (mut i32) (i32.const {end}))
              (data (i32.const {DESCRIPTION}) "{data}")
              {more}
              (func $bump (param $len i32) (result i32)
                (local $at i32)
                (local.set $at (i32.and (i32.add (global.get $top) (i32.const 15)) (i32.const -16)))
                (global.set $top (i32.add (local.get $at) (local.get $len)))
                (block $fits
                  (br_if $fits (i32.le_u (global.get $top) (i32.mul (memory.size) (i32.const 65536))))
                  (drop (memory.grow (i32.add (i32.shr_u (local.get $len) (i32.const 16)) (i32.const 1)))))
                (local.get $at))
              (func $answer (param $rows i32) (param $buffers i32) (param $len i32) (result i32)
                (i32.store (i32.const 16) (i32.const 0))
                (i32.store (i32.const 20) (local.get $rows))
                (i32.store (i32.const 24) (local.get $buffers))
                (i32.store (i32.const 28) (local.get $len))
                (i32.store (i32.const 32) (i32.const 0))
                (i32.store (i32.const 36) (i32.const 0))
                (i32.const 16))
              (func $realloc (export "cabi_realloc")
                (param $old i32) (param $old_len i32) (param $align i32) (param $len i32) (result i32)
                {realloc})
              (func (export "millstream:plugin/describe@0.2.0#describe") (result i32)
                (local $i i32)
                {describe})
              (func $call (export "millstream:plugin/{interface}@0.2.0#call")
                (param $function i32) (param $rows i32) (param $buffers i32) (param $len i32) (result i32)
                (local $i i32) (local $n i64)
                {call}))"#,
            interface = self.interface,
            imports = self.imports,
            memory = self.memory,
            more = self.more,
            realloc = self.realloc,
            call = self.call,
        )
    }

    /// The component.
    pub(crate) fn component(&self) -> Vec<u8> {
        let text = self.text();
        let mut module = wat::parse_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut resolve = Resolve::default();
        let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../wit");
        resolve.push_dir(folder).unwrap();
        let world = format!(
            "package test:guest@1.0.0;
             world guest {{
               import millstream:plugin/log@0.2.0;
               {}
               export millstream:plugin/describe@0.2.0;
               export millstream:plugin/{}@0.2.0;
             }}
             {WASI}",
            self.world, self.interface
        );
        let package = resolve.push_str("guest.wit", &world).unwrap_or_else(|e| panic!("{e:?}"));
        let world = resolve.select_world(&[package], Some("guest")).unwrap();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).unwrap();
        let mut encoder = ComponentEncoder::default();
        let encoded = encoder.validate(true).module(&module).and_then(|encoder| encoder.encode());
        encoded.unwrap_or_else(|e| panic!("{e:?}\n{text}"))
    }
}

/// The bytes of a description at [`DESCRIPTION`], and where the pair of pointer and length of the list is.
fn described(functions: &[Function]) -> (Vec<u8>, u32) {
    let mut bytes = vec![0; 8 + 32 * functions.len()];
    let put = |bytes: &mut Vec<u8>, blob: &[u8]| {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let at = DESCRIPTION + u32::try_from(bytes.len()).unwrap();
        bytes.extend_from_slice(blob);
        at
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    for (i, function) in functions.iter().enumerate() {
        let name = put(&mut bytes, &function.name);
        let mut lists = Vec::new();
        for fields in [&function.arguments, &function.results] {
            let mut list = Vec::new();
            for (name, format, children) in fields {
                let (at, format_at) = (put(&mut bytes, name), put(&mut bytes, format.as_bytes()));
                list.extend(words(&[at, name.len() as u32, format_at, format.len() as u32, 1, *children]));
            }
            lists.extend([put(&mut bytes, &list), fields.len() as u32]);
        }
        let mut record = words(&[name, function.name.len() as u32, function.kind.into()]);
        record.extend(words(&lists));
        record.extend([function.volatility, function.nulls, 0, 0]);
        bytes[8 + 32 * i..8 + 32 * (i + 1)].copy_from_slice(&record);
    }
    bytes[..8].copy_from_slice(&words(&[DESCRIPTION + 8, functions.len() as u32]));
    (bytes, DESCRIPTION)
}

/// What the tests need of WASI.
const WASI: &str = "
    package wasi:io@0.2.6 {
      interface error { resource error; }
      interface poll {
        resource pollable { ready: func() -> bool; block: func(); }
        poll: func(in: list<borrow<pollable>>) -> list<u32>;
      }
      interface streams {
        use error.{error};
        use poll.{pollable};
        variant stream-error { last-operation-failed(error), closed }
        resource input-stream {
          blocking-read: func(len: u64) -> result<list<u8>, stream-error>;
          subscribe: func() -> pollable;
        }
        resource output-stream {
          blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
          subscribe: func() -> pollable;
        }
      }
    }
    package wasi:cli@0.2.6 {
      interface environment {
        get-environment: func() -> list<tuple<string, string>>;
        get-arguments: func() -> list<string>;
        initial-cwd: func() -> option<string>;
      }
      interface exit { exit: func(status: result); }
      interface stdin { use wasi:io/streams@0.2.6.{input-stream}; get-stdin: func() -> input-stream; }
      interface stdout { use wasi:io/streams@0.2.6.{output-stream}; get-stdout: func() -> output-stream; }
      interface stderr { use wasi:io/streams@0.2.6.{output-stream}; get-stderr: func() -> output-stream; }
    }
    package wasi:clocks@0.2.6 {
      interface wall-clock { record datetime { seconds: u64, nanoseconds: u32 } now: func() -> datetime; }
      interface monotonic-clock {
        use wasi:io/poll@0.2.6.{pollable};
        now: func() -> u64;
        subscribe-duration: func(when: u64) -> pollable;
      }
    }
    package wasi:random@0.2.6 {
      interface random { get-random-bytes: func(len: u64) -> list<u8>; get-random-u64: func() -> u64; }
      interface insecure-seed { insecure-seed: func() -> tuple<u64, u64>; }
    }
    package wasi:filesystem@0.2.6 {
      interface types { resource descriptor; }
      interface preopens { use types.{descriptor}; get-directories: func() -> list<tuple<descriptor, string>>; }
    }
    package wasi:sockets@0.2.6 {
      interface network {
        resource network;
        enum error-code {
          unknown, access-denied, not-supported, invalid-argument, out-of-memory, timeout, concurrency-conflict,
          not-in-progress, would-block, invalid-state, new-socket-limit, address-not-bindable, address-in-use,
          remote-unreachable, connection-refused, connection-reset, connection-aborted, datagram-too-large,
          name-unresolvable, temporary-resolver-failure, permanent-resolver-failure,
        }
        enum ip-address-family { ipv4, ipv6 }
      }
      interface instance-network { use network.{network}; instance-network: func() -> network; }
      interface tcp { resource tcp-socket; }
      interface tcp-create-socket {
        use network.{error-code, ip-address-family};
        use tcp.{tcp-socket};
        create-tcp-socket: func(address-family: ip-address-family) -> result<tcp-socket, error-code>;
      }
      interface udp { resource udp-socket; }
      interface udp-create-socket {
        use network.{error-code, ip-address-family};
        use udp.{udp-socket};
        create-udp-socket: func(address-family: ip-address-family) -> result<udp-socket, error-code>;
      }
      interface ip-name-lookup {
        use network.{network, error-code};
        resource resolve-address-stream;
        resolve-addresses: func(network: borrow<network>, name: string) -> result<resolve-address-stream, error-code>;
      }
    }
    package wasi:http@0.2.6 {
      interface types { resource fields { constructor(); } }
    }
";
