//! Random cases from a seed: the same seed and number always give the same case.

use fastrand::Rng;

use crate::case::{Case, Fallback, Fallback1, Merge1, Object, Sorting, Strategy, Words};
use crate::words::percent;
use crate::{untyped, words};

/// Which rules a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Severities.
    One,
    /// `metav1.Condition`, and apimachinery's helpers.
    Two,
}

/// Case `number` of a seed.
pub fn case(generation: Generation, seed: u64, number: u64) -> Case {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number));
    match generation {
        Generation::One => generation_1(&mut rng),
        Generation::Two => generation_2(&mut rng),
    }
}

fn generation_2(rng: &mut Rng) -> Case {
    match rng.u8(..100) {
        0..12 => Case::Set {
            object: object(rng, stored),
            condition: draft(rng),
            order: sorting(rng),
        },
        12..15 => Case::Delete {
            object: object(rng, stored),
            type_: words::type_(rng),
        },
        15..18 => Case::Get {
            object: object(rng, stored),
            type_: words::type_(rng),
        },
        18..42 => summary(rng),
        42..47 => Case::Mirror {
            object: object(rng, stored),
            type_: words::type_(rng),
            target: target(rng),
            fallback: fallback(rng),
        },
        47..52 => Case::MirrorUnstructured {
            content: untyped::object(rng),
            type_: words::type_(rng),
            target: target(rng),
            fallback: fallback(rng),
        },
        52..76 => aggregate(rng),
        76..94 => {
            let (before, after, latest) = three_way(rng, stored);
            Case::Patch {
                before,
                after,
                latest,
                owned: words::types(rng, 3),
                force: percent(rng, 15),
                order: sorting(rng),
            }
        }
        94 => Case::Plural {
            kind: words::any_kind(rng),
        },
        95..98 => Case::MetaSet {
            object: object(rng, stored),
            condition: Words {
                observed_generation: Some(rng.i64(0..3)),
                ..draft(rng)
            },
        },
        _ => Case::MetaRemove {
            object: object(rng, stored),
            type_: words::type_(rng),
        },
    }
}

fn summary(rng: &mut Rng) -> Case {
    let object = object(rng, stored);
    let mut types = words::types(rng, 7);
    types.extend(object.conditions.iter().filter(|_| rng.bool()).map(|c| c.type_.clone()));
    let target = if percent(rng, 85) {
        "Summary".to_owned()
    } else {
        words::type_(rng)
    };
    let negative = words::types(rng, 3);
    let mut overrides = Vec::new();
    if percent(rng, 15) {
        let known = object.conditions.iter().filter(|_| rng.bool()).cloned();
        overrides.extend(known.map(|c| Words {
            status: words::stored_status(&mut Rng::with_seed(c.message.len() as u64)),
            message: "overridden".to_owned(),
            ..c
        }));
        if percent(rng, 20) {
            overrides.push(stored(rng));
        }
    }
    Case::Summary {
        object,
        target,
        types,
        ignore: words::types(rng, 3),
        overrides,
        strategy: strategy(rng, &negative),
        negative,
    }
}

fn aggregate(rng: &mut Rng) -> Case {
    let type_ = words::type_(rng);
    let kinds: Vec<String> = (0..rng.usize(1..=3)).map(|_| words::kind(rng)).collect();
    let count = if percent(rng, 5) {
        rng.usize(..60)
    } else {
        rng.usize(..12)
    };
    let messages: Vec<String> = (0..rng.usize(1..=6)).map(|_| words::message(rng)).collect();
    let all_well = percent(rng, 25);
    let mut objects: Vec<Object> = (0..count)
        .map(|i| {
            let mut object = object_of(rng, &kinds, i);
            object.conditions = Vec::new();
            if percent(rng, 90) {
                object.conditions.push(Words {
                    type_: type_.clone(),
                    status: if all_well {
                        "True".to_owned()
                    } else {
                        words::stored_status(rng)
                    },
                    message: messages[rng.usize(..messages.len())].clone(),
                    ..stored(rng)
                });
            }
            if percent(rng, 20) {
                object.conditions.insert(0, stored(rng));
            }
            object
        })
        .collect();
    namesakes(rng, &mut objects, &kinds);
    let negative = match rng.u8(..20) {
        0..4 => Some(vec![type_.clone()]),
        4 => Some(Vec::new()),
        _ => None,
    };
    let strategy = strategy(rng, negative.as_deref().unwrap_or_default());
    Case::Aggregate {
        objects,
        target: target(rng),
        type_,
        negative,
        strategy,
    }
}

