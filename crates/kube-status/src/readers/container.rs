//! One container of a pod: what keeps it from running, in the words a person needs.

use super::fields::{Fields, ReadError};
use super::reading::{Reading, or};

/// Waiting reasons of a container that nothing is wrong with.
const STARTING: [&str; 3] = ["ContainerCreating", "PodInitializing", ""];
/// Waiting reasons that no retry will mend.
const HOPELESS: [&str; 3] = ["InvalidImageName", "ErrImageNeverPull", "CrashLoopBackOff"];

/// A container's role, which decides what counts as done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Must exit with 0 before the next one starts.
    Init,
    /// An init container with `restartPolicy: Always`: must have started, and stays.
    Sidecar,
    /// Must run and be ready.
    Main,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Init => "init container",
            Self::Sidecar => "sidecar",
            Self::Main => "container",
        }
    }
}

/// What stands between this container and its goal; `None` when nothing does.
pub(super) fn obstacle(status: &Fields<'_>, role: Role) -> Result<Option<Reading>, ReadError> {
    let name = format!("{} {}", role.word(), status.required_text("name")?);
    let state = status.map("state")?;
    let (waiting, running, terminated) = (state.map("waiting")?, state.map("running")?, state.map("terminated")?);
    if waiting.is_present() {
        return waits(status, &waiting, &name).map(Some);
    }
    if terminated.is_present() {
        if terminated.count("exitCode")? == 0 && role != Role::Sidecar {
            return Ok((role == Role::Main)
                .then(|| Reading::progressing("ContainerCompleted", format!("{name} has ended with exit code 0"))));
        }
        let reason = or(terminated.text_or_empty("reason")?, "Error");
        let message = format!("{name} ended: {}", last_exit(&terminated)?);
        return Ok(Some(
            Reading::failed(reason, message).since(terminated.time("finishedAt")?),
        ));
    }
    if !running.is_present() {
        return Ok(Some(Reading::progressing(
            "ContainerCreating",
            format!("{name} has not started yet"),
        )));
    }
    let since = running.time("startedAt")?;
    let not_yet = match role {
        Role::Init => ("Initializing", format!("{name} is running")),
        Role::Sidecar if !status.flag("started")? => ("Initializing", format!("{name} is starting")),
        Role::Main | Role::Sidecar if !status.flag("ready")? => {
            ("ContainerNotReady", format!("{name} is running but not ready"))
        }
        Role::Main | Role::Sidecar => return Ok(None),
    };
    let (reason, mut message) = not_yet;
    if let Some(history) = history(status)? {
        message = format!("{message}; {history}");
    }
    Ok(Some(Reading::progressing(reason, message).since(since)))
}

fn waits(status: &Fields<'_>, waiting: &Fields<'_>, name: &str) -> Result<Reading, ReadError> {
    let (reason, detail) = (waiting.text_or_empty("reason")?, waiting.text_or_empty("message")?);
    if STARTING.contains(&reason) {
        let detail = or(detail, "is being created");
        return Ok(Reading::progressing(
            or(reason, "ContainerCreating"),
            format!("{name}: {detail}"),
        ));
    }
    let mut message = format!("{name}: {}", or(detail, reason));
    if reason == "CrashLoopBackOff"
        && let Some(history) = history(status)?
    {
        message = format!("{name} keeps crashing: {history}");
    } else if reason.contains("Image") {
        let image = status.text_or_empty("image")?;
        if !detail.contains(image) {
            message = format!("{message} (image {image})");
        }
    }
    Ok(if HOPELESS.contains(&reason) {
        Reading::failed(reason, message)
    } else {
        Reading::stuck(reason, message)
    })
}

/// How often it has restarted and how it ended last; `None` for a container that never did.
fn history(status: &Fields<'_>) -> Result<Option<String>, ReadError> {
    let restarts = status.count("restartCount")?;
    let last = status.map("lastState")?.map("terminated")?;
    if !last.is_present() {
        return Ok(None);
    }
    let times = if restarts == 1 {
        "1 restart".to_owned()
    } else {
        format!("{restarts} restarts")
    };
    Ok(Some(format!("last exit {}; {times}", last_exit(&last)?)))
}

/// `OOMKilled (exit code 137, SIGKILL)`, with the container's own last words when it left any.
fn last_exit(terminated: &Fields<'_>) -> Result<String, ReadError> {
    let code = terminated.count("exitCode")?;
    // The runtime fills `signal` rarely; a shell and most runtimes add 128 to it instead.
    let signal = terminated
        .small("signal")?
        .filter(|&signal| signal > 0)
        .or((code > 128).then_some(code - 128));
    let signal = match signal.map(signal_name) {
        Some(Some(name)) => format!(", {name}"),
        Some(None) | None => String::new(),
    };
    let reason = or(terminated.text_or_empty("reason")?, "Error");
    let message = terminated.text_or_empty("message")?.trim();
    let message = if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    };
    Ok(format!("{reason} (exit code {code}{signal}){message}"))
}

/// The signals a person meets in practice.
fn signal_name(signal: i64) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}
