//! Starts processes: the first one of a container in new namespaces, and further ones in the same namespaces.
//!
//! The work is done by util-linux, which every Debian has: `unshare`, `mount`, `pivot_root`, `setpriv`, `nsenter`.
//! All of them end when this process ends, even by SIGKILL: the outermost one asks the kernel to be killed with its
//! parent, and a container's processes live in a PID namespace that goes with its first one.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use super::process::Process;

/// Why no process came up.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A tool of util-linux is missing.
    #[error("`{0}` is not installed; install util-linux and hostname")]
    Tool(&'static str),
    /// The kernel gives this user no namespaces.
    #[error(
        "this host forbids the namespaces that pods need ({message}); run as root, or allow user namespaces: \
         sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0, \
         and in a container --privileged"
    )]
    Forbidden {
        /// What `unshare` said.
        message: String,
    },
    /// Program not found in the container.
    #[error("exec: \"{0}\": executable file not found in $PATH")]
    Missing(String),
    /// Program found, but it cannot be executed.
    #[error("exec: \"{0}\": permission denied")]
    Denied(String),
    /// A mount or another step of the preparation failed.
    #[error("{0}")]
    Setup(String),
    /// An error of the operating system.
    #[error("starting a process: {0}")]
    Io(#[from] io::Error),
}

/// What a process inside a container runs as.
#[derive(Clone, Debug, Default)]
pub(super) struct Identity {
    pub user: Option<i64>,
    pub group: Option<i64>,
    pub groups: Vec<i64>,
    pub no_new_privileges: bool,
    pub privileged: bool,
    pub dropped: Vec<String>,
    pub added: Vec<String>,
}

/// What is run, as the container sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct Invocation {
    pub command: Vec<String>,
    pub env: Vec<(String, String)>,
    pub working_dir: PathBuf,
    pub identity: Identity,
}

/// A prepared root.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub root: PathBuf,
    pub fstab: PathBuf,
    pub hostname: String,
    pub read_only: bool,
    /// Mount flags that a read-only remount must repeat.
    pub mount_flags: String,
}

/// The capabilities a container engine leaves to root.
const CAPABILITIES: [&str; 14] = [
    "chown",
    "dac_override",
    "fsetid",
    "fowner",
    "mknod",
    "net_raw",
    "setgid",
    "setuid",
    "setfcap",
    "setpcap",
    "net_bind_service",
    "sys_chroot",
    "kill",
    "audit_write",
];

pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const SCRIPT: &str = include_str!("launch.sh");

/// Runs the first process as a child in the new PID namespace, and ends as it ended: 128 and the signal's number when
/// it was killed. (`unshare --fork` of util-linux 2.38 loses the signal.) Messages of the shell are discarded.
const OUTER: &str =
    r#"exec 8>&2 2>/dev/null; "$SETPRIV" --pdeathsig KILL /bin/sh -c "$SCRIPT" sh "$@" 2>&8 8>&-; exit $?"#;

/// Where the tools are.
#[derive(Clone, Debug)]
struct Tools {
    unshare: PathBuf,
    setpriv: PathBuf,
    nsenter: PathBuf,
    mount: PathBuf,
    umount: PathBuf,
    pivot_root: PathBuf,
    hostname: PathBuf,
}

impl Tools {
    fn find() -> Result<Self, LaunchError> {
        let find = |name: &'static str| {
            let folders = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];
            let found = folders
                .iter()
                .map(|folder| Path::new(folder).join(name))
                .find(|path| path.exists());
            found.ok_or(LaunchError::Tool(name))
        };
        Ok(Self {
            unshare: find("unshare")?,
            setpriv: find("setpriv")?,
            nsenter: find("nsenter")?,
            mount: find("mount")?,
            umount: find("umount")?,
            pivot_root: find("pivot_root")?,
            hostname: find("hostname")?,
        })
    }
}

struct Request {
    command: Command,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// Starts processes, all from one thread.
///
/// The kernel's "kill me with my parent" means the parent *thread*, and the threads of a runtime come and go. When the
/// launcher is dropped, its thread ends and every process it started is killed.
#[derive(Debug)]
pub(super) struct Launcher {
    tools: Tools,
    user_namespace: bool,
    requests: std::sync::mpsc::Sender<Request>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.command.fmt(f)
    }
}

