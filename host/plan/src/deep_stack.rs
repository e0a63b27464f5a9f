//! A stack on which deep queries can be planned: analysis and optimisation call themselves per level of the plan.

use crate::PlanError;

/// How large it is. Pages that are not used cost nothing.
const STACK_BYTES: usize = 128 << 20;

/// Runs `work` on a thread with a deep stack and waits for it.
///
/// # Errors
/// When there is no thread to be had, and those of `work`.
pub(crate) fn on_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, PlanError> + Send) -> Result<T, PlanError> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("plan".into()).stack_size(STACK_BYTES);
        match builder.spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => Err(PlanError::Sql { message: format!("there is no thread to plan it on: {error}") }),
        }
    })
}
