//! Panics of a reconcile: caught, with their message, location and backtrace, so that one cluster cannot stop others.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::pin::pin;
use std::sync::Once;
use std::task::Poll;

/// A panic that was caught.
#[derive(Debug)]
pub struct Panic {
    /// The panic's message.
    pub message: String,
    /// File, line and column.
    pub location: String,
    /// The stack at the panic.
    pub backtrace: String,
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.message, self.location)
    }
}

thread_local! {
    /// Whether this thread is polling a future that has its panics caught.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    /// The last panic that the hook recorded on this thread.
    static LAST: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// Runs a future until it completes or panics.
///
/// The future is dropped after a panic. State that it shares with others must tolerate that: locks here ignore
/// poisoning.
pub async fn caught<F: Future>(future: F) -> Result<F::Output, Panic> {
    record_panics();
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        let before = CATCHING.replace(true);
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        CATCHING.set(before);
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(LAST.take().unwrap_or_else(|| unrecorded(&*payload)))),
        }
    })
    .await
}

/// Installs a panic hook, once per process: only a hook can capture the stack of a panic. A panic that is not caught
/// here goes to the previous hook.
fn record_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if CATCHING.get() {
                LAST.set(Some(recorded(info)));
            } else {
                previous(info);
            }
        }));
    });
}

fn recorded(info: &PanicHookInfo<'_>) -> Panic {
    Panic {
        message: message(info.payload()),
        location: info.location().map(ToString::to_string).unwrap_or_default(),
        backtrace: backtrace(),
    }
}

/// The stack with addresses. A release binary has no symbols; resolving them with a build that has symbols requires
/// both the addresses and the load address of the program.
fn backtrace() -> String {
    let stack = format!("{:#}", Backtrace::force_capture());
    match loaded_at() {
        Some(address) => format!("loaded at 0x{address}\n{stack}"),
        None => stack,
    }
}

/// The load address of the program: the lowest address of the process.
fn loaded_at() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    Some(maps.split_once('-')?.0.to_owned())
}

/// The panic without location and backtrace: another hook replaced the one installed here.
fn unrecorded(payload: &(dyn Any + Send)) -> Panic {
    Panic {
        message: message(payload),
        location: "an unknown location".to_owned(),
        backtrace: String::new(),
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::unused_async)] // it panics when it is polled, not when it is called
    async fn fails_here(number: u32) -> u32 {
        assert!(number < 7, "{number} is too large");
        number
    }

    #[tokio::test]
    async fn a_panic_is_caught_with_its_message_location_and_backtrace() {
        assert_eq!(caught(fails_here(3)).await.unwrap(), 3);
        let late = async {
            tokio::task::yield_now().await;
            fails_here(8).await
        };
        let panic = caught(late).await.unwrap_err();
        assert_eq!(panic.message, "8 is too large");
        assert!(panic.location.contains("panics.rs:"), "{}", panic.location);
        assert!(panic.backtrace.contains("fails_here"), "{}", panic.backtrace);
    }

    #[tokio::test]
    async fn a_panic_without_a_text_is_caught_too() {
        let panic = caught(async { std::panic::panic_any(7_u8) }).await.unwrap_err();
        assert_eq!(panic.message, "panic without a message");
    }
}
