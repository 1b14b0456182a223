//! Certificates and tokens are rotated without an outage.

use super::*;

/// Watches that the operator stays live while something is done.
async fn without_outage(operator: &mut Operator, during: Duration) {
    let end = Instant::now() + during;
    while Instant::now() < end {
        let left = end - Instant::now();
        let _ = timeout(left, operator.triggers.recv()).await;
        assert!(live(&operator.view()), "{:?}", operator.view());
    }
}

#[tokio::test]
async fn a_rotation_closes_nothing_and_either_side_may_be_first() {
    let old = credentials();
    let new = old.rotate("c", &ring::rand::SystemRandom::new()).unwrap();
    for robin_first in [true, false] {
        let robin = Served::start(&old).await;
        robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
        let mut operator = Operator::following(robin.endpoint(&old));
        operator.live().await;
        let rotate_robin = || {
            robin.identity.replace(&new.certificate, &new.private_key).unwrap();
            *robin.tokens.lock().unwrap() = Tokens::new([new.token.as_str(), old.token.as_str()]);
        };
        if robin_first {
            rotate_robin();
            without_outage(&mut operator, HEARTBEAT * 2).await;
            operator.follow(robin.endpoint(&new));
        } else {
            operator.follow(robin.endpoint(&new));
            without_outage(&mut operator, HEARTBEAT * 2).await;
            // An operator that starts now also finds Robin, which has the old files.
            let mut second = Operator::following(robin.endpoint(&new));
            second.live().await;
            rotate_robin();
        }
        without_outage(&mut operator, HEARTBEAT * 2).await;
        let mut third = Operator::following(robin.endpoint(&new));
        third.live().await;
    }
}

#[tokio::test]
async fn a_certificate_that_is_no_longer_accepted_ends_the_connection() {
    let old = credentials();
    let robin = Served::start(&old).await;
    robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let mut operator = Operator::following(robin.endpoint(&old));
    operator.live().await;
    let unrelated = credentials();
    operator.follow(robin.endpoint(&unrelated));
    let rejected = |view: &RobinView| {
        matches!(
            view,
            RobinView::Rejected {
                reason: Mismatch::Certificate(_),
                ..
            }
        )
    };
    operator.until("rejected", Duration::from_secs(2), rejected).await;
    operator.follow(robin.endpoint(&old));
    operator.live().await;
}

#[tokio::test]
async fn a_token_that_is_no_longer_valid_ends_the_connection() {
    let old = credentials();
    let robin = Served::start(&old).await;
    robin.feed.publish(&frame(true, 1), Instant::now()).unwrap();
    let mut operator = Operator::following(robin.endpoint(&old));
    operator.live().await;
    *robin.tokens.lock().unwrap() = Tokens::new(["other"]);
    let rejected = |view: &RobinView| {
        matches!(
            view,
            RobinView::Rejected {
                reason: Mismatch::Unauthorized,
                ..
            }
        )
    };
    operator.until("rejected", Duration::from_secs(5), rejected).await;
    *robin.tokens.lock().unwrap() = Tokens::new([old.token.as_str()]);
    operator.live().await;
}
