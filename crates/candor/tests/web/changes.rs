//! Changes: only with `--actions`, only after a confirmation, only from the page itself.

use http::StatusCode;
use serde_json::json;

use crate::browser::Browser;
use crate::requests::{Answer, ask, send};
use crate::stage::Theatre;

/// Presses a button by its text.
async fn press(browser: &Browser, text: &str) {
    let button = format!(
        "[...document.querySelectorAll('button')].find((one) => one.innerText === {})",
        json!(text)
    );
    browser.until(&format!("!!{button}")).await;
    browser.value(&format!("({button}.click(), true)")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_shown_confirmed_and_made() {
    let theatre = Theatre::open("--actions").await;
    theatre.create("shop", json!({"shards": 3, "replicas": 1})).await;
    theatre.ready("shop").await;
    let browser = Browser::start().await;
    let page = format!("{}/c/default/vkc/shop", theatre.url);
    browser.open(&page).await;
    browser
        .until_text("footer", "Changes are made with your own permissions")
        .await;
    press(&browser, "Pause…").await;
    browser.until_text("h1", "Pause default/shop?").await;
    browser.is_accessible("confirmation").await;
    press(&browser, "Pause default/shop").await;
    browser.until_text("#answer", "Paused").await;
    press(&browser, "Resume…").await;
    press(&browser, "Resume default/shop").await;
    browser
        .until("!document.querySelector('#answer').innerText.includes('Paused')")
        .await;

    let primary = theatre.primary("shop", 1).await.unwrap();
    browser
        .value("(document.querySelector('#shard').value = '1', true)")
        .await;
    press(&browser, "Fail over…").await;
    browser.until_text("h1", "Fail over shard 1 of default/shop?").await;
    press(&browser, "Fail over shard 1 of default/shop").await;
    browser.until_text("#timeline", "FailoverCompleted").await;
    assert_ne!(theatre.primary("shop", 1).await.unwrap().node_id, primary.node_id);

    theatre.ready("shop").await;
    browser.open(&format!("{page}?shards=4")).await;
    press(&browser, "Scale to 4 shards…").await;
    browser.until_text("h1", "Scale default/shop to 4 shards?").await;
    browser.until_text("main", "4096 slots moved").await;
    browser.is_accessible("confirmation of a plan").await;
    browser.screenshot("confirm").await;
    press(&browser, "Scale default/shop to 4 shards").await;
    browser
        .until("document.querySelectorAll('.lane[data-shard]').length === 4")
        .await;
    theatre.ready("shop").await;
    browser.end().await;
    theatre.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_the_page_did_not_offer_is_rejected() {
    let mut theatre = Theatre::open("--actions").await;
    theatre.create("shop", json!({"shards": 1})).await;
    theatre.ready("shop").await;
    let spec = async |theatre: &Theatre| theatre.clusters("default").get("shop").await.unwrap().spec;
    let before = spec(&theatre).await;
    let confirm = ask(
        "GET",
        &format!("{}/c/default/vkc/shop/confirm?action=pause", theatre.url),
        &[],
    )
    .await;
    let token = confirm
        .body
        .split("name=\"token\" value=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let change = async |theatre: &Theatre, headers: Vec<(&str, &str)>, body: &str| -> Answer {
        send(
            "POST",
            &format!("{}/c/default/vkc/shop/change", theatre.url),
            &headers,
            body,
        )
        .await
    };
    let origin = theatre.url.clone();
    let own = ("origin", origin.as_str());
    let good = format!("action=pause&generation=1&token={token}");
    for (headers, body, status) in [
        (vec![own], "action=pause&generation=1", StatusCode::FORBIDDEN),
        (vec![own], "action=pause&generation=1&token=x", StatusCode::FORBIDDEN),
        (vec![], good.as_str(), StatusCode::FORBIDDEN),
        (
            vec![("origin", "https://evil.example")],
            good.as_str(),
            StatusCode::FORBIDDEN,
        ),
        (
            vec![own, ("sec-fetch-site", "cross-site")],
            good.as_str(),
            StatusCode::FORBIDDEN,
        ),
        (
            vec![own],
            &format!("action=pause&generation=7&token={token}"),
            StatusCode::CONFLICT,
        ),
        (
            vec![own],
            &format!("action=erase&generation=1&token={token}"),
            StatusCode::NOT_FOUND,
        ),
        (
            vec![own],
            &format!("action=scale&shards=0&generation=1&token={token}"),
            StatusCode::NOT_FOUND,
        ),
    ] {
        assert_eq!(change(&theatre, headers, body).await.status, status, "{body}");
    }
    assert_eq!(spec(&theatre).await, before, "nothing was changed");

    theatre.page.take().unwrap().kill().await.unwrap();
    theatre.serve("--listen 127.0.0.1:0").await;
    let origin = theatre.url.clone();
    let read_only = change(&theatre, vec![("origin", origin.as_str())], &good).await;
    assert_eq!(
        read_only.status,
        StatusCode::NOT_FOUND,
        "without --actions there is nothing to change"
    );
    assert_eq!(spec(&theatre).await, before);
    theatre.close().await;
}
