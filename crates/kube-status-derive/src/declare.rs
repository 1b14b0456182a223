//! `#[derive(ConditionType)]` and `#[derive(Reason)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Expr, ExprLit, Fields, Ident, Lit, LitStr, Meta, Path, Result, Token};
use syn::{Variant, parenthesized};

/// What a variant says of itself.
struct Named<'v> {
    variant: &'v Variant,
    name: String,
    doc: String,
}

pub(crate) fn condition_type(input: &DeriveInput) -> Result<TokenStream> {
    let mut reasons: Option<Path> = None;
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("condition")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("reasons") {
                return Err(meta.error("expected `reasons = MyReason`"));
            }
            reasons = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    let reason_type = reasons
        .as_ref()
        .map_or_else(|| quote!(::kube_status::NoReason), |path| quote!(#path));
    let mut declared = Vec::new();
    let mut polarities = Vec::new();
    let mut lists = Vec::new();
    for variant in variants(input)? {
        let mut one = named_variant(variant)?;
        let (mut negative, mut list) = (false, Vec::<Ident>::new());
        for attribute in variant.attrs.iter().filter(|a| a.path().is_ident("condition")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("negative") {
                    negative = true;
                } else if meta.path.is_ident("name") {
                    one.name = condition_name(&meta.value()?.parse()?)?;
                } else if meta.path.is_ident("reasons") {
                    let content;
                    parenthesized!(content in meta.input);
                    list = Punctuated::<Ident, Token![,]>::parse_terminated(&content)?
                        .into_iter()
                        .collect();
                } else {
                    return Err(meta.error("expected `negative`, `name` or `reasons(...)`"));
                }
                Ok(())
            })?;
        }
        if let (Some(first), None) = (list.first(), &reasons) {
            let help = "which enum? say #[condition(reasons = MyReason)] on this one";
            return Err(Error::new(first.span(), help));
        }
        let polarity = if negative { quote!(Negative) } else { quote!(Positive) };
        polarities.push(quote!(::kube_status::Polarity::#polarity));
        lists.push(quote!(&[#(#reason_type::#list),*]));
        declared.push(one);
    }
    let common = common(input, &declared)?;
    let (ident, idents) = (&input.ident, idents(&declared));
    let (names, docs) = (texts(&declared, |n| &n.name), texts(&declared, |n| &n.doc));
    Ok(quote! {
        #common

        #[automatically_derived]
        impl ::kube_status::ConditionType for #ident {
            type Reason = #reason_type;
            const ALL: &'static [Self] = &[#(Self::#idents),*];
            fn name(self) -> &'static str {
                match self { #(Self::#idents => #names),* }
            }
            fn polarity(self) -> ::kube_status::Polarity {
                match self { #(Self::#idents => #polarities),* }
            }
            fn doc(self) -> &'static str {
                match self { #(Self::#idents => #docs),* }
            }
            fn reasons(self) -> &'static [#reason_type] {
                match self { #(Self::#idents => #lists),* }
            }
        }

        #[automatically_derived]
        impl<'a> ::kube_status::Typed<'a> for #ident {
            fn into_parts(self) -> (::std::borrow::Cow<'a, str>, ::kube_status::Polarity) {
                let polarity = ::kube_status::ConditionType::polarity(self);
                (::std::borrow::Cow::Borrowed(::kube_status::ConditionType::name(self)), polarity)
            }
        }
    })
}

pub(crate) fn reason(input: &DeriveInput) -> Result<TokenStream> {
    let mut declared = Vec::new();
    let mut severities = Vec::new();
    let mut durations = Vec::new();
    for variant in variants(input)? {
        let mut one = named_variant(variant)?;
        let (mut severity, mut expected) = (None::<Ident>, None::<LitStr>);
        for attribute in variant.attrs.iter().filter(|a| a.path().is_ident("reason")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("severity") {
                    severity = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("expected") {
                    expected = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("name") {
                    one.name = reason_name(&meta.value()?.parse()?)?;
                } else {
                    return Err(meta.error("expected `severity`, `expected` or `name`"));
                }
                Ok(())
            })?;
        }
        if let Some(duration) = &expected
            && severity.as_ref().is_none_or(|s| s != "Info")
        {
            let help = "`expected` raises an Info to a Warning: it needs `severity = Info`";
            return Err(Error::new(duration.span(), help));
        }
        severities.push(severity.map_or_else(
            || quote!(::std::option::Option::None),
            |word| quote!(::std::option::Option::Some(::kube_status::severity::Severity::#word)),
        ));
        durations.push(match expected {
            None => quote!(::std::option::Option::None),
            Some(text) => {
                let seconds = seconds(&text)?;
                quote!(::std::option::Option::Some(::kube_status::SignedDuration::from_secs(#seconds)))
            }
        });
        declared.push(one);
    }
    let common = common(input, &declared)?;
    let (ident, idents) = (&input.ident, idents(&declared));
    let (names, docs) = (texts(&declared, |n| &n.name), texts(&declared, |n| &n.doc));
    Ok(quote! {
        #common

        #[automatically_derived]
        impl ::kube_status::Reason for #ident {
            const ALL: &'static [Self] = &[#(Self::#idents),*];
            fn name(self) -> &'static str {
                match self { #(Self::#idents => #names),* }
            }
            fn severity(self) -> ::std::option::Option<::kube_status::severity::Severity> {
                match self { #(Self::#idents => #severities),* }
            }
            fn expected(self) -> ::std::option::Option<::kube_status::SignedDuration> {
                match self { #(Self::#idents => #durations),* }
            }
            fn doc(self) -> &'static str {
                match self { #(Self::#idents => #docs),* }
            }
        }
    })
}

/// What both kinds of enum can do: be a string.
fn common(input: &DeriveInput, declared: &[Named<'_>]) -> Result<TokenStream> {
    for (i, one) in declared.iter().enumerate() {
        if declared[..i].iter().any(|earlier| earlier.name == one.name) {
            return Err(Error::new(
                one.variant.span(),
                format!("{:?} is declared twice", one.name),
            ));
        }
    }
    let (ident, idents, names) = (&input.ident, idents(declared), texts(declared, |n| &n.name));
    Ok(quote! {
        #[automatically_derived]
        impl ::std::convert::AsRef<str> for #ident {
            fn as_ref(&self) -> &str {
                match self { #(Self::#idents => #names),* }
            }
        }

        #[automatically_derived]
        impl ::std::fmt::Display for #ident {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_ref())
            }
        }

        #[automatically_derived]
        impl<'a> ::std::convert::From<#ident> for ::std::borrow::Cow<'a, str> {
            fn from(value: #ident) -> Self {
                ::std::borrow::Cow::Borrowed(match value { #(#ident::#idents => #names),* })
            }
        }

        #[automatically_derived]
        impl ::std::convert::From<#ident> for ::std::string::String {
            fn from(value: #ident) -> Self {
                value.as_ref().to_owned()
            }
        }
    })
}

fn idents<'v>(declared: &[Named<'v>]) -> Vec<&'v Ident> {
    declared.iter().map(|n| &n.variant.ident).collect()
}

fn texts<'n>(declared: &'n [Named<'_>], pick: impl Fn(&'n Named<'_>) -> &'n str) -> Vec<&'n str> {
    declared.iter().map(pick).collect()
}

fn variants(input: &DeriveInput) -> Result<Vec<&Variant>> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(
            input.span(),
            "a declaration is an enum, one variant for each name",
        ));
    };
    let with_fields = data.variants.iter().find(|v| !matches!(v.fields, Fields::Unit));
    match with_fields {
        Some(variant) => Err(Error::new(variant.span(), "a declared name carries no fields")),
        None if data.variants.is_empty() => Err(Error::new(input.span(), "a declaration of nothing")),
        None => Ok(data.variants.iter().collect()),
    }
}

/// A name that is not documented cannot be looked up by those who read it, so it does not compile.
fn named_variant(variant: &Variant) -> Result<Named<'_>> {
    let doc = doc(&variant.attrs);
    if doc.is_empty() {
        let help = "say in a doc comment what it means: the documentation is made from it";
        return Err(Error::new(variant.span(), help));
    }
    Ok(Named {
        variant,
        name: variant.ident.to_string(),
        doc,
    })
}

fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text), ..
            }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// The API's pattern for a type: an optional DNS prefix, then letters, digits, `-`, `_` and `.`.
