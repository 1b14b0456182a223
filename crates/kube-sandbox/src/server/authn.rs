//! Authentication: a client certificate, a token or anonymous; and impersonation.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::api::Api;
use super::rbac::Question;
use super::route::percent_decode;
use super::tokens::ISSUER;
use super::user::User;
use crate::status::ApiError;

impl Api {
    /// The user of a request. `proven` is the user of a client certificate, or of a caller inside the process.
    pub(super) fn authenticate(&self, proven: Option<User>, headers: &HeaderMap) -> Result<User, ApiError> {
        let user = match (proven, bearer(headers)) {
            (Some(user), _) => user,
            (None, None) => User::anonymous(),
            (None, Some(token)) => {
                self.verify_token(token, &[ISSUER.to_owned()])
                    .map_err(|why| {
                        tracing::debug!(why, "a token was rejected");
                        ApiError::new(401, "Unauthorized", "Unauthorized")
                    })?
                    .user
            }
        };
        self.impersonate(user, headers)
    }

    /// Impersonates another user, if the user may.
    fn impersonate(&self, user: User, headers: &HeaderMap) -> Result<User, ApiError> {
        let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let groups: Vec<String> = headers
            .get_all("impersonate-group")
            .iter()
            .filter_map(|v| v.to_str().ok().map(str::to_owned))
            .collect();
        let Some(name) = text("impersonate-user") else {
            if !groups.is_empty() {
                return Err(ApiError::new(
                    500,
                    "InternalError",
                    "Internal error occurred: requested [{Group}] without impersonating a user",
                ));
            }
            return Ok(user);
        };
        let account: Option<(String, String)> = name
            .strip_prefix("system:serviceaccount:")
            .and_then(|rest| rest.split_once(':'))
            .map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
        let question = match &account {
            Some((namespace, account)) => Question::on("impersonate", "", "serviceaccounts", namespace, account),
            None => Question::on("impersonate", "", "users", "", &name),
        };
        self.allow(&user, &question)?;
        for group in &groups {
            self.allow(&user, &Question::on("impersonate", "", "groups", "", group))?;
        }
        let mut acting = match account {
            Some((namespace, account)) if groups.is_empty() => User::service_account(&namespace, &account, ""),
            _ if name == "system:anonymous" => User::anonymous(),
            _ => User::new(name, groups),
        };
        acting.uid = text("impersonate-uid").unwrap_or_default();
        for (header, value) in headers {
            let extra = header.as_str().strip_prefix("impersonate-extra-");
            if let (Some(extra), Ok(value)) = (extra, value.to_str()) {
                acting
                    .extra
                    .entry(percent_decode(extra))
                    .or_default()
                    .push(value.to_owned());
            }
        }
        Ok(acting)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
