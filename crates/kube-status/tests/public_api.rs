//! The public API, read from the sources: every item has an example, and a change of it shows in a snapshot, so that no
//! change that breaks a caller goes unnoticed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, UseTree, Visibility};

/// A module of the crate with what stands in it.
struct Module {
    path: Vec<String>,
    items: Vec<Item>,
    children: BTreeMap<String, (bool, Module)>,
}

impl Module {
    fn load(file: &Path, folder: &Path, path: Vec<String>) -> Self {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let items = syn::parse_file(&text).expect("the crate compiles").items;
        let mut children = BTreeMap::new();
        for item in &items {
            let Item::Mod(module) = item else { continue };
            if module.content.is_some() {
                continue;
            }
            let name = module.ident.to_string();
            let (flat, nested) = (folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs"));
            let file = if flat.exists() { flat } else { nested };
            let below = path.iter().cloned().chain([name.clone()]).collect();
            let child = Self::load(&file, &folder.join(&name), below);
            children.insert(name, (is_public(&module.vis), child));
        }
        Self { path, items, children }
    }

    fn every<'m>(&'m self, out: &mut Vec<&'m Self>) {
        out.push(self);
        self.children.values().for_each(|(_, child)| child.every(out));
    }
}

/// One line of the API.
struct Entry {
    text: String,
    /// Whether it needs an example and has none.
    bare: bool,
}

#[derive(Default)]
struct Api {
    entries: BTreeMap<String, Entry>,
}

impl Api {
    fn add(&mut self, key: String, text: String, bare: bool) {
        self.entries.insert(key, Entry { text, bare });
    }

    fn visit(&mut self, module: &Module, public: &str) {
        for item in &module.items {
            match item {
                Item::Use(used) if is_public(&used.vis) => self.used(module, public, &used.tree, Vec::new()),
                other => self.item(other, public, None),
            }
        }
        for (name, (is_public, child)) in &module.children {
            if *is_public {
                self.visit(child, &format!("{public}::{name}"));
            }
        }
    }

    /// What `pub use` brings: from a module of this crate the item itself, from elsewhere its name.
    fn used(&mut self, module: &Module, public: &str, tree: &UseTree, mut way: Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                way.push(path.ident.to_string());
                self.used(module, public, &path.tree, way);
            }
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|one| self.used(module, public, one, way.clone())),
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                let found = way
                    .iter()
                    .try_fold(module, |at, step| at.children.get(step).map(|(_, m)| m));
                let Some(from) = found else {
                    let key = format!("{public}::{name} (from {})", way.join("::"));
                    self.add(key.clone(), format!("use {key}"), false);
                    return;
                };
                for item in &from.items {
                    match item {
                        Item::Use(deeper) if is_public(&deeper.vis) => self.narrowed(from, public, &deeper.tree, &name),
                        other => self.item(other, public, Some(&name)),
                    }
                }
            }
            UseTree::Rename(_) | UseTree::Glob(_) => panic!("this test knows no renamed or glob exports"),
        }
    }

    /// One name of a re-export of a re-export.
    fn narrowed(&mut self, module: &Module, public: &str, tree: &UseTree, name: &str) {
        let mut all = Self::default();
        all.used(module, public, tree, Vec::new());
        let expected = format!("{public}::{name}");
        self.entries
            .extend(all.entries.into_iter().filter(|(key, _)| *key == expected));
    }

    fn item(&mut self, item: &Item, public: &str, only: Option<&str>) {
        let (vis, ident, attrs, text) = match item {
            Item::Fn(f) => (&f.vis, &f.sig.ident, &f.attrs, tidy(&f.sig)),
            Item::Const(c) => (
                &c.vis,
                &c.ident,
                &c.attrs,
                format!("const {}: {}", c.ident, tidy(&c.ty)),
            ),
            Item::Type(t) => (
                &t.vis,
                &t.ident,
                &t.attrs,
                format!("type {} = {}", t.ident, tidy(&t.ty)),
            ),
            Item::Struct(s) => {
                let text = format!("struct {}{}{}", s.ident, tidy(&s.generics), fields(&s.fields));
                (&s.vis, &s.ident, &s.attrs, text)
            }
            Item::Enum(e) => {
                let variants: Vec<String> = e
                    .variants
                    .iter()
                    .map(|v| format!("{}{}", v.ident, tidy(&v.fields.to_token_stream())))
                    .collect();
                let text = format!("enum {}{} {{ {} }}", e.ident, tidy(&e.generics), variants.join(", "));
                (&e.vis, &e.ident, &e.attrs, strip_docs(&text))
            }
            Item::Trait(t) => {
                let shown = t.items.iter().filter_map(|item| match item {
                    TraitItem::Fn(f) if !is_hidden(&f.attrs) => Some(tidy(&f.sig)),
                    TraitItem::Const(c) => Some(format!("const {}: {}", c.ident, tidy(&c.ty))),
                    TraitItem::Type(t) => Some(format!("type {}: {}", t.ident, tidy(&t.bounds))),
                    _ => None,
                });
                let shown: Vec<String> = shown.collect();
                let (name, above) = (&t.ident, tidy(&t.supertraits));
                let text = format!("trait {name}{}: {above} {{ {} }}", tidy(&t.generics), shown.join("; "));
                (&t.vis, &t.ident, &t.attrs, text)
            }
            _ => return,
        };
        if !is_public(vis) || only.is_some_and(|only| ident != only) {
            return;
        }
        let key = format!("{public}::{ident}");
        self.add(
            key.clone(),
            format!("{key}: {text}{}", derives(attrs)),
            !has_example(attrs),
        );
    }

    /// The public methods of public types, and the traits these implement.
    fn implementations(&mut self, module: &Module) {
        for item in &module.items {
            let Item::Impl(block) = item else { continue };
            let Some(owner) = self.owner(&module.path, &tidy(&block.self_ty)) else {
                continue;
            };
            if let Some((_, path, _)) = &block.trait_ {
                let text = format!("{owner}: impl {}", tidy(path));
                self.add(format!("{owner} impl {}", tidy(path)), text, false);
                continue;
            }
            for item in &block.items {
                let (vis, ident, attrs, text) = match item {
                    ImplItem::Fn(f) => (&f.vis, &f.sig.ident, &f.attrs, tidy(&f.sig)),
                    ImplItem::Const(c) => (
                        &c.vis,
                        &c.ident,
                        &c.attrs,
                        format!("const {}: {}", c.ident, tidy(&c.ty)),
                    ),
                    _ => continue,
                };
                if is_public(vis) {
                    let key = format!("{owner}::{ident}");
                    self.add(key, format!("{owner}: {text}"), !has_example(attrs));
                }
            }
        }
    }

    /// The public path of a type that an `impl` names. Both generations have a `Summary`: the way to it decides.
    fn owner(&self, module: &[String], named: &str) -> Option<String> {
        let plain = named.split('<').next().unwrap_or_default();
        let name = plain.rsplit("::").next().unwrap_or_default();
        let first = plain.contains("severity") || module.iter().any(|step| step == "severity");
        let ends = format!("::{name}");
        let known = self.entries.iter().filter(|(key, entry)| {
            let is_type = [": struct ", ": enum "].iter().any(|kind| entry.text.contains(kind));
            is_type && key.ends_with(&ends)
        });
        let mut known: Vec<&String> = known.map(|(key, _)| key).collect();
        if known.len() > 1 {
            known.retain(|key| key.contains("::severity::") == first);
        }
        assert!(known.len() < 2, "{named} in {module:?} may be any of {known:?}");
        known.first().map(ToString::to_string)
    }
}

