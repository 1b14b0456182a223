//! An object for tests, with conditions of both generations.

use jiff::Timestamp;
use kube_status::severity;
use kube_status::{Condition, Conditioned, ConditionedMut, Draft, Order, Status, set_in};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thing {
    pub kind: String,
    pub name: String,
    pub generation: i64,
    pub prominent: bool,
    pub conditions: Vec<Condition>,
    pub old: Vec<severity::Condition>,
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a small number of seconds")
}

pub fn thing(kind: &str, name: &str) -> Thing {
    Thing {
        kind: kind.into(),
        name: name.into(),
        generation: 1,
        ..Thing::default()
    }
}

pub fn machine(name: &str) -> Thing {
    thing("Machine", name)
}

impl Thing {
    /// With a condition of generation 2, turned at second 0.
    pub fn with(self, type_: &str, status: Status, reason: &str, message: &str) -> Self {
        self.with_since(type_, status, reason, message, 0)
    }

    pub fn with_since(mut self, type_: &str, status: Status, reason: &str, message: &str, second: i64) -> Self {
        let draft = Draft::new(type_.to_owned(), status, reason.to_owned()).message(message.to_owned());
        let _ = set_in(
            &mut self.conditions,
            draft,
            self.generation,
            at(second),
            &Order::AS_GIVEN,
        );
        self
    }

    /// With a condition of generation 1.
    pub fn with_old(mut self, draft: severity::Draft<'_>) -> Self {
        let _ = severity::set_in(&mut self.old, draft, at(0), severity::Rules::PROPOSAL);
        self
    }

    pub fn prominent(mut self) -> Self {
        self.prominent = true;
        self
    }
}

impl Conditioned for Thing {
    fn kind(&self) -> &str {
        &self.kind
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn generation(&self) -> i64 {
        self.generation
    }
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
    fn is_prominent(&self) -> bool {
        self.prominent
    }
}

impl ConditionedMut for Thing {
    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
}

impl Conditioned<severity::Condition> for Thing {
    fn kind(&self) -> &str {
        &self.kind
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn generation(&self) -> i64 {
        self.generation
    }
    fn conditions(&self) -> &[severity::Condition] {
        &self.old
    }
}

impl ConditionedMut<severity::Condition> for Thing {
    fn conditions_mut(&mut self) -> &mut Vec<severity::Condition> {
        &mut self.old
    }
}
