//! A few seeds of `crash`; the program runs more.

#![allow(clippy::panic, reason = "tests")]

#[test]
fn random_runs_with_crashes_give_what_the_model_gives() {
    let (mut failures, mut crashes) = (Vec::new(), 0);
    for seed in 0..25 {
        match recovery_tests::seed::run(seed) {
            Ok(outcome) => crashes += outcome.crashes,
            Err(error) => failures.push(format!("seed {seed}: {error:#}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(crashes > 25, "{crashes} crashes are too few");
}
