//! Calls that must change nothing: without the token, too large, malformed, or never sent.

use super::super::server::BODY_LIMIT;
use super::*;

#[tokio::test]
async fn a_call_without_the_token_changes_nothing_on_any_path() {
    let served = Served::new().await;
    for (path, body) in [
        ("/v1/redkeycluster/status", r#"{"status":"Maintenance"}"#),
        ("/v1/redkeycluster/replicas", r#"{"primaries":0}"#),
        ("/v1/cluster/fix", ""),
        ("/v1/cluster/recreate", ""),
        ("/v1/cluster/move", r#"{"from":"0","to":"1"}"#),
        ("/v1/cluster/reset/0", ""),
    ] {
        for token in [
            None,
            Some(""),
            Some("currentx"),
            Some("curren"),
            Some("Current"),
            Some("other"),
        ] {
            let rejected = served.call("PUT", path, token, body).await;
            assert_eq!(rejected.0, 401, "{path} {token:?}");
            assert!(error_of(&rejected).contains("Secret"));
        }
        // Other authorization headers are rejected too.
        for head in [
            "authorization: Basic current",
            "authorization: current",
            "x-token: current",
            "authorization: Bearer current\r\nauthorization: Bearer other",
        ] {
            let request =
                format!("PUT {path} HTTP/1.1\r\nhost: r\r\nconnection: close\r\n{head}\r\ncontent-length: 0\r\n\r\n");
            assert_eq!(parsed(&served.raw(request.as_bytes()).await).0, 401, "{path} {head}");
        }
    }
    assert_eq!(served.changes(), Vec::<String>::new());
    let accepted = served.call("PUT", "/v1/cluster/fix", Some("previous"), "").await;
    assert_eq!(accepted.0, 201, "the token before a rotation is still valid");
}

#[tokio::test]
async fn a_body_above_the_limit_changes_nothing() {
    let served = Served::new().await;
    let long = format!(r#"{{"status":"Ready","x":"{}"}}"#, "x".repeat(BODY_LIMIT));
    for path in ["/v1/redkeycluster/status", "/v1/cluster/fix", "/v1/cluster/recreate"] {
        let rejected = served.put(path, &long).await;
        assert_eq!(rejected.0, 400, "{path}");
        assert!(error_of(&rejected).contains("4096"), "{rejected:?}");
    }
    // A false content length, and a request without one.
    let claimed = "PUT /v1/cluster/fix HTTP/1.1\r\nhost: r\r\nconnection: close\r\nauthorization: Bearer other\r\n\
                   content-length: 9999999999\r\n\r\n";
    assert_eq!(
        parsed(&served.raw(claimed.as_bytes()).await).0,
        401,
        "the body of a stranger is not waited for"
    );
    let mut chunked = String::from(
        "PUT /v1/cluster/fix HTTP/1.1\r\nhost: r\r\nconnection: close\r\nauthorization: Bearer current\r\n\
         transfer-encoding: chunked\r\n\r\n",
    );
    for _ in 0..6 {
        chunked += &["400\r\n", &"x".repeat(1024), "\r\n"].concat();
    }
    chunked.push_str("0\r\n\r\n");
    assert_eq!(parsed(&served.raw(chunked.as_bytes()).await).0, 400);
    assert_eq!(served.changes(), Vec::<String>::new());
}

#[tokio::test]
async fn malformed_calls_change_nothing() {
    let served = Served::new().await;
    for (method, path, code) in [
        ("POST", "/v1/cluster/fix", 405),
        ("DELETE", "/v1/redkeycluster/status", 405),
        ("PUT", "/v1/cluster/check", 405),
        ("PUT", "/v1/cluster", 404),
        ("PUT", "/v1/cluster/reset", 404),
        ("PUT", "/v1/cluster/reset/", 404),
        ("PUT", "/v1/cluster/reset/1/2", 404),
        ("GET", "/", 404),
    ] {
        let rejected = served.call(method, path, Some("current"), "").await;
        assert_eq!(rejected.0, code, "{method} {path}");
        error_of(&rejected);
    }
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"PUT /v1/cluster/fix\r\n\r\n",
        b"PUT /v1/cluster/fix HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",
    ] {
        let said = served.raw(garbage).await;
        assert!(said.is_empty() || parsed(&said).0 == 400, "{said}");
    }
    assert_eq!(served.changes(), Vec::<String>::new());
    assert_eq!(served.get("/health").await.0, 200, "it still answers");
}

#[tokio::test]
async fn a_client_that_sends_nothing_is_let_go_and_holds_up_no_other() {
    let served = Served::new().await;
    let mut silent = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    silent.write_all(b"PUT /v1/cluster/fix HTTP/1.1\r\nhost").await.unwrap();
    assert_eq!(served.get("/health").await.0, 200);
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(15), silent.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection stays open");
    assert_eq!(served.changes(), Vec::<String>::new());
}
