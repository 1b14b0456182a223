//! Which requests a rule matches, and which of these get the fault.

use super::fault::Fault;
use super::request::{RequestInfo, Verb};

/// A rule: requests that match are counted, and the chosen ones get the fault. Without a choice every match gets it.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Named in the log.
    pub name: String,
    verbs: Option<Vec<Verb>>,
    only_writes: bool,
    group: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    object: Option<String>,
    user_agent: Option<String>,
    which: Which,
    chance: f64,
    pub(super) fault: Fault,
}

/// Which of the matches, counted from 1.
#[derive(Clone, Copy, Debug)]
enum Which {
    All,
    Range { from: u64, count: u64 },
    Every(u64),
}

impl Rule {
    /// A rule for every request, to be narrowed; it delays by nothing until [`Rule::then`] says what to do.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            verbs: None,
            only_writes: false,
            group: None,
            resource: None,
            subresource: None,
            namespace: None,
            object: None,
            user_agent: None,
            which: Which::All,
            chance: 1.0,
            fault: Fault::delay_ms(0),
        }
    }

    /// What happens to the chosen requests.
    #[must_use]
    pub fn then(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }

    /// Only this verb; said twice, either of them.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.get_or_insert_default().push(verb);
        self
    }

    /// Only what changes something; dry runs do not.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.only_writes = true;
        self
    }

    /// Only this API group; `""` is the core group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Only this resource, by its plural.
    #[must_use]
    pub fn resource(mut self, plural: impl Into<String>) -> Self {
        self.resource = Some(plural.into());
        self
    }

    /// Only this subresource; `""` is the object itself.
    #[must_use]
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only the object of this name.
    #[must_use]
    pub fn object(mut self, name: impl Into<String>) -> Self {
        self.object = Some(name.into());
        self
    }

    /// Only clients with a user agent that begins with this.
    #[must_use]
    pub fn user_agent(mut self, begins_with: impl Into<String>) -> Self {
        self.user_agent = Some(begins_with.into());
        self
    }

    /// Only the n-th match, counted from 1.
    #[must_use]
    pub fn nth(self, n: u64) -> Self {
        self.range(n, 1)
    }

    /// So many matches from the n-th on.
    #[must_use]
    pub fn range(mut self, from: u64, count: u64) -> Self {
        self.which = Which::Range { from, count };
        self
    }

    /// Every n-th match.
    #[must_use]
    pub fn every(mut self, n: u64) -> Self {
        self.which = Which::Every(n.max(1));
        self
    }

    /// Of the chosen ones only this share, 0.0 to 1.0, drawn from the seed.
    #[must_use]
    pub fn chance(mut self, share: f64) -> Self {
        self.chance = share;
        self
    }

    /// Whether the request is one the rule counts.
    pub fn matches(&self, request: &RequestInfo) -> bool {
        let fits =
            |expected: &Option<String>, found: &str| expected.as_deref().is_none_or(|expected| expected == found);
        self.verbs.as_ref().is_none_or(|verbs| verbs.contains(&request.verb))
            && (!self.only_writes || request.writes())
            && fits(&self.group, &request.group)
            && fits(&self.resource, &request.resource)
            && fits(&self.subresource, &request.subresource)
            && fits(&self.namespace, &request.namespace)
            && fits(&self.object, &request.name)
            && self
                .user_agent
                .as_deref()
                .is_none_or(|begin| request.user_agent.starts_with(begin))
    }

    /// Whether the match of this number gets the fault; `draw` is a number of 0.0 to 1.0 that belongs to it.
    pub(super) fn strikes(&self, number: u64, draw: f64) -> bool {
        let chosen = match self.which {
            Which::All => true,
            Which::Range { from, count } => number >= from && number - from < count,
            Which::Every(n) => number.is_multiple_of(n),
        };
        chosen && draw < self.chance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_matches_are_counted_from_one() {
        let struck = |rule: Rule| (1..=9).filter(|n| rule.strikes(*n, 0.0)).collect::<Vec<u64>>();
        assert_eq!(struck(Rule::new("").nth(3)), [3]);
        assert_eq!(struck(Rule::new("").range(2, 3)), [2, 3, 4]);
        assert_eq!(struck(Rule::new("").every(4)), [4, 8]);
        assert_eq!(struck(Rule::new("")).len(), 9);
        assert!(!Rule::new("").chance(0.5).strikes(1, 0.7));
    }
}
