//! The page as programs ask for it: headers, hosts, sizes.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::json;

use crate::browser::client;
use crate::stage::Theatre;

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

pub async fn ask(method: &str, url: &str, headers: &[(&str, &str)]) -> Answer {
    send(method, url, headers, "").await
}

pub async fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::<Bytes>::from(body.to_owned())).unwrap();
    let answer = client().request(request).await.unwrap();
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status,
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_protect_themselves_and_stay_small() {
    let theatre = Theatre::open("").await;
    theatre.create("shop", json!({"shards": 3, "replicas": 1})).await;
    theatre.ready("shop").await;
    let page = format!("{}/c/default/vkc/shop", theatre.url);
    let mut size = 0;
    for path in [
        page.clone(),
        format!("{}/page.js", theatre.url),
        format!("{}/style.css", theatre.url),
    ] {
        let answer = ask("GET", &path, &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        size += answer.body.len();
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
    }
    assert!(size < 100_000, "the page has {size} bytes");
    let script = ask("GET", &format!("{}/page.js", theatre.url), &[]).await;
    assert!(script.body.len() < 20_000);

    let first = ask("GET", &page, &[]).await.body;
    assert!(first.contains("Ready for") && first.contains("Read-only"), "{first}");
    assert!(
        !first.contains("<script>") && !first.contains(" style=") && !first.contains("onclick"),
        "{first}"
    );
    assert!(
        !first.contains("http://") && !first.contains("https://"),
        "nothing is fetched from elsewhere"
    );

    for (headers, status) in [
        (vec![("host", "evil.example")], StatusCode::FORBIDDEN),
        (vec![("sec-fetch-site", "cross-site")], StatusCode::FORBIDDEN),
        (vec![("origin", "https://evil.example")], StatusCode::FORBIDDEN),
        (vec![("sec-fetch-site", "same-origin")], StatusCode::OK),
    ] {
        for path in [&theatre.url, &page] {
            assert_eq!(ask("GET", path, &headers).await.status, status, "{headers:?}");
        }
    }
    let missing = ask("GET", &format!("{}/c/default/vkc/other", theatre.url), &[]).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    let strange = ask("GET", &format!("{}/c/default/x/shop", theatre.url), &[]).await;
    assert_eq!(strange.status, StatusCode::NOT_FOUND);
    theatre.close().await;
}