fn is_public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

fn docs(attrs: &[Attribute]) -> impl Iterator<Item = String> {
    attrs
        .iter()
        .filter(|a| a.path().is_ident("doc"))
        .map(|a| a.to_token_stream().to_string())
}

fn has_example(attrs: &[Attribute]) -> bool {
    docs(attrs).any(|line| line.contains("```"))
}

fn is_hidden(attrs: &[Attribute]) -> bool {
    docs(attrs).any(|line| line.contains("hidden"))
}

fn derives(attrs: &[Attribute]) -> String {
    let derives = attrs.iter().filter(|a| a.path().is_ident("derive"));
    derives.fold(String::new(), |all, one| all + " " + &tidy(&one.meta))
}

/// The fields a caller can see, and whether there are others.
fn fields(fields: &Fields) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut hidden = false;
    for field in fields {
        if is_public(&field.vis) {
            let name = field
                .ident
                .as_ref()
                .map(|ident| format!("{ident}: "))
                .unwrap_or_default();
            shown.push(format!("{name}{}", tidy(&field.ty)));
        } else {
            hidden = true;
        }
    }
    if hidden {
        shown.push("..".to_owned());
    }
    format!(" {{ {} }}", shown.join(", "))
}

/// Tokens as a person would set them.
fn tidy(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (spaced, tight) in [
        (" < ", "<"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" :: ", "::"),
        (":: ", "::"),
        (" ,", ","),
        (" :", ":"),
        ("& ", "&"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        ("? Sized", "?Sized"),
        ("[ ", "["),
        (" ]", "]"),
        (",)", ")"),
        (", >", ">"),
        (" ;", ";"),
    ] {
        text = text.replace(spaced, tight);
    }
    text.replace("->", " -> ").replace("  ", " ")
}

/// The doc comments of variants' fields, which are no part of the API.
fn strip_docs(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("# [doc = \"").or_else(|| rest.split_once("#[doc = \"")) {
        out.push_str(before);
        rest = after.split_once("\"]").map_or("", |(_, rest)| rest.trim_start());
    }
    out + rest
}

fn api() -> Api {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let root = Module::load(&source.join("lib.rs"), &source, Vec::new());
    let mut api = Api::default();
    api.visit(&root, "kube_status");
    let mut modules = Vec::new();
    root.every(&mut modules);
    for module in modules {
        api.implementations(module);
    }
    api
}

#[test]
fn every_public_item_has_an_example() {
    let api = api();
    assert!(
        api.entries.len() > 300,
        "the test no longer finds the API: {} items",
        api.entries.len()
    );
    let bare: Vec<&String> = api.entries.iter().filter(|(_, e)| e.bare).map(|(key, _)| key).collect();
    assert!(bare.is_empty(), "without an example: {bare:#?}");
}

#[test]
fn the_public_api_is_the_reviewed_one() {
    let mut text = String::new();
    for entry in api().entries.values() {
        let _ = writeln!(text, "{}", entry.text);
    }
    insta::assert_snapshot!("public_api", text);
}
