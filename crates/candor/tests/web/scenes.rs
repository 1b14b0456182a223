//! What a user sees in the browser while clusters change, fail and recover.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use valkey_admin::Slot;

use crate::browser::Browser;
use crate::stage::Theatre;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_created_scaled_hurt_and_lost_in_front_of_a_viewer() {
    let mut theatre = Theatre::open("").await;
    let browser = Browser::start().await;
    browser.open(&theatre.url).await;
    browser.until_text("#summary", "There is no cluster here yet").await;
    browser.is_accessible("no cluster").await;

    theatre.create("shop", json!({"shards": 3, "replicas": 1})).await;
    browser.until_text("#c-vkc-default-shop", "shop").await;
    browser.open(&format!("{}/c/default/vkc/shop", theatre.url)).await;
    browser.until_text("#answer", "shop").await;
    browser.is_accessible("create").await;
    theatre.ready("shop").await;
    browser.until_text("#answer .sentence", "Ready for").await;
    browser.until_text("#slots", "All 16,384 slots have an owner").await;
    browser.until_text("#members", "Live figures of 6 of 6 members").await;
    assert_eq!(
        browser
            .value("document.querySelectorAll('#members tbody tr[id]').length")
            .await,
        6
    );
    browser.is_accessible("ready").await;
    browser.screenshot("ready").await;

    scale(&theatre, &browser).await;
    lose_a_primary(&theatre, &browser).await;
    lose_data(&theatre, &browser).await;
    end_the_operator(&mut theatre, &browser).await;
    break_the_stream(&theatre, &browser).await;
    browser.end().await;
    theatre.close().await;
}

async fn scale(theatre: &Theatre, browser: &Browser) {
    browser
        .open(&format!("{}/c/default/vkc/shop?shards=5#plan", theatre.url))
        .await;
    browser
        .until_text("#plan", "from 3 shards with 1 replica each to 5 shards")
        .await;
    browser.until_text("#plan", "slots moved").await;
    browser.is_accessible("plan").await;
    browser.screenshot("plan").await;
    theatre.change("shop", json!({"shards": 5})).await;
    browser
        .until("document.querySelectorAll('.lane[data-shard]').length === 5")
        .await;
    browser.screenshot("scale").await;
    theatre.ready("shop").await;
    browser.until_text("#answer .sentence", "Ready for").await;
    browser.until("Number(document.body.dataset.moves) > 0").await;
    browser.until("document.querySelector('.flight') === null").await;
    browser.is_accessible("scaled").await;
}

async fn lose_a_primary(theatre: &Theatre, browser: &Browser) {
    let pods = theatre.pods_of("shop").await;
    let primary = theatre.primary("shop", 1).await.unwrap();
    let pod = &pods[&format!("1-{}", primary.node)];
    assert!(theatre.pods.kill("default", pod, Duration::from_secs(2)));
    browser.until_text("#timeline", "PrimaryLost").await;
    browser.is_accessible("primary lost").await;
    browser.screenshot("primary-lost").await;
    theatre.ready("shop").await;
    browser.until_text("#answer .sentence", "Ready for").await;
}

async fn lose_data(theatre: &Theatre, browser: &Browser) {
    let pods = theatre.pods_of("shop").await;
    for pod in [&pods["2-0"], &pods["2-1"]] {
        let ip = theatre.pods.address("default", pod).unwrap();
        theatre.world.write(ip, Slot::new(12_000).unwrap(), 5000);
    }
    for pod in [&pods["2-0"], &pods["2-1"]] {
        assert!(theatre.pods.kill("default", pod, Duration::from_millis(300)));
    }
    browser.until_text("#answer", "DataLost").await;
    browser.is_accessible("data lost").await;
    browser.screenshot("data-lost").await;
}

async fn end_the_operator(theatre: &mut Theatre, browser: &Browser) {
    theatre.end_operator().await;
    browser.until_text("#answer", "No operator has been alive").await;
    browser.until_text("#answer .sentence", "When last seen").await;
    browser.is_accessible("no operator").await;
    browser.screenshot("no-operator").await;
    browser.open(&theatre.url).await;
    browser.until_text("#rows-broken", "When last seen").await;
    browser.is_accessible("fleet without an operator").await;
    theatre.start_operator();
    browser
        .until("document.querySelector('#summary .banner') === null")
        .await;
}

/// A page that stops, and a page that hangs.
async fn break_the_stream(theatre: &Theatre, browser: &Browser) {
    browser.until("document.body.dataset.state === 'live'").await;
    theatre.signal(Signal::STOP);
    let noticed = browser.until("document.body.dataset.state === 'broken'").await;
    assert!(
        noticed < Duration::from_millis(2500),
        "the viewer knew after {noticed:?}"
    );
    browser
        .until_text("#alert", "The connection to candor web is lost")
        .await;
    browser
        .until("getComputedStyle(document.querySelector('main')).filter === 'grayscale(1)'")
        .await;
    browser.is_accessible("broken").await;
    browser.screenshot("broken").await;
    theatre.signal(Signal::CONT);
    browser.until("document.body.dataset.state === 'live'").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clusters_that_change_at_once_stay_in_order_and_within_a_second() {
    let theatre = Theatre::open("").await;
    let browser = Browser::start().await;
    for number in 0..20 {
        theatre.create(&format!("cart-{number:02}"), json!({"shards": 1})).await;
    }
    browser.open(&theatre.url).await;
    browser
        .until("document.querySelectorAll('#rows-desired > li').length === 20")
        .await;
    browser.is_accessible("fleet").await;
    for number in 0..20 {
        theatre
            .change(&format!("cart-{number:02}"), json!({"paused": true}))
            .await;
    }
    let noticed = browser
        .until("[...document.querySelectorAll('.row')].filter((row) => row.innerText.includes('Paused')).length === 20")
        .await;
    assert!(noticed < Duration::from_secs(3), "shown after {noticed:?}");
    let names = browser
        .value("[...document.querySelectorAll('.who a')].map((one) => one.innerText).join()")
        .await;
    let names: Vec<&str> = names.as_str().unwrap().split(',').collect();
    assert_eq!(names.len(), 20);

    browser
        .value("(document.querySelector('#q').value = '07', document.querySelector('#filter').requestSubmit())")
        .await;
    browser.until("document.querySelectorAll('.row').length === 1").await;
    assert_eq!(browser.text(".row .who a").await, "cart-07");
    browser.until("location.search === '?q=07'").await;
    browser.is_accessible("filtered").await;
    browser
        .value("(document.querySelector('#q').value = '', document.querySelector('#filter').requestSubmit())")
        .await;
    browser.until("document.querySelectorAll('.row').length === 20").await;
    browser.screenshot("fleet").await;
    browser.end().await;
    theatre.close().await;
}
