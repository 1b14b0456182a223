//! The JSON paths of CRDs' columns: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `.items[0].x`.

use serde_json::Value;

/// All values a path finds. A path that is not well formed finds nothing.
pub fn find<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    let path = path
        .trim()
        .trim_start_matches('{')
        .trim_end_matches('}')
        .trim_start_matches('$');
    let Some(steps) = parse(path) else {
        return Vec::new();
    };
    let mut found = vec![object];
    for step in &steps {
        found = found.into_iter().flat_map(|value| take(value, step)).collect();
    }
    found
}

/// The first value a path finds.
pub fn first<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    find(object, path).into_iter().next()
}

enum Step {
    Field(String),
    Index(i64),
    All,
    Filter(Vec<Step>, Test, Value),
    Exists(Vec<Step>),
}

#[derive(Clone, Copy)]
enum Test {
    Equal,
    NotEqual,
    Less,
    Greater,
}

fn take<'a>(value: &'a Value, step: &Step) -> Vec<&'a Value> {
    let items = || value.as_array().map(Vec::as_slice).unwrap_or_default();
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(index) => {
            let place = if *index < 0 {
                index + i64::try_from(items().len()).unwrap_or(0)
            } else {
                *index
            };
            usize::try_from(place)
                .ok()
                .and_then(|place| items().get(place))
                .into_iter()
                .collect()
        }
        Step::All => match value {
            Value::Object(map) => map.values().collect(),
            _ => items().iter().collect(),
        },
        Step::Filter(path, test, expected) => items()
            .iter()
            .filter(|item| matches(item, path, *test, expected))
            .collect(),
        Step::Exists(path) => items().iter().filter(|item| !walk(item, path).is_empty()).collect(),
    }
}

fn walk<'a>(value: &'a Value, path: &[Step]) -> Vec<&'a Value> {
    path.iter().fold(vec![value], |found, step| {
        found.into_iter().flat_map(|v| take(v, step)).collect()
    })
}

fn matches(item: &Value, path: &[Step], test: Test, expected: &Value) -> bool {
    walk(item, path).into_iter().any(|value| match test {
        Test::Equal => value == expected,
        Test::NotEqual => value != expected,
        Test::Less => value.as_f64() < expected.as_f64(),
        Test::Greater => value.as_f64() > expected.as_f64(),
    })
}

fn parse(path: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let end = closing(inner)?;
            steps.push(bracket(&inner[..end])?);
            rest = &inner[end + 1..];
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let mut name = String::new();
        let mut chars = rest.char_indices();
        let mut end = rest.len();
        while let Some((place, c)) = chars.next() {
            match c {
                '\\' => name.extend(chars.next().map(|(_, c)| c)),
                '.' | '[' => {
                    end = place;
                    break;
                }
                c => name.push(c),
            }
        }
        rest = &rest[end..];
        match name.as_str() {
            "" if rest.is_empty() => {}
            "" if rest.starts_with('[') => {}
            "" => return None,
            "*" => steps.push(Step::All),
            _ => steps.push(Step::Field(name)),
        }
    }
    Some(steps)
}

/// The place of the bracket that closes, quotes apart.
fn closing(text: &str) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0);
    for (place, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(place),
            (None, ']') => depth -= 1,
            (Some(_) | None, _) => {}
        }
    }
    None
}

fn bracket(text: &str) -> Option<Step> {
    let text = text.trim();
    if text == "*" {
        return Some(Step::All);
    }
    if let Ok(index) = text.parse() {
        return Some(Step::Index(index));
    }
    if let Some(quoted) = unquote(text) {
        return Some(Step::Field(quoted));
    }
    let filter = text.strip_prefix("?(")?.strip_suffix(')')?;
    let tests = [
        ("==", Test::Equal),
        ("!=", Test::NotEqual),
        ("<", Test::Less),
        (">", Test::Greater),
    ];
    for (sign, test) in tests {
        if let Some((left, right)) = filter.split_once(sign) {
            let path = parse(left.trim().strip_prefix('@')?)?;
            let right = right.trim();
            let expected = unquote(right)
                .map(Value::String)
                .or_else(|| serde_json::from_str(right).ok())?;
            return Some(Step::Filter(path, test, expected));
        }
    }
    Some(Step::Exists(parse(filter.trim().strip_prefix('@')?)?))
}

fn unquote(text: &str) -> Option<String> {
    ['\'', '"'].iter().find_map(|quote| {
        let inner = text.strip_prefix(*quote)?.strip_suffix(*quote)?;
        Some(inner.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_find_what_they_name() {
        let object = json!({"spec": {"n": 3, "a.b": 1, "list": [{"x": 1, "t": "A"}, {"x": 2, "t": "B"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]}});
        for (path, expected) in [
            (".spec.n", json!([3])),
            ("{.spec.n}", json!([3])),
            (".spec.a\\.b", json!([1])),
            (".spec['a.b']", json!([1])),
            (".spec.list[0].x", json!([1])),
            (".spec.list[-1].x", json!([2])),
            (".spec.list[*].x", json!([1, 2])),
            (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
            (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
            (".spec.list[?(@.x>1)].t", json!(["B"])),
            (".none.at.all", json!([])),
            (".spec.list[", json!([])),
        ] {
            assert_eq!(json!(find(&object, path)), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(path in ".{0,30}") {
            let _ = find(&json!({"a": [{"b": 1}]}), &path);
        }
    }
}
