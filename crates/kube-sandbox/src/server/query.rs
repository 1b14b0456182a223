//! The query string.

use crate::status::{ApiError, Cause};

/// The parameters of one request, in their order.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `a=b&c=d`.
    pub fn parse(text: Option<&str>) -> Self {
        Self(
            form_urlencoded::parse(text.unwrap_or_default().as_bytes())
                .into_owned()
                .collect(),
        )
    }

    /// The first value, if it is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(k, _)| k == name)
            .map(|(_, v)| v.as_str())
            .filter(|v| !v.is_empty())
    }

    /// All values of a repeated parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == name).map(|(_, v)| v.as_str())
    }

    /// Whether a flag is given: the real server takes everything but `0` and `false` for true.
    pub fn flag(&self, name: &str) -> bool {
        self.0
            .iter()
            .find(|(k, _)| k == name)
            .is_some_and(|(_, v)| !matches!(v.as_str(), "0" | "false" | "False" | "FALSE" | "f" | "F"))
    }

    /// A number, if given.
    pub fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.get(name)
            .map(|v| {
                v.parse::<i64>()
                    .map_err(|_| ApiError::bad_request(format!("strconv.ParseInt: parsing {v:?}: invalid syntax")))
            })
            .transpose()
    }

    /// Whether nothing may be stored. `options` is `CreateOptions` and the like, for the error message.
    pub fn dry_run(&self, options: &str) -> Result<bool, ApiError> {
        let causes = self.write_causes();
        if causes.is_empty() {
            return Ok(self.all("dryRun").next().is_some());
        }
        Err(ApiError::invalid("meta.k8s.io", options, "", &causes))
    }

    /// What is wrong with the options of a write.
    pub fn write_causes(&self) -> Vec<Cause> {
        self.dry_run_cause()
            .into_iter()
            .chain(self.field_validation_cause())
            .collect()
    }

    fn field_validation_cause(&self) -> Option<Cause> {
        let value = self.get("fieldValidation")?;
        if ["", "Ignore", "Strict", "Warn"].contains(&value) {
            return None;
        }
        let known = r#""", "Ignore", "Strict", "Warn""#;
        Some(Cause {
            reason: "FieldValueNotSupported".into(),
            message: format!("Unsupported value: {value:?}: supported values: {known}"),
            field: "fieldValidation".into(),
        })
    }

    /// What is wrong with `dryRun`.
    fn dry_run_cause(&self) -> Option<Cause> {
        let value = self.all("dryRun").find(|value| *value != "All")?;
        Some(Cause {
            reason: "FieldValueNotSupported".into(),
            message: format!("Unsupported value: [{value:?}]: supported values: \"All\""),
            field: "dryRun".into(),
        })
    }
}