impl Launcher {
    /// A launcher, after a test run has shown that the host allows the namespaces.
    pub async fn start() -> Result<Self, LaunchError> {
        let (requests, inbox) = std::sync::mpsc::channel::<Request>();
        let runtime = tokio::runtime::Handle::current();
        std::thread::Builder::new().name("pod launcher".into()).spawn(move || {
            while let Ok(mut request) = inbox.recv() {
                let _inside = runtime.enter();
                let _ = request.reply.send(request.command.spawn());
            }
        })?;
        let launcher = Self {
            tools: Tools::find()?,
            user_namespace: !rustix::process::geteuid().is_root() || !may_mount(),
            requests,
        };
        launcher.dry_run().await?;
        Ok(launcher)
    }

    /// Whether pods live in a user namespace: this process may not mount by itself.
    pub fn user_namespace(&self) -> bool {
        self.user_namespace
    }

    async fn dry_run(&self) -> Result<(), LaunchError> {
        let mut command = self.unshared();
        command.args([
            "/bin/sh",
            "-c",
            "\"$0\" -t tmpfs none /mnt || \"$0\" -t tmpfs none /tmp",
        ]);
        command
            .arg(&self.tools.mount)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let output = self.spawn(command).await?.wait_with_output().await?;
        if output.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(LaunchError::Forbidden { message })
    }

    /// `unshare` with the namespaces of a container, not yet forked: the next child is the first process inside.
    fn unshared(&self) -> Command {
        let mut command = self.outermost();
        command.arg(&self.tools.unshare).args(["--mount", "--pid", "--uts"]);
        if self.user_namespace {
            command.args(["--user", "--map-root-user"]);
        }
        command.arg("--");
        command
    }

    /// A separate process group, so that a Ctrl-C meant for the sandbox does not reach the pods.
    fn outermost(&self) -> Command {
        let mut command = Command::new(&self.tools.setpriv);
        command.args(["--pdeathsig", "KILL"]);
        command
            .env_clear()
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::null());
        command
    }

    async fn spawn(&self, command: Command) -> Result<Child, LaunchError> {
        let (reply, answer) = oneshot::channel();
        let gone = || io::Error::other("the launcher has ended");
        self.requests.send(Request { command, reply }).map_err(|_| gone())?;
        Ok(answer.await.map_err(|_| gone())??)
    }

    /// Starts a container's first process. Its output is piped.
    pub async fn container(&self, place: &Place, run: &Invocation) -> Result<Process, LaunchError> {
        let program = run.command.first().cloned().unwrap_or_default();
        let (mut ear, mouth) = UnixStream::pair()?;
        let mouth = mouth.into_std()?;
        mouth.set_nonblocking(false)?;
        let mut command = self.unshared();
        command.args(["/bin/sh", "-c", OUTER, "sh"]);
        command.args(self.identity(&run.identity)).args(with_env(run));
        let search = run
            .env
            .iter()
            .find(|(name, _)| name == "PATH")
            .map_or(PATH, |(_, value)| value);
        command
            .env("PATH", PATH)
            .env("SCRIPT", SCRIPT)
            .env("ROOT", &place.root)
            .env("FSTAB", &place.fstab)
            .env("NAME", &place.hostname)
            .env("WORKDIR", &run.working_dir)
            .env("READONLY", if place.read_only { "yes" } else { "" })
            .env("KEEP", &place.mount_flags)
            .env("SEARCH", search)
            .env("PROGRAM", &program)
            .env("MOUNT", &self.tools.mount)
            .env("UMOUNT", &self.tools.umount)
            .env("PIVOT", &self.tools.pivot_root)
            .env("SETPRIV", &self.tools.setpriv)
            .env("HOSTNAME_TOOL", &self.tools.hostname)
            .stdin(Stdio::from(OwnedFd::from(mouth)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = self.spawn(command).await?;
        let message = read_error(&mut ear).await?;
        match message.split_once(' ') {
            Some(("started", pid)) => {
                let process = Process::new(child, pid.trim())?;
                ear.write_all(b"held\n").await?;
                Ok(process)
            }
            _ => Err(match message.trim() {
                "missing" => LaunchError::Missing(program),
                "denied" => LaunchError::Denied(program),
                "" => LaunchError::Setup("the container's first process ended before it started its program".into()),
                other => LaunchError::Setup(other.to_owned()),
            }),
        }
    }

    /// A command that runs `run` in the container of which `pid` is the first process.
    fn beside(&self, pid: u32, run: &Invocation) -> Command {
        let mut command = self.outermost();
        command
            .arg(&self.tools.nsenter)
            .args(["--target", &pid.to_string(), "--mount", "--pid", "--uts"]);
        if self.user_namespace {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg("--").arg(&self.tools.setpriv).args(["--pdeathsig", "KILL"]);
        command.args(self.identity(&run.identity)).args(with_env(run));
        command.env("PATH", PATH);
        command
    }

    /// Starts a process beside a container's own, with the given ends of its standard streams.
    pub async fn exec(&self, pid: u32, run: &Invocation, streams: [Stdio; 3]) -> Result<Child, LaunchError> {
        let mut command = self.beside(pid, run);
        let [stdin, stdout, stderr] = streams;
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        self.spawn(command).await
    }

    /// The same on a terminal, which becomes the process's controlling one.
    pub async fn exec_on_terminal(&self, pid: u32, run: &Invocation, terminal: OwnedFd) -> Result<Child, LaunchError> {
        let inner = self.beside(pid, run);
        let mut command = Command::new("/usr/bin/setsid");
        command
            .args(["--ctty", "--wait"])
            .arg(inner.as_std().get_program())
            .args(inner.as_std().get_args());
        command.env_clear().env("PATH", PATH).kill_on_drop(true);
        command.stdin(Stdio::from(terminal.try_clone()?));
        command
            .stdout(Stdio::from(terminal.try_clone()?))
            .stderr(Stdio::from(terminal));
        self.spawn(command).await
    }

    /// A tool of the host, outside all containers, that also ends with this process.
    pub async fn helper(&self, tool: &str, args: &[&str], streams: [Stdio; 3]) -> Result<Child, LaunchError> {
        let mut command = self.outermost();
        let [stdin, stdout, stderr] = streams;
        command
            .arg(tool)
            .args(args)
            .env("PATH", PATH)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr);
        self.spawn(command).await
    }

    fn identity(&self, identity: &Identity) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        let mut push = |words: &[&str]| args.extend(words.iter().map(OsString::from));
        if !identity.privileged {
            push(&["--bounding-set", &capability_set(identity), "--inh-caps", "-all"]);
        }
        if identity.no_new_privileges {
            push(&["--no-new-privs"]);
        }
        // One user is all that an ordinary user's namespace has: there, every container runs as that user.
        if !self.user_namespace {
            if let Some(user) = identity.user {
                push(&["--reuid", &user.to_string()]);
            }
            push(&["--regid", &identity.group.unwrap_or(0).to_string()]);
            if identity.groups.is_empty() {
                push(&["--clear-groups"]);
            } else {
                let groups: Vec<String> = identity.groups.iter().map(ToString::to_string).collect();
                push(&["--groups", &groups.join(",")]);
            }
        }
        args
    }
}

