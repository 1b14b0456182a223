//! `candor exporter`: a server's figures for Prometheus, until a signal ends it.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::exporter::{Server, serve};

/// The exporter beside a server. The variables are those of other exporters for Redis.
/// Example: `candor exporter --server redis://10.0.0.7:6379 --listen 10.0.0.7:9121`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor exporter --server redis://10.0.0.7:6379 --listen 10.0.0.7:9121")]
pub struct Exporter {
    /// The server: redis://ADDRESS:PORT, or rediss:// for TLS.
    #[arg(
        long,
        value_name = "URL",
        env = "REDIS_ADDR",
        default_value = "redis://127.0.0.1:6379"
    )]
    server: String,
    /// The ACL user.
    #[arg(long, value_name = "NAME", env = "REDIS_USER")]
    user: Option<String>,
    /// Its password; by the environment, because a command line can be read by everyone.
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "REDIS_PASSWORD",
        hide_env_values = true,
        hide = true
    )]
    password: Option<String>,
    /// A file with its password.
    #[arg(long, value_name = "FILE", env = "CANDOR_PASSWORD_FILE")]
    password_file: Option<PathBuf>,
    /// Where /metrics, /readyz (of the server) and /healthz (of the exporter) are served.
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "REDIS_EXPORTER_WEB_LISTEN_ADDRESS",
        default_value = "0.0.0.0:9121"
    )]
    listen: String,
    /// Who signed the server's certificate, for rediss://.
    #[arg(
        long,
        value_name = "FILE",
        env = "REDIS_EXPORTER_TLS_CA_CERT_FILE",
        default_value = "/tls/ca.crt"
    )]
    tls_ca: PathBuf,
    /// The certificate we show.
    #[arg(
        long,
        value_name = "FILE",
        env = "REDIS_EXPORTER_TLS_CLIENT_CERT_FILE",
        default_value = "/tls/tls.crt"
    )]
    tls_cert: PathBuf,
    /// Its key.
    #[arg(
        long,
        value_name = "FILE",
        env = "REDIS_EXPORTER_TLS_CLIENT_KEY_FILE",
        default_value = "/tls/tls.key"
    )]
    tls_key: PathBuf,
}

impl Exporter {
    /// Serves until a signal ends it.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let mut terminate = signal(SignalKind::terminate())?;
        let (address, tls) = of_url(&self.server)?;
        let listen = socket(&self.listen)?;
        let server = Server {
            address,
            user: self.user.filter(|user| !user.is_empty()),
            password: self.password.filter(|password| !password.is_empty()),
            password_file: self.password_file,
            tls: tls.then_some([self.tls_ca, self.tls_cert, self.tls_key]),
        };
        tokio::select! {
            served = serve(listen, server) => Ok(served?),
            _ = tokio::signal::ctrl_c() => Ok(()),
            _ = terminate.recv() => Ok(()),
        }
    }
}

/// The address of a URL, and whether it asks for TLS.
fn of_url(url: &str) -> Result<(SocketAddr, bool), String> {
    let wrong = || format!("{url} is not redis://ADDRESS:PORT nor rediss://ADDRESS:PORT");
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let tls = match scheme {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err(wrong()),
    };
    Ok((socket(rest).map_err(|_| wrong())?, tls))
}

/// Address and port. An IPv6 address may come without its brackets: a pod's own address does.
pub fn socket(text: &str) -> Result<SocketAddr, String> {
    let read = || {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = if host == "localhost" { "127.0.0.1" } else { host };
        Some(SocketAddr::new(host.parse().ok()?, port.parse().ok()?))
    };
    read().ok_or_else(|| format!("{text} is not ADDRESS:PORT"))
}

#[cfg(test)]
mod tests {
    use super::of_url;

    #[test]
    fn a_url_is_an_address_and_a_wish_for_tls() {
        let table = [
            ("redis://10.0.0.1:6379", Some(("10.0.0.1:6379", false))),
            ("rediss://10.0.0.1:6379", Some(("10.0.0.1:6379", true))),
            ("redis://fd00::1:6379", Some(("[fd00::1]:6379", false))),
            ("redis://[fd00::1]:6379", Some(("[fd00::1]:6379", false))),
            ("redis://localhost:6379", Some(("127.0.0.1:6379", false))),
            ("http://10.0.0.1:6379", None),
            ("10.0.0.1:6379", None),
            ("redis://10.0.0.1", None),
            ("redis://somewhere:6379", None),
        ];
        for (url, expected) in table {
            let found = of_url(url).ok().map(|(address, tls)| (address.to_string(), tls));
            assert_eq!(found, expected.map(|(address, tls)| (address.to_owned(), tls)), "{url}");
        }
    }
}
