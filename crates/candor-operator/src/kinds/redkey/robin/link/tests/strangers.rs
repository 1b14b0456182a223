//! Other processes at Robin's address, and Robins that are not as the operator expects.

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::{StreamExt, stream};

use super::super::frame::FRAME_LIMIT;
use super::*;

/// The reason of a rejection, once there is one.
async fn reason(operator: &mut Operator) -> Mismatch {
    let rejected = |view: &RobinView| matches!(view, RobinView::Rejected { .. });
    operator.until("rejected", Duration::from_secs(5), rejected).await;
    match operator.view() {
        RobinView::Rejected { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_fake_robin_at_the_address_is_rejected_and_learns_no_token() {
    let credentials = credentials();
    let robin = Served::start(&credentials).await;
    robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let (address, endpoint) = (robin.address, robin.endpoint(&credentials));
    let mut operator = Operator::following(endpoint);
    operator.live().await;
    drop(robin);
    operator.until("refused", Duration::from_secs(2), refused).await;

    // It has a certificate of the same name, and it would accept any token and answer that all is well.
    let other = super::credentials();
    let identity = Identity::new(&other.certificate, &other.private_key).unwrap();
    let acceptor = identity.acceptor().unwrap();
    let listener = TcpListener::bind(address).await.unwrap();
    let learned = Arc::new(Mutex::new((0, Vec::new())));
    let notes = learned.clone();
    let fake = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut received = Vec::new();
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncandor-protocol: 1\r\n\r\n").await;
                let _ = stream.read_to_end(&mut received).await;
            }
            let mut notes = notes.lock().unwrap();
            notes.0 += 1;
            notes.1.extend(received);
        }
    });
    let reason = reason(&mut operator).await;
    assert!(matches!(reason, Mismatch::Certificate(_)), "{reason}");
    let deadline = Instant::now() + Duration::from_secs(10);
    while learned.lock().unwrap().0 < 3 {
        assert!(Instant::now() < deadline, "the operator tries again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(learned.lock().unwrap().1, Vec::<u8>::new());
    assert!(matches!(operator.view(), RobinView::Rejected { .. }));
    fake.abort();

    // The real one is accepted again at the same address.
    let _ = fake.await;
    let robin = Served::at(address, &credentials).await;
    robin.feed.publish(&frame(true, 2), Instant::now()).unwrap();
    operator.live().await;
}

#[tokio::test]
async fn a_peer_without_tls_receives_no_token() {
    let credentials = credentials();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let received = Arc::new(Mutex::new(Vec::new()));
    let notes = received.clone();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncandor-protocol: 1\r\n\r\n").await;
            let mut bytes = vec![0; 4096];
            let count = stream.read(&mut bytes).await.unwrap_or(0);
            notes.lock().unwrap().extend_from_slice(&bytes[..count]);
        }
    });
    let mut operator = Operator::following(RobinEndpoint {
        address,
        ..RobinEndpoint::new(address.ip(), &credentials).unwrap()
    });
    let reason = reason(&mut operator).await;
    assert!(matches!(reason, Mismatch::Tls(_)), "{reason}");
    let text = String::from_utf8_lossy(&received.lock().unwrap()).into_owned();
    assert!(!text.contains(&credentials.token) && !text.contains("Bearer"), "{text}");
    task.abort();
}

#[tokio::test]
async fn a_wrong_token_is_rejected_and_the_right_one_is_tried_at_once() {
    let credentials = credentials();
    let robin = Served::start(&credentials).await;
    robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let mut operator = Operator::following(RobinEndpoint {
        tokens: vec!["wrong".to_owned(), String::new()],
        ..robin.endpoint(&credentials)
    });
    assert_eq!(reason(&mut operator).await, Mismatch::Unauthorized);
    operator.follow(robin.endpoint(&credentials));
    let took = operator.live().await;
    assert!(took < Duration::from_millis(200), "{took:?}");
}

/// A Robin with the right certificate that answers as it likes.
async fn answering(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> (Operator, JoinHandle<()>) {
    let credentials = credentials();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let link = LinkListener {
        listener,
        identity: Identity::new(&credentials.certificate, &credentials.private_key).unwrap(),
    };
    let router = Router::new().route(PATH, post(async move || answer()));
    let task = tokio::spawn(async move { link.serve(router).await.unwrap() });
    let operator = Operator::following(RobinEndpoint {
        address,
        ..RobinEndpoint::new(address.ip(), &credentials).unwrap()
    });
    (operator, task)
}

fn saying(protocol: &str, body: Vec<u8>) -> Response {
    let open = stream::iter([Ok::<_, std::io::Error>(body)]).chain(stream::pending());
    ([("candor-protocol", protocol)], Body::from_stream(open)).into_response()
}

#[tokio::test]
async fn another_protocol_is_rejected() {
    let old = || saying("0", Vec::new());
    let (mut operator, task) = answering(old).await;
    assert_eq!(reason(&mut operator).await, Mismatch::Protocol(Some(0)));
    task.abort();
    let (mut operator, task) = answering(|| "200".into_response()).await;
    assert_eq!(reason(&mut operator).await, Mismatch::Protocol(None));
    task.abort();
    let (mut operator, task) = answering(|| saying("1", b"{\"protocol\":0}\n".to_vec())).await;
    assert_eq!(reason(&mut operator).await, Mismatch::Protocol(Some(0)));
    task.abort();
    let missing = || ([("candor-protocol", "1")], StatusCode::NOT_FOUND).into_response();
    let (mut operator, task) = answering(missing).await;
    assert_eq!(reason(&mut operator).await, Mismatch::Status(404));
    task.abort();
}

#[tokio::test]
async fn malformed_and_oversized_frames_are_rejected_with_their_reason() {
    let (mut operator, task) = answering(|| saying("1", b"\n\n{\"protocol\":1}\n".to_vec())).await;
    let reason_ = reason(&mut operator).await.to_string();
    assert!(
        reason_.contains("cannot be decoded") && reason_.contains("version"),
        "{reason_}"
    );
    task.abort();
    let (mut operator, task) = answering(|| saying("1", vec![b'x'; FRAME_LIMIT + 2])).await;
    let reason_ = reason(&mut operator).await.to_string();
    assert!(reason_.contains("larger than"), "{reason_}");
    task.abort();
}