/// Root in a container may lack the right to mount.
fn may_mount() -> bool {
    const SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << SYS_ADMIN) != 0)
}

fn capability_set(identity: &Identity) -> String {
    let plain = |name: &String| name.to_lowercase().trim_start_matches("cap_").to_owned();
    let dropped: Vec<String> = identity.dropped.iter().map(plain).collect();
    let added: Vec<String> = identity.added.iter().map(plain).collect();
    let kept = CAPABILITIES.iter().map(|name| (*name).to_owned());
    let kept = kept.filter(|name| !dropped.iter().any(|dropped| dropped == "all" || dropped == name));
    kept.chain(added)
        .fold("-all".to_owned(), |all, name| all + ",+" + &name)
}

/// `env` sets the variables, because a shell drops names it does not like (`a.b`), which Kubernetes allows.
fn with_env(run: &Invocation) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["--".into(), "/usr/bin/env".into()];
    args.extend(["-i".into(), "-C".into(), run.working_dir.clone().into_os_string()]);
    if !run.env.iter().any(|(name, _)| name == "PATH") {
        args.push(format!("PATH={PATH}").into());
    }
    args.extend(run.env.iter().map(|(name, value)| format!("{name}={value}").into()));
    args.extend(run.command.iter().map(OsString::from));
    args
}

/// Reads what the first process says, until its line about the start or its end.
async fn read_error(ear: &mut UnixStream) -> io::Result<String> {
    let mut message = Vec::new();
    loop {
        let read = ear.read_buf(&mut message).await?;
        let started = message.starts_with(b"started ") && message.ends_with(b"\n");
        if read == 0 || started {
            return Ok(String::from_utf8_lossy(&message).into_owned());
        }
    }
}
