//! The client over TLS and over IPv6, against real servers.

#[allow(dead_code)] // it serves other tests too
mod servers;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use servers::{Generation, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use valkey_admin::client::{Credentials, Deadlines, Endpoint, Fingerprint, Node, NodeError, Tls, Wire};

/// A CA, and a certificate that names no address.
struct Certificates {
    authority: String,
    certificate: String,
    key: String,
}

fn certificates() -> Certificates {
    issue(&authority())
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // A certificate with its issuer's name would be taken for its own issuer.
    params.distinguished_name.push(DnType::CommonName, "an authority");
    CertifiedIssuer::self_signed(params, key).unwrap()
}

fn issue(authority: &CertifiedIssuer<'static, KeyPair>) -> Certificates {
    let own = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["valkey.example".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&own, authority).unwrap();
    Certificates {
        authority: authority.pem(),
        certificate: leaf.pem(),
        key: own.serialize_pem(),
    }
}

impl Certificates {
    fn write(&self, folder: &Path) {
        std::fs::write(folder.join("ca.crt"), &self.authority).unwrap();
        std::fs::write(folder.join("tls.crt"), &self.certificate).unwrap();
        std::fs::write(folder.join("tls.key"), &self.key).unwrap();
    }

    fn tls(&self) -> Tls {
        Tls::new(
            self.authority.as_bytes(),
            self.certificate.as_bytes(),
            self.key.as_bytes(),
            &[],
        )
        .unwrap()
    }
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A free port.
fn free_port(ip: IpAddr) -> u16 {
    std::net::TcpListener::bind((ip, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

fn start(generation: Generation, folder: &Path, arguments: &[&str]) -> Process {
    let mut command = Command::new(generation.program());
    command
        .current_dir(folder)
        .args(["--save", "", "--appendonly", "no", "--protected-mode", "no"]);
    Process(command.args(arguments).stdout(Stdio::null()).spawn().unwrap())
}

fn node(address: SocketAddr, tls: Option<Tls>) -> Node {
    let endpoint = Endpoint {
        address,
        credentials: None,
        tls,
    };
    Node::new(endpoint, Deadlines::default())
}

#[tokio::test]
async fn an_unverified_connection_accepts_the_certificate_of_any_authority() {
    let folder = tempfile::tempdir().unwrap();
    certificates().write(folder.path());
    let ip = IpAddr::from([127, 0, 0, 1]);
    let port = free_port(ip).to_string();
    let arguments = [
        ["--bind", "127.0.0.1"],
        ["--port", "0"],
        ["--tls-port", &port],
        ["--tls-ca-cert-file", "ca.crt"],
        ["--tls-cert-file", "tls.crt"],
        ["--tls-key-file", "tls.key"],
        ["--tls-auth-clients", "optional"],
    ];
    let _server = start(Generation::Newest, folder.path(), arguments.as_flattened());
    let address = SocketAddr::new(ip, port.parse().unwrap());
    let client = node(address, Some(Tls::unverified().unwrap()));
    eventually("the server answers", async || client.ping().await.is_ok()).await;
    let unknown_ca = node(address, Some(certificates().tls())).ping().await.unwrap_err();
    assert!(matches!(unknown_ca, NodeError::Tls(..)), "{unknown_ca}");
}

#[tokio::test]
async fn tls_checks_the_chain_shows_our_certificate_and_never_falls_back() {
    for generation in [
        Generation::Newest,
        Generation::Valkey8,
        Generation::Redis8,
        Generation::Redis7,
    ] {
        let folder = tempfile::tempdir().unwrap();
        let ours = certificates();
        ours.write(folder.path());
        let ip = IpAddr::from([127, 0, 0, 1]);
        let port = free_port(ip);
        let text = port.to_string();
        let arguments = [
            "--bind",
            "127.0.0.1",
            "--port",
            "0",
            "--tls-port",
            &text,
            "--tls-ca-cert-file",
            "ca.crt",
            "--tls-cert-file",
            "tls.crt",
            "--tls-key-file",
            "tls.key",
            "--tls-auth-clients",
            "yes",
        ];
        let _server = start(generation, folder.path(), &arguments);
        let address = SocketAddr::new(ip, port);
        let client = node(address, Some(ours.tls()));
        eventually("the server answers over TLS", async || client.ping().await.is_ok()).await;
        assert!(
            client.info(&["server"]).await.unwrap().version.is_some(),
            "{generation:?}"
        );

        let unknown_ca = node(address, Some(certificates().tls())).ping().await.unwrap_err();
        assert!(matches!(unknown_ca, NodeError::Tls(..)), "{generation:?}: {unknown_ca}");
        let plain = node(address, None).ping().await.unwrap_err();
        assert!(
            !matches!(plain, NodeError::ConnectionRefused(_)),
            "{generation:?}: {plain}"
        );

        // A renewed certificate is in use as soon as the server has read it.
        let before = ours.tls().served_by(address).await.unwrap();
        let renewed = certificates();
        renewed.write(folder.path());
        let options = [
            ("tls-ca-cert-file", "ca.crt"),
            ("tls-cert-file", "tls.crt"),
            ("tls-key-file", "tls.key"),
        ];
        client.config_set(&options).await.unwrap();
        let after = renewed.tls().served_by(address).await.unwrap();
        assert_ne!(before, after, "{generation:?}");
        node(address, Some(renewed.tls())).ping().await.unwrap();
    }
}

/// A TLS server that takes any client and reports what it sends.
async fn listener(certificates: &Certificates) -> (SocketAddr, UnboundedReceiver<Vec<u8>>) {
    let chain = vec![CertificateDer::from_pem_slice(certificates.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(certificates.key.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let sockets = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = sockets.local_addr().unwrap();
    let (report, received) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((socket, _)) = sockets.accept().await {
            let mut bytes = Vec::new();
            if let Ok(mut stream) = acceptor.accept(socket).await {
                let _ = stream.read_buf(&mut bytes).await;
                let _ = stream.write_all(b"+OK\r\n").await;
            }
            let _ = report.send(bytes);
        }
    });
    (address, received)
}

#[tokio::test]
async fn a_server_with_another_certificate_of_the_same_ca_receives_no_password() {
    let authority = authority();
    let (ours, before, others) = (issue(&authority), issue(&authority), issue(&authority));
    let fingerprint = |one: &Certificates| Fingerprint::of_pem(one.certificate.as_bytes()).unwrap();
    let accepted = [fingerprint(&ours), fingerprint(&before)];
    let ca = authority.pem();
    let table = [
        (
            "the Secret's",
            &ours,
            Tls::trusting(&[ca.as_bytes()], &accepted[..1]).unwrap(),
            true,
        ),
        (
            "one before it",
            &before,
            Tls::trusting(&[ca.as_bytes()], &accepted).unwrap(),
            true,
        ),
        (
            "one before it, once the renewal is over",
            &before,
            Tls::trusting(&[ca.as_bytes()], &accepted[..1]).unwrap(),
            false,
        ),
        (
            "another of the same CA",
            &others,
            Tls::trusting(&[ca.as_bytes()], &accepted).unwrap(),
            false,
        ),
        ("our own, presented by us too", &ours, ours.tls(), true),
        ("another, while we present ours", &others, ours.tls(), false),
    ];
    for (what, presented, tls, accepted) in table {
        let (address, mut received) = listener(presented).await;
        let endpoint = Endpoint {
            address,
            credentials: Some(Credentials {
                user: "_operator".to_owned(),
                password: "a secret word".to_owned(),
            }),
            tls: Some(tls.clone()),
        };
        let node = Node::new(endpoint.clone(), Deadlines::default());
        let answer = node.ping().await;
        let request = received.recv().await.unwrap();
        let has_password = String::from_utf8_lossy(&request).contains("a secret word");
        assert_eq!(has_password, accepted, "{what}: {answer:?}");
        if !accepted {
            assert!(request.is_empty(), "{what}: {request:?}");
            let message = format!(
                "{address}: TLS: the certificate {} is neither the one of the cluster's Secret nor one before it",
                fingerprint(presented)
            );
            assert_eq!(answer.unwrap_err().to_string(), message);
            let stream = Wire::reach(address, Duration::from_secs(1)).await.unwrap();
            let wire = Wire::greet(stream, &endpoint, Duration::from_secs(1)).await;
            assert!(matches!(wire, Err(NodeError::Tls(..))), "{what}");
            assert!(received.recv().await.unwrap().is_empty(), "{what}");
            assert!(tls.served_by(address).await.is_err(), "{what}");
        }
    }
}

#[tokio::test]
async fn a_member_on_an_ipv6_address_is_known_by_it() {
    for generation in [
        Generation::Newest,
        Generation::Valkey8,
        Generation::Redis8,
        Generation::Redis7,
    ] {
        let ip = IpAddr::from(Ipv6Addr::LOCALHOST);
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let mut nodes = Vec::new();
        let mut processes = Vec::new();
        for folder in &folders {
            // The bus is 10000 above the port, and there are no ports above 65535.
            let port = loop {
                let port = free_port(ip) % 20_000 + 20_000;
                if std::net::TcpListener::bind((ip, port)).is_ok()
                    && std::net::TcpListener::bind((ip, port + 10_000)).is_ok()
                {
                    break port;
                }
            };
            let text = port.to_string();
            let arguments = [
                "--bind",
                "::1",
                "--bind-source-addr",
                "::1",
                "--port",
                &text,
                "--cluster-enabled",
                "yes",
                "--cluster-announce-ip",
                "::1",
            ];
            processes.push(start(generation, folder.path(), &arguments));
            nodes.push(node(SocketAddr::new(ip, port), None));
        }
        for one in &nodes {
            eventually("the server answers", async || one.ping().await.is_ok()).await;
        }
        nodes[0].meet(ip, nodes[1].address().port()).await.unwrap();
        for one in &nodes {
            eventually("both know each other", async || {
                one.cluster_nodes()
                    .await
                    .is_ok_and(|map| map.0.len() == 2 && map.0.iter().all(|node| !node.flags.handshake))
            })
            .await;
        }
        let map = nodes[0].cluster_nodes().await.unwrap();
        let other = map.get(nodes[1].my_id().await.unwrap()).unwrap();
        assert_eq!(
            other.address.host.parse::<IpAddr>().unwrap(),
            ip,
            "{generation:?}: {other:?}"
        );
        assert_eq!(other.address.port, nodes[1].address().port());
        let primary = nodes[0].my_id().await.unwrap();
        nodes[1].replicate(primary).await.unwrap();
        eventually("the replica is in sync", async || {
            nodes[1].info(&["replication"]).await.is_ok_and(|info| info.in_sync())
        })
        .await;
        let upstream = nodes[1].info(&["replication"]).await.unwrap().upstream.unwrap();
        assert_eq!(upstream.host.parse::<IpAddr>().unwrap(), ip);
    }
}
