//! The cases.

use crate::{Case, Expected, Query};
use Expected::{Good, Held, Migrates, Refused};
use Query::{Aged, Parts, Sums, Tally, Totals};
use anyhow::{Context, Result};
use streaming_stories::component;

/// What stands before the name of the edition in a component's data.
const MARK: &[u8] = b"upgrade-edition:";

/// A component with another edition's name in its data.
fn edition(file: &str, name: &str) -> Result<Vec<u8>> {
    let mut bytes = component(file)?;
    let at = bytes.windows(MARK.len()).position(|window| window == MARK).context("the component has no mark")?;
    let place = &mut bytes[at + MARK.len()..at + MARK.len() + 24];
    place.fill(b'.');
    place[..name.len()].copy_from_slice(name.as_bytes());
    Ok(bytes)
}

/// The component as it would be if it had been built for version 0.1.0 of the interface, which has all that it uses.
pub(crate) fn aged(component: &[u8]) -> Vec<u8> {
    let (now, then) = (b"@0.2.0", b"@0.1.0");
    let mut bytes = component.to_vec();
    for at in 0..bytes.len().saturating_sub(now.len()) {
        if bytes[at..].starts_with(now) {
            bytes[at..at + then.len()].copy_from_slice(then);
        }
    }
    bytes
}

fn cases(file: &str, all: &[(Query, &str, Expected)]) -> Result<Vec<Case>> {
    let case = |(query, name, expected): &(Query, &str, Expected)| {
        let component = edition(file, name)?;
        Ok(Case { name: (*name).to_owned(), query: *query, component, expected: expected.clone() })
    };
    all.iter().map(case).collect()
}

/// Upgrades that must be refused, or held until a person wants them.
///
/// # Errors
/// When a component does not compile.
pub fn bad() -> Result<Vec<Case>> {
    let mut bad = cases("upgrade_shape", &SHAPES)?;
    bad.extend(cases("upgrade", &BEHAVIOURS)?);
    bad.extend(cases(
        "tally_one",
        &[(Tally, "lies", Held(&["rows of the result come out otherwise", "keys of state"]))],
    )?);
    bad.extend(cases("tally_two", &MIGRATIONS)?);
    let whole = |name: &str, query, component, expected| Case { name: name.into(), query, component, expected };
    let mut torn = component("upgrade")?;
    torn.truncate(torn.len() / 2);
    bad.extend([
        whole(
            "state-without-a-way",
            Tally,
            component("tally_lost")?,
            Refused(&["`tally` of `query-aggregate`", "stored as `total` (", "and no migration leads there"]),
        ),
        whole(
            "state-narrower",
            Tally,
            component("tally_narrow")?,
            Refused(&["`tally` of `query-aggregate`", "Int64", "Int32", "no migration leads there"]),
        ),
        whole(
            "another-plugin",
            Totals,
            component("words_loud")?,
            Refused(&["function `label` is gone", "function `price` is gone"]),
        ),
        whole("without-the-table-function", Parts, component("upgrade_less")?, Refused(&["function `parts` is gone"])),
        whole("new-import", Totals, component("foreign_import")?, Refused(&["it imports"])),
        whole("torn-file", Totals, torn, Refused(&[NOT_ONE])),
        whole("core-module", Totals, b"\0asm\x01\0\0\0".to_vec(), Refused(&[NOT_ONE, "core module"])),
        whole("text-file", Totals, b"no component".to_vec(), Refused(&[NOT_ONE])),
        whole("empty-file", Totals, Vec::new(), Refused(&[NOT_ONE])),
        whole("spins-when-asked", Totals, component("spin_in_describe")?, Refused(&["did not return from `describe`"])),
    ]);
    Ok(bad)
}

/// Upgrades that must go through.
///
/// # Errors
/// When a component does not compile.
pub fn good() -> Result<Vec<Case>> {
    let mut good = cases(
        "upgrade",
        &[
            (Totals, "base", Good),
            (Totals, "same-by-other-means", Good),
            (Totals, "logs", Good),
            (Totals, "new-case", Good),
            (Totals, "memoises", Good),
            (Totals, "faster", Good),
            (Parts, "other-order", Good),
            // What these do is in functions that the query does not call.
            (Parts, "doubles", Good),
            (Parts, "traps-on-an-old-value", Good),
            (Parts, "remembers", Good),
            (Totals, "drops-rows", Good),
        ],
    )?;
    good.extend(cases("tally_one", &[(Tally, "base", Good)])?);
    good.extend(cases(
        "tally_two",
        &[(Tally, "base", Migrates(&["14 keys of state are migrated", "`total` to `total and count`"]))],
    )?);
    good.push(Case {
        name: "two-steps".into(),
        query: Tally,
        component: component("tally_three")?,
        expected: Migrates(&["by way of `total and count`, `total, count, greatest`"]),
    });
    let migrating = |name: &str, component, expected| Case { name: name.into(), query: Sums, component, expected };
    good.extend([
        migrating("variable-more", component("totals_counted")?, Migrates(&["`calls` of `query-processor` is new"])),
        migrating(
            "variable-wider",
            component("totals_wide")?,
            Migrates(&["7 keys of state are migrated", "`totals.total` of `query-processor`: `1` to `2`"]),
        ),
    ]);
    let whole = |name: &str, query, component| Case { name: name.into(), query, component, expected: Good };
    good.extend([
        whole("the-same-processor", Sums, component("processors")?),
        whole("renamed-inside", Tally, component("tally_renamed")?),
        whole("more-beside-an-aggregate", Tally, component("tally_more")?),
        whole("newer-interface", Aged, component("upgrade")?),
        whole("older-interface", Totals, aged(&component("upgrade")?)),
        whole("more-functions-in-another-order", Totals, component("upgrade_more")?),
        whole("more-functions-in-another-order", Parts, component("upgrade_more")?),
        whole("without-functions-that-nobody-calls", Totals, component("upgrade_less")?),
    ]);
    Ok(good)
}

