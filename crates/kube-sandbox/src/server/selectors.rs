//! Label and field selectors.

use serde_json::Value;

use crate::status::ApiError;

/// One requirement on a label or a field.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    Greater(String, i64),
    Less(String, i64),
}

/// A label selector; empty selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (f,g),h,!i`.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        parse_labels(text).map(Self).map_err(ApiError::bad_request)
    }

    /// Whether the selector selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the object's labels match.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.0
            .iter()
            .all(|r| holds(r, |key| labels.get(key).and_then(Value::as_str)))
    }
}

/// Absent labels satisfy `!=` and `notin`, as in the real selectors.
fn holds<'a>(requirement: &Requirement, get: impl Fn(&str) -> Option<&'a str>) -> bool {
    let number = |key: &str| get(key).and_then(|v| v.parse::<i64>().ok());
    match requirement {
        Requirement::In(key, values) => get(key).is_some_and(|v| values.iter().any(|w| w == v)),
        Requirement::NotIn(key, values) => get(key).is_none_or(|v| values.iter().all(|w| w != v)),
        Requirement::Exists(key) => get(key).is_some(),
        Requirement::Absent(key) => get(key).is_none(),
        Requirement::Greater(key, than) => number(key).is_some_and(|v| v > *than),
        Requirement::Less(key, than) => number(key).is_some_and(|v| v < *than),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Identifier(String),
    Symbol(&'static str),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Identifier(w) => w,
            Self::Symbol(s) => s,
            Self::End => "",
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c.is_ascii_whitespace() {
            rest = &rest[1..];
            continue;
        }
        let symbol = ["==", "!=", "=", "!", "(", ")", ",", "<", ">"]
            .into_iter()
            .find(|s| rest.starts_with(s));
        if let Some(symbol) = symbol {
            out.push(Token::Symbol(symbol));
            rest = &rest[symbol.len()..];
            continue;
        }
        let end = rest
            .find(|c: char| c.is_ascii_whitespace() || "=!(),<>".contains(c))
            .unwrap_or(rest.len());
        out.push(Token::Identifier(rest[..end].to_owned()));
        rest = &rest[end..];
    }
    out.push(Token::End);
    out
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn value_list(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open != Token::Symbol("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Identifier(w) => {
                    values.push(w);
                    match self.next() {
                        Token::Symbol(",") => {
                            if *self.peek() == Token::Symbol(")") {
                                values.push(String::new());
                            }
                        }
                        Token::Symbol(")") => break,
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Symbol(",") => values.push(String::new()),
                Token::Symbol(")") => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    break;
                }
                other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }

    fn exact_value(&mut self) -> Result<String, String> {
        match self.peek().clone() {
            Token::End | Token::Symbol(",") => Ok(String::new()),
            Token::Identifier(w) => {
                self.at += 1;
                Ok(w)
            }
            other @ Token::Symbol(_) => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser {
        tokens: tokens(text),
        at: 0,
    };
    let mut out = Vec::new();
    loop {
        match parser.peek().clone() {
            Token::End => return Ok(out),
            Token::Symbol("!") | Token::Identifier(_) => {
                let parsed = requirement(&mut parser).map_err(|why| format!("unable to parse requirement: {why}"))?;
                out.push(parsed);
            }
            other @ Token::Symbol(_) => {
                return Err(format!(
                    "found '{}', expected: !, identifier, or 'end of string'",
                    other.text()
                ));
            }
        }
        match parser.next() {
            Token::End => return Ok(out),
            Token::Symbol(",") => {
                if !matches!(parser.peek(), Token::Identifier(_) | Token::Symbol("!")) {
                    return Err(format!(
                        "found '{}', expected: identifier after ','",
                        parser.peek().text()
                    ));
                }
            }
            other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
    }
}

fn requirement(parser: &mut Parser) -> Result<Requirement, String> {
    let negated = *parser.peek() == Token::Symbol("!");
    if negated {
        parser.at += 1;
    }
    let Token::Identifier(key) = parser.next() else {
        parser.at -= 1;
        return Err(format!("found '{}', expected: identifier", parser.peek().text()));
    };
    check_key(&key)?;
    if negated {
        return Ok(Requirement::Absent(key));
    }
    let parsed = match parser.peek().clone() {
        Token::End | Token::Symbol(",") => return Ok(Requirement::Exists(key)),
        Token::Symbol("=" | "==") => {
            parser.at += 1;
            Requirement::In(key, vec![parser.exact_value()?])
        }
        Token::Symbol("!=") => {
            parser.at += 1;
            Requirement::NotIn(key, vec![parser.exact_value()?])
        }
        Token::Symbol(symbol @ (">" | "<")) => {
            parser.at += 1;
            let text = parser.exact_value()?;
            let number = text.parse::<i64>().map_err(|_| {
                format!("values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer")
            })?;
            if symbol == ">" {
                Requirement::Greater(key, number)
            } else {
                Requirement::Less(key, number)
            }
        }
        Token::Identifier(word) if word == "in" => {
            parser.at += 1;
            Requirement::In(key, parser.value_list()?)
        }
        Token::Identifier(word) if word == "notin" => {
            parser.at += 1;
            Requirement::NotIn(key, parser.value_list()?)
        }
        other => {
            return Err(format!(
                "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                other.text()
            ));
        }
    };
    if let Requirement::In(key, values) | Requirement::NotIn(key, values) = &parsed {
        for (i, value) in values.iter().enumerate() {
            check_value(key, i, value)?;
        }
    }
    Ok(parsed)
}

fn is_name_part(text: &str) -> bool {
    let alnum = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let bytes = text.as_bytes();
    alnum(bytes.first().copied())
        && alnum(bytes.last().copied())
        && bytes.iter().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(c))
}

fn check_key(key: &str) -> Result<(), String> {
    const QUALIFIED: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
    const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    if key.matches('/').count() > 1 {
        return Err(format!("<nil>: Invalid value: {key:?}: {QUALIFIED}"));
    }
    let mut problems = Vec::new();
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name_part(name) {
        problems.push(NAME_PART.to_owned());
    }
    match problems.len() {
        0 => Ok(()),
        _ => Err(format!("<nil>: Invalid value: {key:?}: {}", problems.join("; "))),
    }
}

fn check_value(key: &str, index: usize, value: &str) -> Result<(), String> {
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push("must be no more than 63 bytes");
    }
    if !value.is_empty() && !is_name_part(value) {
        problems.push("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!(
        "values[{index}][{key}]: Invalid value: {value:?}: {}",
        problems.join("; ")
    ))
}

/// A field selector; empty selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<(String, bool, String)>);

impl FieldSelector {
    /// Reads `a.b=c,d!=e`. Which fields can be asked is the kind's matter: [`FieldSelector::fields`].
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let mut out = Vec::new();
        for term in split_terms(text) {
            if term.is_empty() {
                continue;
            }
            let found = ["!=", "==", "="]
                .iter()
                .filter_map(|op| term.find(op).map(|at| (at, *op)))
                .min_by_key(|(at, op)| (*at, std::cmp::Reverse(op.len())));
            let Some((at, op)) = found else {
                return Err(ApiError::bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{term}'"
                )));
            };
            let value = unescape(&term[at + op.len()..]).map_err(ApiError::bad_request)?;
            out.push((term[..at].to_owned(), op != "!=", value));
        }
        Ok(Self(out))
    }

    /// The same selector with its fields renamed.
    #[must_use]
    pub fn renamed(self, rename: impl Fn(&str) -> String) -> Self {
        let terms = self.0.into_iter();
        Self(
            terms
                .map(|(field, equal, value)| (rename(&field), equal, value))
                .collect(),
        )
    }

    /// The asked fields.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(field, _, _)| field.as_str())
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name that alone can match, if the selector says so.
    pub fn only_name(&self) -> Option<&str> {
        self.0
            .iter()
            .find(|(field, equal, _)| field == "metadata.name" && *equal)
            .map(|(_, _, value)| value.as_str())
    }

    /// Whether the object matches. A missing field is the empty string.
    pub fn matches(&self, object: &Value) -> bool {
        self.0
            .iter()
            .all(|(field, equal, expected)| (field_text(object, field) == *expected) == *equal)
    }
}