fn condition_name(text: &LitStr) -> Result<String> {
    let name = text.value();
    let word = name.rsplit_once('/').map_or(name.as_str(), |(_, word)| word);
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if word.chars().all(fits) && ends(word.chars().next()) && ends(word.chars().last()) {
        Ok(name)
    } else {
        Err(Error::new(
            text.span(),
            "the API refuses this condition type: letters, digits, '-', '_' and '.'",
        ))
    }
}

/// The API's pattern for a reason.
fn reason_name(text: &LitStr) -> Result<String> {
    let name = text.value();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':');
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    let last = name
        .chars()
        .last()
        .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    if first && last && name.chars().all(fits) {
        Ok(name)
    } else {
        Err(Error::new(
            text.span(),
            "the API refuses this reason: a letter, then letters, digits, '_', ',' and ':'",
        ))
    }
}

/// `90s`, `10m`, `2h`, `1d`.
fn seconds(text: &LitStr) -> Result<i64> {
    let value = text.value();
    let help = || Error::new(text.span(), "a duration is a number and one of s, m, h, d: \"10m\"");
    let unit = match value.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 86_400,
        _ => return Err(help()),
    };
    let number: i64 = value[..value.len() - 1].parse().map_err(|_| help())?;
    number.checked_mul(unit).filter(|s| *s > 0).ok_or_else(help)
}