/// What is said of files that are no components.
const NOT_ONE: &str = "is not a WebAssembly component";

const SHAPES: [(Query, &str, Expected); 23] = [
    (Totals, "price-gone", Refused(&["function `price` is gone"])),
    (Totals, "label-gone", Refused(&["function `label` is gone"])),
    (Parts, "parts-gone", Refused(&["function `parts` is gone"])),
    (Totals, "label-renamed", Refused(&["function `label` is gone"])),
    (Totals, "argument-type", Refused(&["argument `cents` of `price` was Int64 and is Utf8"])),
    (Totals, "argument-narrower", Refused(&["argument `cents` of `price` was Int64 and is Int32"])),
    (Totals, "argument-name", Refused(&["argument 1 of `price` was `cents` and is `pence`"])),
    (Totals, "argument-more", Refused(&["function `price` had 1 arguments and has 2"])),
    (Totals, "argument-less", Refused(&["function `price` had 1 arguments and has 0"])),
    (Totals, "result-type", Refused(&["of `price` was Int64 and is Float64"])),
    (Totals, "result-narrower", Refused(&["of `price` was Int64 and is Int32"])),
    (Totals, "result-text", Refused(&["of `price` was Int64 and is Utf8"])),
    (Parts, "column-null", Refused(&["result `word` of `parts` was never null and may be null"])),
    (Totals, "kind", Refused(&["function `price` was `scalar price"])),
    (Totals, "volatile", Refused(&["function `price` was immutable and is volatile"])),
    (Parts, "columns-reordered", Refused(&["result 1 of `parts` was `word` and is `place`"])),
    (Parts, "column-gone", Refused(&["function `parts` had 2 results and has 1"])),
    (Parts, "column-more", Refused(&["function `parts` had 2 results and has 3"])),
    (Parts, "column-renamed", Refused(&["result 1 of `parts` was `word` and is `token`"])),
    (Parts, "column-type", Refused(&["result `place` of `parts` was Int64 and is Int32"])),
    (Totals, "bad-name", Refused(&["describes itself wrongly", "`Label`"])),
    (Totals, "twice", Refused(&["describes itself wrongly", "`price` is there twice"])),
    (Totals, "nothing", Refused(&["describes itself wrongly", "no functions"])),
];

const BEHAVIOURS: [(Query, &str, Expected); 13] = [
    (
        Totals,
        "traps-on-an-old-value",
        Refused(&["trapped in `price`", "batch 0, price", "\"cents\":7", "no price for 7"]),
    ),
    (Totals, "refuses-an-old-value", Refused(&["batch 0, price", "\"cents\":7", "7 cents are too few"])),
    (Totals, "never-returns", Refused(&["did not return from `price`", "\"cents\":7"])),
    (Totals, "hoards", Refused(&["of memory in `price`", "\"cents\":7"])),
    (Totals, "remembers", Held(&["when it ran a second time", "remembers something between calls"])),
    (Totals, "slow", Held(&["times as long"])),
    (Totals, "doubles", Held(&["rows of the result come out otherwise", "in 4 batches from 0 to 3", "keys of state"])),
    (Totals, "rounds-one-value", Held(&["rows of the result come out otherwise"])),
    (Totals, "wraps-around", Held(&["rows of the result come out otherwise"])),
    (Totals, "other-keys", Held(&["rows of the result come out otherwise", "keys of state"])),
    (Totals, "merges-keys", Held(&["rows of the result come out otherwise", "keys of state"])),
    (Parts, "drops-rows", Held(&["rows of the result come out otherwise", "in 4 batches from 0 to 3"])),
    (Parts, "doubles-rows", Held(&["rows of the result come out otherwise"])),
];

const MIGRATIONS: [(Query, &str, Expected); 3] = [
    (Tally, "fails-on-an-old-key", Refused(&["cannot be migrated at key", "is a multiple of seven", "{\"k\":"])),
    (Tally, "traps-on-an-old-key", Refused(&["cannot be migrated at key", "no way for", "{\"k\":"])),
    (Tally, "migrates-wrongly", Held(&["rows of the result come out otherwise"])),
];
