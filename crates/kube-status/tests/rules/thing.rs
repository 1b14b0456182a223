//! Objects for tests, with conditions of either generation.

use jiff::Timestamp;
use kube_status::severity;
use kube_status::{Condition, Conditioned, ConditionedMut, Draft, Order, Status, set_in};

#[derive(Clone, Debug, PartialEq)]
pub struct Thing<C = Condition> {
    pub kind: String,
    pub name: String,
    pub generation: i64,
    pub prominent: bool,
    pub conditions: Vec<C>,
}

/// A thing of generation 1.
pub type OldThing = Thing<severity::Condition>;

/// Seconds after a fixed time. Not after the epoch, which stands for a missing time.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).expect("a small number of seconds")
}

pub fn bare<C>(kind: &str, name: &str) -> Thing<C> {
    Thing {
        kind: kind.into(),
        name: name.into(),
        generation: 1,
        prominent: false,
        conditions: Vec::new(),
    }
}

pub fn thing(kind: &str, name: &str) -> Thing {
    bare(kind, name)
}

pub fn machine(name: &str) -> Thing {
    bare("Machine", name)
}

pub fn old_thing(kind: &str, name: &str) -> OldThing {
    bare(kind, name)
}

pub fn old_machine(name: &str) -> OldThing {
    bare("Machine", name)
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

    pub fn prominent(mut self) -> Self {
        self.prominent = true;
        self
    }
}

impl OldThing {
    /// With a condition of generation 1.
    pub fn with_old(mut self, draft: severity::Draft<'_>) -> Self {
        let _ = severity::set_in(&mut self.conditions, draft, at(0), severity::Rules::PROPOSAL);
        self
    }
}

impl<C> Conditioned<C> for Thing<C> {
    fn kind(&self) -> &str {
        &self.kind
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn generation(&self) -> i64 {
        self.generation
    }
    fn conditions(&self) -> &[C] {
        &self.conditions
    }
    fn is_prominent(&self) -> bool {
        self.prominent
    }
}

impl<C> ConditionedMut<C> for Thing<C> {
    fn conditions_mut(&mut self) -> &mut Vec<C> {
        &mut self.conditions
    }
}
