//! Stock kubectl, run for real against a sandbox.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use kube_sandbox::Sandbox;
use kube_sandbox::kubelet::cached;

/// A sandbox and the kubectl that uses it, with a separate home folder.
pub struct Kubectl {
    /// Everything ends with it.
    _sandbox: Sandbox,
    home: tempfile::TempDir,
    program: PathBuf,
}

/// The kubectl on PATH, else the one `make setup` fetched.
fn program() -> PathBuf {
    let on_path = std::env::var_os("PATH")
        .into_iter()
        .flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    on_path
        .chain(cached("bin").ok())
        .map(|folder| folder.join("kubectl"))
        .find(|program| program.is_file())
        .expect("these tests run kubectl: install it so that it is on PATH, or run `make setup`")
}

impl Kubectl {
    /// A sandbox of two nodes in two zones, with everything running.
    pub async fn start() -> Self {
        let builder = Sandbox::builder().nodes(2).zones(["a", "b"]);
        Self::with(builder.start().await.expect("the sandbox starts"))
    }

    pub fn with(sandbox: Sandbox) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("config"), sandbox.kubeconfig()).expect("the kubeconfig is written");
        Self {
            _sandbox: sandbox,
            home,
            program: program(),
        }
    }

    /// The command with these words, separated by spaces.
    pub fn command(&self, args: &str) -> Command {
        self.command_of(&args.split_whitespace().collect::<Vec<_>>())
    }

    pub fn command_of(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("config"))
            .stdin(Stdio::null());
        command
    }

    /// Runs to its end, off the runtime's threads, on which the sandbox answers.
    pub async fn output(&self, mut command: Command, input: &str) -> Output {
        let input = input.to_owned();
        tokio::task::spawn_blocking(move || {
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let mut child = command.spawn().expect("kubectl starts");
            let mut stdin = child.stdin.take().expect("it is piped");
            stdin.write_all(input.as_bytes()).expect("kubectl reads its input");
            drop(stdin);
            child.wait_with_output().expect("kubectl ends")
        })
        .await
        .expect("kubectl was run")
    }

    /// What it prints; a failure fails the test with kubectl's message.
    pub async fn ok(&self, args: &str) -> String {
        self.ok_with(args, "").await
    }

    /// The same with something on its standard input.
    pub async fn ok_with(&self, args: &str, input: &str) -> String {
        Self::checked(args, &self.output(self.command(args), input).await)
    }

    /// The same with arguments that contain spaces.
    pub async fn ok_of(&self, args: &[&str]) -> String {
        Self::checked(&args.join(" "), &self.output(self.command_of(args), "").await)
    }

    pub fn checked(args: &str, output: &Output) -> String {
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "kubectl {args}\nstdout: {stdout}\nstderr: {stderr}"
        );
        stdout
    }

    /// Its error message; a success fails the test.
    pub async fn rejected(&self, args: &str) -> String {
        let output = self.output(self.command(args), "").await;
        assert!(!output.status.success(), "kubectl {args} should have failed");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// A command that goes on; its lines are read as they come.
    pub fn running(&self, args: &str) -> Running {
        let mut child = self
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kubectl starts");
        let stdout = child.stdout.take().expect("it is piped");
        let (send, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in std::io::BufRead::lines(std::io::BufReader::new(stdout)).map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Running {
            child,
            lines,
            args: args.to_owned(),
        }
    }

    /// Repeats the command until its output is as expected.
    pub async fn until(&self, args: &str, expected: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let output = self.output(self.command(args), "").await;
            let checked = String::from_utf8_lossy(&output.stdout).into_owned();
            if expected(&checked) {
                return checked;
            }
            assert!(Instant::now() < deadline, "kubectl {args} still prints:\n{checked}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A kubectl that goes on until it is dropped.
pub struct Running {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
    args: String,
}

impl Running {
    /// The next line that is as wanted, with those before it passed over.
    pub async fn line(&mut self, expected: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut seen = Vec::new();
        loop {
            match self.lines.try_recv() {
                Ok(line) if expected(&line) => return line,
                Ok(line) => seen.push(line),
                Err(_) => {
                    assert!(
                        Instant::now() < deadline,
                        "kubectl {} printed only: {seen:#?}",
                        self.args
                    );
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A deployment of programs that wait, in the host's shell.
pub fn deployment(name: &str, replicas: u32) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: {name}}}
  template:
    metadata:
      labels: {{app: {name}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: busybox
          command: [sh, -c, "echo started; exec sleep 3600"]
"#
    )
}
