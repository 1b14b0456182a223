//! The order of a merged list: what the patch names comes in the patch's order, the rest keeps the server's, and
//! something only the server has stays in front of what it was in front of.

use serde_json::Value;

/// Puts `merged` in order. Items are identified by `key`, or by value where there is none.
pub(super) fn arrange(merged: Vec<Value>, patch: &[Value], server: &[Value], key: Option<&str>) -> Vec<Value> {
    let identity = |item: &Value| key.map_or_else(|| Some(item.clone()), |key| item.get(key).cloned());
    let place = |list: &[Value], item: &Value| {
        let expected = identity(item);
        list.iter().position(|other| identity(other) == expected)
    };
    let (mut named, mut rest): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(patch, item).is_some());
    named.sort_by_key(|item| place(patch, item));
    rest.sort_by_key(|item| place(server, item).unwrap_or(usize::MAX));
    let mut sorted = Vec::with_capacity(named.len() + rest.len());
    let (mut named, mut rest) = (named.into_iter().peekable(), rest.into_iter().peekable());
    loop {
        let server_first = match (rest.peek(), named.peek()) {
            (None, None) => return sorted,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(left), Some(right)) => match (place(server, left), place(server, right)) {
                (Some(left), Some(right)) => left < right,
                _ => false,
            },
        };
        sorted.extend(if server_first { rest.next() } else { named.next() });
    }
}
