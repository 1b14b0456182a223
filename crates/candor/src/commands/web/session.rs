//! Logins by a Kubernetes token. The browser holds only a random number in a cookie that no script can read; the token
//! stays in the memory of this process and is checked again every minute.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use axum::http::{HeaderMap, header};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use kube::Client;
use kube::api::{Api, PostParams};
use ring::rand::{SecureRandom, SystemRandom};

use super::serve::App;

/// The name of the cookie.
const COOKIE: &str = "candor-session";
/// A login ends after this long in any case.
const LONGEST: SignedDuration = SignedDuration::from_hours(12);
/// The token is checked this often.
const CHECK: SignedDuration = SignedDuration::from_secs(60);
/// As many logins are kept; the oldest ends first.
const MOST: usize = 1000;

/// A login.
pub struct Session {
    /// The user, as the API server says.
    pub user: UserInfo,
    /// The token that a request for a change must repeat.
    pub change_token: String,
    token: String,
    begun: Timestamp,
    checked: Mutex<Timestamp>,
}

impl Session {
    /// The name of the user.
    pub fn name(&self) -> String {
        self.user.username.clone().unwrap_or_default()
    }

    /// The user's own token, for requests that need the user's own permissions.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Whether it is still valid.
    pub async fn check(&self, app: &App, now: Timestamp) -> Option<()> {
        if now.duration_since(self.begun) > LONGEST {
            return None;
        }
        let checked = *self.checked.lock().ok()?;
        if now.duration_since(checked) >= CHECK {
            let user = review(&app.at.client, &self.token).await?;
            // The same name may be another user's by now.
            (user.uid == self.user.uid && user.username == self.user.username).then_some(())?;
            *self.checked.lock().ok()? = now;
        }
        Some(())
    }
}

/// All logins.
#[derive(Default)]
pub struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    /// Logs in; returns the value of the Set-Cookie header, or `None` if the token is not valid.
    pub async fn begin(&self, client: &Client, token: &str, is_secure: bool, now: Timestamp) -> Option<String> {
        let user = review(client, token).await?;
        let session = Session {
            user,
            change_token: random()?,
            token: token.to_owned(),
            begun: now,
            checked: Mutex::new(now),
        };
        let id = random()?;
        let mut all = self.0.lock().ok()?;
        all.retain(|_, one| now.duration_since(one.begun) <= LONGEST);
        if all.len() >= MOST {
            let oldest = all.iter().min_by_key(|(_, one)| one.begun).map(|(id, _)| id.clone());
            oldest.and_then(|id| all.remove(&id));
        }
        all.insert(id.clone(), Arc::new(session));
        Some(cookie(&id, LONGEST.as_secs(), is_secure))
    }

    /// The login of a request.
    pub fn of(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        let id = id(headers)?;
        self.0.lock().ok()?.get(&id).cloned()
    }

    /// Logs out; returns the value of the Set-Cookie header that removes the cookie.
    pub fn end(&self, headers: &HeaderMap, is_secure: bool) -> String {
        if let (Some(id), Ok(mut all)) = (id(headers), self.0.lock()) {
            all.remove(&id);
        }
        cookie("", 0, is_secure)
    }
}

fn cookie(id: &str, seconds: i64, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{COOKIE}={id}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

fn id(headers: &HeaderMap) -> Option<String> {
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = cookies
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, id) = pairs.find(|(name, id)| *name == COOKIE && !id.is_empty())?;
    Some(id.to_owned())
}

/// The user of a token, if the API server accepts it.
async fn review(client: &Client, token: &str) -> Option<UserInfo> {
    let review = TokenReview {
        spec: TokenReviewSpec {
            token: Some(token.to_owned()),
            ..TokenReviewSpec::default()
        },
        ..TokenReview::default()
    };
    let api: Api<TokenReview> = Api::all(client.clone());
    let status = api.create(&PostParams::default(), &review).await.ok()?.status?;
    let is_accepted = status.authenticated == Some(true) && status.error.is_none_or(|error| error.is_empty());
    status.user.filter(|_| is_accepted)
}

/// A number that cannot be guessed.
pub fn random() -> Option<String> {
    let mut bytes = [0_u8; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_out_of_reach_of_scripts_and_other_sites() {
        let text = cookie("abc", 60, true);
        for part in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
            assert!(text.contains(part), "{text}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, "a=b; candor-session=xyz; c=d".parse().unwrap());
        assert_eq!(id(&headers).as_deref(), Some("xyz"));
        headers.insert(header::COOKIE, "candor-session=".parse().unwrap());
        assert_eq!(id(&headers), None);
    }
}