fn strategy(rng: &mut Rng, negative: &[String]) -> Option<Strategy> {
    percent(rng, 20).then(|| Strategy {
        negative_target: rng.bool(),
        negative: negative.to_vec(),
        reasons: rng.bool().then(|| ["Broken", "Unclear", "Fine"].map(str::to_owned)),
        first_reason: percent(rng, 30),
        patient: percent(rng, 30),
        max_lines: percent(rng, 20).then(|| rng.usize(..4)),
    })
}

fn generation_1(rng: &mut Rng) -> Case {
    match rng.u8(..100) {
        0..10 => Case::Set1 {
            object: object(rng, stored_1),
            condition: draft_1(rng),
        },
        10..15 => Case::SetWithTime1 {
            object: object(rng, stored_1),
            condition: draft_1(rng),
        },
        15..22 => Case::Mark1 {
            object: object(rng, stored_1),
            condition: Words {
                severity: words::some_severity(rng),
                last_transition_time: None,
                ..draft(rng)
            },
            negative: rng.bool(),
        },
        22..25 => Case::Delete1 {
            object: object(rng, stored_1),
            type_: words::type_(rng),
        },
        25..52 => Case::Summary1 {
            object: object(rng, stored_1),
            merge: merge_1(rng),
        },
        52..59 => Case::Mirror1 {
            object: object(rng, stored_1),
            from: object(rng, stored_1),
            target: words::type_(rng),
            fallback: percent(rng, 40).then(|| Fallback1 {
                value: rng.bool(),
                reason: words::reason(rng),
                severity: words::some_severity(rng),
                message: words::message(rng),
            }),
        },
        59..80 => {
            let kinds: Vec<String> = (0..rng.usize(1..=3)).map(|_| words::kind(rng)).collect();
            let count = if percent(rng, 5) {
                rng.usize(..60)
            } else {
                rng.usize(..10)
            };
            let mut objects: Vec<Object> = (0..count)
                .map(|i| Object {
                    conditions: ready_1(rng),
                    ..object_of(rng, &kinds, i)
                })
                .collect();
            namesakes(rng, &mut objects, &kinds);
            Case::Aggregate1 {
                object: object(rng, stored_1),
                objects,
                target: words::type_(rng),
                merge: merge_1(rng),
            }
        }
        _ => {
            let (before, after, latest) = three_way(rng, stored_1);
            Case::Patch1 {
                before,
                after,
                latest,
                owned: words::types(rng, 3),
                force: percent(rng, 15),
            }
        }
    }
}

fn ready_1(rng: &mut Rng) -> Vec<Words> {
    let mut conditions = Vec::new();
    if percent(rng, 85) {
        conditions.push(Words {
            type_: "Ready".to_owned(),
            ..stored_1(rng)
        });
    }
    if percent(rng, 20) {
        conditions.push(stored_1(rng));
    }
    conditions
}

fn merge_1(rng: &mut Rng) -> Merge1 {
    Merge1 {
        types: percent(rng, 50).then(|| words::types(rng, 6)),
        negative: percent(rng, 40).then(|| words::types(rng, 3)),
        step_counter: rng.bool(),
        step_counter_only: percent(rng, 35).then(|| words::types(rng, 12)),
        source_ref: percent(rng, 40),
    }
}

/// Three lists that mostly agree: the second and the third each came from the first by a few edits.
fn three_way(rng: &mut Rng, stored: fn(&mut Rng) -> Words) -> (Object, Object, Object) {
    let before = object(rng, stored);
    let after = edited(rng, &before, stored);
    let latest = match rng.u8(..10) {
        0..3 => before.clone(),
        3 => edited(rng, &after, stored),
        _ => edited(rng, &before, stored),
    };
    (before, after, latest)
}

