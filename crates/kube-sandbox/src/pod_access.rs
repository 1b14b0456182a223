//! What the API server asks of the kubelet.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::status::ApiError;

/// Which container of which pod.
#[derive(Clone, Debug)]
pub struct ContainerRef {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// Absent: the only container, or the default one.
    pub container: Option<String>,
}

/// What `kubectl logs` may ask for.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// Stay and stream (`-f`).
    pub follow: bool,
    /// The instance before the present one.
    pub previous: bool,
    /// Only the last lines.
    pub tail_lines: Option<usize>,
    /// Only what is younger.
    pub since_seconds: Option<i64>,
    /// At most so many bytes.
    pub limit_bytes: Option<usize>,
    /// A time before every line.
    pub timestamps: bool,
}

/// What `kubectl exec` asks for.
#[derive(Clone, Debug)]
pub struct ExecRequest {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Whether stdin will be written.
    pub stdin: bool,
    /// Whether a terminal is wanted.
    pub tty: bool,
}

/// A process started in a container by exec.
pub struct ExecProcess {
    /// Present when asked for.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// The terminal's output when a tty was asked for.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Absent with a tty.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Takes new terminal sizes (columns, rows); absent without a tty.
    pub resize: Option<tokio::sync::mpsc::Sender<(u16, u16)>>,
    /// Ends with the exit code.
    pub exit: BoxFuture<'static, i32>,
}

/// What the API server asks of the kubelet: logs and exec.
pub trait PodAccess: Send + Sync + 'static {
    /// The log as a stream of bytes.
    fn logs(
        &self,
        of: ContainerRef,
        options: LogOptions,
    ) -> BoxFuture<'static, Result<BoxStream<'static, std::io::Result<Bytes>>, ApiError>>;
    /// A new process beside the container's own.
    fn exec(&self, of: ContainerRef, request: ExecRequest) -> BoxFuture<'static, Result<ExecProcess, ApiError>>;
}