fn field_text(object: &Value, path: &str) -> String {
    let path = path.strip_prefix('.').unwrap_or(path);
    let mut at = object;
    for part in path.split('.') {
        match at.get(part) {
            Some(next) => at = next,
            None => {
                return if path == "spec.unschedulable" {
                    "false".into()
                } else {
                    String::new()
                };
            }
        }
    }
    match at {
        Value::String(s) => s.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                out.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(&text[start..]);
    out
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return Err(format!("invalid field selector: invalid escape sequence: \\{other}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".into()),
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {c}")),
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn label_selectors_follow_the_rules_of_kubernetes() {
        let pod = json!({"metadata": {"labels": {"app": "db", "tier": "back", "n": "7"}}});
        let table = [
            ("", true),
            ("app=db", true),
            ("app==db,tier!=front", true),
            ("missing!=x", true),
            ("app in (web, db)", true),
            ("app notin (web,db)", false),
            ("missing notin (a)", true),
            ("app", true),
            ("!app", false),
            ("!missing , app", true),
            ("n>6,n<8", true),
            ("n>7", false),
        ];
        for (selector, expected) in table {
            assert_eq!(
                LabelSelector::parse(selector).unwrap().matches(&pod),
                expected,
                "{selector}"
            );
        }
        for hostile in [
            "app in",
            "app in (",
            "=",
            ",",
            "a=b,",
            "a b",
            "((((",
            "a=\u{1f600}",
            "-=-",
            "a in (b c)",
        ] {
            assert_eq!(LabelSelector::parse(hostile).unwrap_err().code, 400, "{hostile}");
        }
    }

    #[test]
    fn field_selectors_compare_text_and_know_escapes() {
        let pod = json!({"metadata": {"name": "a,b"}, "spec": {"nodeName": "n1"}});
        for (selector, expected) in [
            ("spec.nodeName=n1", true),
            ("spec.nodeName!=n1", false),
            (r"metadata.name=a\,b", true),
            ("status.phase=", true),
            ("spec.nodeName==n1,status.phase!=Failed", true),
        ] {
            assert_eq!(
                FieldSelector::parse(selector).unwrap().matches(&pod),
                expected,
                "{selector}"
            );
        }
        assert!(FieldSelector::parse("nonsense").is_err());
        assert!(FieldSelector::parse(r"a=b\c").is_err());
    }
}