fn edited(rng: &mut Rng, from: &Object, stored: fn(&mut Rng) -> Words) -> Object {
    let mut object = from.clone();
    for _ in 0..rng.usize(..=3) {
        let place = rng.usize(..=object.conditions.len());
        match (rng.u8(..6), object.conditions.get_mut(place)) {
            (0, Some(_)) => drop(object.conditions.remove(place)),
            (1, Some(c)) => c.message = words::message(rng),
            (2, Some(c)) => c.status = words::status(rng),
            (3, Some(c)) => c.last_transition_time = (!percent(rng, 10)).then(|| words::time(rng)),
            (4, Some(c)) => c.reason = words::reason(rng),
            _ => {
                let fresh = stored(rng);
                if object.conditions.iter().all(|c| c.type_ != fresh.type_) {
                    object.conditions.push(fresh);
                }
            }
        }
    }
    object
}

fn object(rng: &mut Rng, stored: fn(&mut Rng) -> Words) -> Object {
    let mut made = Object {
        kind: words::kind(rng),
        name: words::pick(rng, &["", "m1", "cluster-a", "größe"]).to_owned(),
        generation: rng.i64(0..3),
        control_plane: false,
        conditions: Vec::new(),
    };
    let twice = percent(rng, 6);
    for _ in 0..rng.usize(..7) {
        let fresh = stored(rng);
        if twice || made.conditions.iter().all(|c| c.type_ != fresh.type_) {
            made.conditions.push(fresh);
        }
    }
    made
}

/// Object `i` of a crowd. Names are unique; [`namesakes`] adds those that are not.
fn object_of(rng: &mut Rng, kinds: &[String], i: usize) -> Object {
    Object {
        kind: kinds[rng.usize(..kinds.len())].clone(),
        name: format!("{}-{}", words::pick(rng, &["m", "machine", "ü", "M", "10"]), i * 7 % 64),
        generation: rng.i64(0..3),
        control_plane: percent(rng, 15),
        conditions: Vec::new(),
    }
}

/// Adds objects with the name of another one: of any kind, or of the same kind with the same conditions. Where two objects
/// of one kind share a name and differ in their messages, Go's order is that of a map.
fn namesakes(rng: &mut Rng, objects: &mut Vec<Object>, kinds: &[String]) {
    if objects.is_empty() || !percent(rng, 15) {
        return;
    }
    for _ in 0..rng.usize(1..=3) {
        let twin = objects[rng.usize(..objects.len())].clone();
        let kind = kinds[rng.usize(..kinds.len())].clone();
        let taken = objects.iter().any(|one| one.kind == kind && one.name == twin.name);
        objects.push(if taken { twin } else { Object { kind, ..twin } });
    }
}

/// A condition of generation 2 as a list holds it.
pub fn stored(rng: &mut Rng) -> Words {
    Words {
        type_: words::type_(rng),
        status: words::stored_status(rng),
        severity: String::new(),
        observed_generation: rng.bool().then(|| rng.i64(1..3)),
        last_transition_time: (!percent(rng, 6)).then(|| words::time(rng)),
        reason: words::reason(rng),
        message: words::message(rng),
    }
}

fn draft(rng: &mut Rng) -> Words {
    Words {
        status: words::status(rng),
        observed_generation: None,
        last_transition_time: percent(rng, 30).then(|| words::time(rng)),
        ..stored(rng)
    }
}

fn stored_1(rng: &mut Rng) -> Words {
    Words {
        status: words::status(rng),
        severity: words::severity(rng),
        observed_generation: None,
        ..stored(rng)
    }
}

/// What a controller can state: a severity where something is wrong, words only where something is to be said.
fn draft_1(rng: &mut Rng) -> Words {
    let words = draft(rng);
    match (words.status.as_str(), rng.bool()) {
        ("Unknown", _) => words,
        (_, true) => Words {
            severity: words::some_severity(rng),
            ..words
        },
        (_, false) => Words {
            reason: String::new(),
            message: String::new(),
            ..words
        },
    }
}

fn sorting(rng: &mut Rng) -> Sorting {
    match rng.u8(..10) {
        0 => Sorting::None,
        1..3 => Sorting::ByName,
        _ => Sorting::Default,
    }
}

fn target(rng: &mut Rng) -> String {
    if rng.bool() { String::new() } else { words::type_(rng) }
}

fn fallback(rng: &mut Rng) -> Option<Fallback> {
    percent(rng, 40).then(|| Fallback {
        status: words::status(rng),
        reason: words::reason(rng),
        message: words::message(rng),
    })
}
