//! `x-kubernetes-validations`: CEL rules of a CRD, their messages, and where they point.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube_cel::KubeCelExt;
use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::{Value, json};

use super::cel_values::to_cel;
use super::correlate;
use super::node::{Link, Node};
use crate::status::Cause;
use crate::validation::field;

/// One rule with what it says when it does not hold.
#[derive(Debug)]
pub struct Rule {
    /// The CEL expression.
    pub rule: String,
    /// Set where the expression could not be compiled.
    pub compile_error: Option<String>,
    program: Option<Program>,
    message: String,
    message_program: Option<Program>,
    reason: String,
    field_path: String,
    uses_old_self: bool,
    optional_old_self: bool,
}

thread_local! {
    /// Registering the functions is far dearer than running a rule.
    static FUNCTIONS: RefCell<Context<'static>> = RefCell::new(functions());
}

/// All functions of the real server that our libraries have, and `type(x) == int`, which they do not.
fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("type", |value: Cel| type_name(&value).to_owned());
    for name in [
        "int",
        "uint",
        "double",
        "bool",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
    ] {
        context.add_variable_from_value(name, name.to_owned());
    }
    context
}

fn type_name(value: &Cel) -> &'static str {
    match value {
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::Bool(_) => "bool",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        Cel::Null => "null_type",
        _ => "dyn",
    }
}

impl Rule {
    /// Reads one entry of `x-kubernetes-validations`.
    pub fn parse(entry: &Value) -> Self {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().trim().to_owned();
        let rule = text("rule");
        let (program, compile_error) = match compile(&rule) {
            Ok(program) => (Some(program), None),
            Err(error) => (None, Some(error)),
        };
        let uses_old_self = program.as_ref().is_some_and(|p| p.references().has_variable("oldSelf"));
        Self {
            program,
            compile_error,
            message: text("message"),
            message_program: entry["messageExpression"]
                .as_str()
                .and_then(|source| compile(source).ok()),
            reason: text("reason"),
            field_path: text("fieldPath"),
            uses_old_self,
            optional_old_self: entry["optionalOldSelf"].as_bool().unwrap_or(false),
            rule,
        }
    }

    /// The error where the rule does not hold for `value`.
    fn check(&self, node: &Node, value: &Cel, old: Option<&Cel>, path: &str) -> Option<Cause> {
        if self.uses_old_self && old.is_none() && !self.optional_old_self {
            return None;
        }
        let kind = json!(node.kind.word());
        let path = if path.is_empty() { "<nil>" } else { path };
        if let Some(error) = &self.compile_error {
            return Some(field::invalid(path, &kind, &format!("rule compile error: {error}")));
        }
        let program = self.program.as_ref()?;
        let outcome = self.run(program, value, old);
        match outcome {
            Ok(Cel::Bool(true)) => None,
            Ok(_) => {
                let message = self
                    .message_program
                    .as_ref()
                    .and_then(|p| match self.run(p, value, old) {
                        Ok(Cel::String(text)) => {
                            Some(text.trim().to_owned()).filter(|t| !t.is_empty() && !t.contains('\n'))
                        }
                        _ => None,
                    });
                let message = message.unwrap_or_else(|| {
                    if self.message.is_empty() {
                        format!("failed rule: {}", self.rule)
                    } else {
                        self.message.clone()
                    }
                });
                let target = self.field_path.trim_start_matches('.');
                let at = match (target, path) {
                    ("", path) => path.to_owned(),
                    (target, "<nil>") => target.to_owned(),
                    (target, path) => field::child(path, target),
                };
                Some(self.cause(&at, &kind, &message))
            }
            Err(error) => {
                let shown = if self.message.is_empty() {
                    &self.rule
                } else {
                    &self.message
                };
                Some(field::invalid(
                    path,
                    &kind,
                    &format!("{error} evaluating rule: {shown}"),
                ))
            }
        }
    }

    fn run(&self, program: &Program, value: &Cel, old: Option<&Cel>) -> Result<Cel, String> {
        FUNCTIONS.with_borrow(|functions| {
            let mut context = functions.new_inner_scope();
            context.add_variable_from_value("self", value.clone());
            if self.optional_old_self {
                let optional = old.map_or_else(OptionalValue::none, |old| OptionalValue::of(old.clone()));
                context.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(optional)));
            } else if let Some(old) = old {
                context.add_variable_from_value("oldSelf", old.clone());
            }
            let run = catch_unwind(AssertUnwindSafe(|| program.execute(&context)));
            match run {
                Ok(Ok(value)) => Ok(value),
                Ok(Err(error)) => Err(lower_first(&error.to_string())),
                Err(_) => Err("internal error".to_owned()),
            }
        })
    }

    fn cause(&self, path: &str, kind: &Value, message: &str) -> Cause {
        match self.reason.as_str() {
            "FieldValueForbidden" => field::forbidden(path, message),
            "FieldValueRequired" => field::required(path, message),
            "FieldValueDuplicate" => {
                let mut cause = field::duplicate(path, kind);
                cause.message = format!("{}: {message}", cause.message);
                cause
            }
            _ => field::invalid(path, kind, message),
        }
    }
}

/// Compiles an expression; the parser's own panics become errors.
pub(super) fn compile(source: &str) -> Result<Program, String> {
    let compiled = catch_unwind(AssertUnwindSafe(|| Program::compile(source)));
    match compiled {
        Ok(Ok(program)) => Ok(program),
        Ok(Err(error)) => Err(format!("compilation failed: {error}")),
        Err(_) => Err("compilation failed: the expression could not be parsed".to_owned()),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// Runs the rules of every node below `value`. A rule that does not look at the past is not run again on what has
/// not changed.
pub(super) fn check(node: &Node, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<Cause>) {
    if value.is_null() {
        return;
    }
    let old = old.filter(|old| !old.is_null());
    let rules = node
        .limits
        .as_ref()
        .map(|limits| limits.rules.as_slice())
        .unwrap_or_default();
    if !rules.is_empty() {
        let unchanged = old == Some(value);
        let (new, past) = (to_cel(node, value), old.map(|old| to_cel(node, old)));
        for rule in rules {
            if unchanged && !rule.uses_old_self {
                continue;
            }
            errors.extend(rule.check(node, &new, past.as_ref(), path));
        }
    }
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let old = old.and_then(|old| old.get(key));
                if let Some(child) = node.properties.get(key.as_str()) {
                    check(child.node(), inner, old, &field::child(path, key), errors);
                } else if let Some(child) = node.additional.as_ref().map(Link::node) {
                    check(child, inner, old, &format!("{path}[{key}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = node.item() else { return };
            for (index, inner) in items.iter().enumerate() {
                let old = correlate::item(node, inner, old);
                check(child, inner, old, &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
}
