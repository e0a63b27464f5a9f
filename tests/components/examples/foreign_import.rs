//! A component that wants more than a plugin may have.
#![cfg(target_arch = "wasm32")]
#![allow(unsafe_code, missing_docs, reason = "generated")]

wit_bindgen::generate!({
    inline: "
        package foreign:place@1.0.0;
        interface files { read: func(path: string) -> list<u8>; }
        world greedy { import files; export run: func() -> u32; }
    ",
    world: "greedy",
});

struct Greedy;

impl Guest for Greedy {
    fn run() -> u32 {
        foreign::place::files::read("/etc/passwd").len() as u32
    }
}

export!(Greedy);
