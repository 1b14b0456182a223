//! A Kubernetes cluster with the operator as a separate process beside it, as in production.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_sandbox::Sandbox;
use kube_sandbox::kubelet::{Image, ImageBind, Program, cached};
use tempfile::TempDir;

use crate::Result;
use crate::requests::OPERATOR;

/// The kernel counts CPU time in hundredths of a second.
const TICKS: f64 = 100.0;

/// A Kubernetes cluster with the operator. Everything that was started stops when this is dropped.
pub struct Stage {
    client: Client,
    sandbox: Option<Sandbox>,
    operator: Mutex<Option<Child>>,
    program: PathBuf,
    folder: TempDir,
}

impl Stage {
    /// A sandbox with pods that are real processes.
    pub async fn with_servers(program: &Path) -> Result<Self> {
        let images = cached("images.yaml")?;
        let builder = Sandbox::builder().nodes(3).zones(["a", "b", "c"]).images(images);
        let builder = builder.image(image(program)?);
        Self::set(program, builder).await
    }

    /// A sandbox without a kubelet: the caller simulates the pods.
    pub async fn without_kubelet(program: &Path) -> Result<Self> {
        Self::set(program, Sandbox::builder().kubelet(false)).await
    }

    async fn set(program: &Path, builder: kube_sandbox::Builder) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let sandbox = builder.request_log(true).start().await?;
        fs::write(folder.path().join("admin"), sandbox.kubeconfig())?;
        let operators = sandbox.kubeconfig_for(OPERATOR, &["system:masters"])?;
        fs::write(folder.path().join("operator"), operators)?;
        let client = sandbox.client();
        Self::play(program, client, Some(sandbox), folder).await
    }

    /// An existing cluster; its images must be those that are compared.
    pub async fn real(program: &Path, kubeconfig: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["admin", "operator"] {
            fs::copy(kubeconfig, folder.path().join(name))
                .map_err(|error| format!("{}: {error}", kubeconfig.display()))?;
        }
        let config = Kubeconfig::read_from(kubeconfig)?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        Self::play(program, Client::try_from(config)?, None, folder).await
    }

    async fn play(program: &Path, client: Client, sandbox: Option<Sandbox>, folder: TempDir) -> Result<Self> {
        let stage = Self {
            client,
            sandbox,
            operator: Mutex::default(),
            program: program.to_owned(),
            folder,
        };
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        let crds = crds.to_str().ok_or("the repository's path is not UTF-8")?;
        stage.kubectl(&["apply", "--filename", crds], None).await?;
        stage
            .kubectl(
                &[
                    "wait",
                    "--for=condition=Established",
                    "--timeout=30s",
                    "--filename",
                    crds,
                ],
                None,
            )
            .await?;
        stage.start_operator()?;
        Ok(stage)
    }

    /// A client with administrator permissions.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The sandbox, or an error on a real cluster.
    pub fn sandbox(&self) -> Result<&Sandbox> {
        let sandbox = self.sandbox.as_ref();
        sandbox.ok_or_else(|| "this is measured on the sandbox alone".into())
    }

    fn running(&self) -> MutexGuard<'_, Option<Child>> {
        self.operator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the operator; its log goes into a file.
    pub fn start_operator(&self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let child = Command::new(&self.program)
            .arg("operator")
            .env("KUBECONFIG", self.folder.path().join("operator"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        *self.running() = Some(child);
        Ok(())
    }

    /// Sends SIGKILL to the operator.
    pub fn kill_operator(&self) {
        if let Some(mut child) = self.running().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("operator.log")
    }

    /// The last lines of the operator's log, for a row that failed.
    pub fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Resident memory in bytes, and CPU time since the start.
    pub fn weight(&self) -> Result<(u64, Duration)> {
        let pid = self.running().as_ref().map(Child::id).ok_or("no operator runs")?;
        weight_of(pid)
    }

    /// Runs kubectl as a user does, with a manifest on standard input.
    pub async fn kubectl(&self, words: &[&str], manifest: Option<&str>) -> Result<String> {
        let config = self.folder.path().join("admin");
        let mut command = tokio::process::Command::new("kubectl");
        command.args(words).env("KUBECONFIG", config);
        run(command, manifest, Duration::from_secs(120)).await
    }
}

/// The process ids of the Robins that run on this host.
pub fn robins() -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        if words.first().is_some_and(|word| word.ends_with(b"candor")) && words.get(1) == Some(&&b"robin"[..]) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Resident memory in bytes and CPU time of a process.
pub fn weight_of(pid: u32) -> Result<(u64, Duration)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: u64 = resident
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .ok_or("no VmRSS in /proc")?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The program's name, in parentheses, may contain spaces.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u32>().ok());
    let (user, system) = ticks(11).zip(ticks(12)).ok_or("no times in /proc")?;
    let spent = Duration::from_secs_f64((f64::from(user) + f64::from(system)) / TICKS);
    Ok((kilobytes * 1024, spent))
}

/// The measured program as an image: Robin is the same program in a pod.
fn image(program: &Path) -> Result<Image> {
    let inside = PathBuf::from("/opt/candor/candor");
    let program = program.canonicalize()?;
    Ok(Image {
        r#match: "*candor:*".to_owned(),
        binds: vec![ImageBind {
            source: program.to_str().ok_or("the program's path is not UTF-8")?.to_owned(),
            target: inside.clone(),
        }],
        entrypoint: vec!["candor".to_owned()],
        programs: vec![Program {
            name: "candor".to_owned(),
            path: inside,
            ..Program::default()
        }],
        ..Image::default()
    })
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.kill_operator();
    }
}

/// Runs a command to completion and returns its output; on failure, its output is the error.
pub async fn run(mut command: tokio::process::Command, input: Option<&str>, within: Duration) -> Result<String> {
    use tokio::io::AsyncWriteExt;
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let piped = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    command.stdin(piped).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{name}: {error}"))?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        stdin.write_all(input.as_bytes()).await?;
    }
    let late = |_| format!("{name} did not end within {} s", within.as_secs());
    let output = tokio::time::timeout(within, child.wait_with_output())
        .await
        .map_err(late)??;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let words = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    let last = words.trim().lines().last().unwrap_or_default().to_owned();
    Err(format!("{name}: {last}").into())
}
