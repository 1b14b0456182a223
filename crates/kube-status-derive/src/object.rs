//! `#[derive(Conditioned)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Expr, Fields, Ident, LitStr, Result, Type};

/// One implementation: where the list is and what is in it.
#[derive(Default)]
struct Options {
    kind: Option<LitStr>,
    path: Option<LitStr>,
    prominent: Option<LitStr>,
    conventions: Option<Expr>,
    list: List,
}

/// What the list holds.
#[derive(Default, Clone, Copy)]
enum List {
    #[default]
    Plain,
    Graded,
    Severity,
}

/// A step on the way to the list, and whether it may be absent.
struct Step {
    field: Ident,
    optional: bool,
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let mut options = Vec::new();
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("conditioned")) {
        let mut one = Options::default();
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("severity") {
                one.list = List::Severity;
            } else if meta.path.is_ident("graded") {
                one.list = List::Graded;
            } else if meta.path.is_ident("kind") {
                one.kind = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("path") {
                one.path = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("prominent") {
                one.prominent = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("conventions") {
                one.conventions = Some(meta.value()?.parse()?);
            } else {
                let known = "expected `kind`, `path`, `prominent`, `conventions`, `graded` or `severity`";
                return Err(meta.error(known));
            }
            Ok(())
        })?;
        options.push(one);
    }
    if options.is_empty() {
        options.push(Options::default());
    }
    share(&mut options, |one| &mut one.kind);
    share(&mut options, |one| &mut one.prominent);
    share(&mut options, |one| &mut one.conventions);
    options.iter().map(|one| implementation(input, one)).collect()
}

/// Options that are given once and apply to each list of the object.
fn share<T: Clone>(options: &mut [Options], pick: impl Fn(&mut Options) -> &mut Option<T>) {
    let given = options.iter_mut().find_map(|one| pick(one).clone());
    for one in options {
        let own = pick(one);
        *own = own.take().or_else(|| given.clone());
    }
}

fn implementation(input: &DeriveInput, options: &Options) -> Result<TokenStream> {
    let steps = steps(input, options)?;
    let (read, write) = walk(&steps);
    let name = &input.ident;
    let kind = options.kind.as_ref().map_or_else(|| name.to_string(), LitStr::value);
    let condition = match options.list {
        List::Plain => quote!(::kube_status::Condition),
        List::Graded => quote!(::kube_status::GradedCondition),
        List::Severity => quote!(::kube_status::severity::Condition),
    };
    let prominent = options.prominent.as_ref().map(|label| {
        quote! {
            fn is_prominent(&self) -> bool {
                self.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(#label))
            }
        }
    });
    let conventions = options.conventions.as_ref().map(|conventions| {
        quote! {
            fn conventions(&self) -> ::kube_status::Conventions {
                #conventions
            }
        }
    });
    let (generics, types, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::kube_status::Conditioned<#condition> for #name #types #bounds {
            fn kind(&self) -> &str {
                #kind
            }
            fn name(&self) -> &str {
                self.metadata.name.as_deref().unwrap_or_default()
            }
            fn generation(&self) -> i64 {
                self.metadata.generation.unwrap_or_default()
            }
            fn conditions(&self) -> &[#condition] {
                #read
            }
            #prominent
            #conventions
        }

        #[automatically_derived]
        impl #generics ::kube_status::ConditionedMut<#condition> for #name #types #bounds {
            fn conditions_mut(&mut self) -> &mut ::std::vec::Vec<#condition> {
                ::kube_status::ConditionField::as_list_mut(#write)
            }
        }
    })
}

fn steps(input: &DeriveInput, options: &Options) -> Result<Vec<Step>> {
    if let Some(path) = &options.path {
        return path.value().split('.').map(|part| step(part, path)).collect();
    }
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(
            input.span(),
            "Conditioned is derived for a struct with `metadata` and `status`",
        ));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new(
            input.span(),
            "Conditioned needs named fields: `metadata` and `status`",
        ));
    };
    let status = fields
        .named
        .iter()
        .find(|f| f.ident.as_ref().is_some_and(|i| i == "status"))
        .ok_or_else(|| {
            let help = "no field `status`; say where the conditions are: #[conditioned(path = \"state?.conditions\")]";
            Error::new(input.ident.span(), help)
        })?;
    let span = status.span();
    Ok(vec![
        Step {
            field: Ident::new("status", span),
            optional: is_option(&status.ty),
        },
        Step {
            field: Ident::new("conditions", span),
            optional: false,
        },
    ])
}

fn step(part: &str, path: &LitStr) -> Result<Step> {
    let (name, optional) = part.strip_suffix('?').map_or((part, false), |name| (name, true));
    let field = syn::parse_str::<Ident>(name).map_err(|_| {
        Error::new(
            path.span(),
            format!("{name:?} is not a field name; expected \"status?.conditions\""),
        )
    })?;
    Ok(Step {
        field: Ident::new(&field.to_string(), path.span()),
        optional,
    })
}

fn is_option(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path
        .segments
        .last()
        .is_some_and(|segment| segment.ident == "Option")
}

/// How to read the list, and how to reach it for writing. The last step's own shape is the field trait's business.
fn walk(steps: &[Step]) -> (TokenStream, TokenStream) {
    let Some((end, way)) = steps.split_last() else {
        return (quote!(&[]), quote!(compile_error!("an empty path")));
    };
    let list = &end.field;
    let mut read = quote!(::std::option::Option::Some(self));
    let mut write = quote!(self);
    for Step { field, optional } in way {
        if *optional {
            read = quote!(#read.and_then(|at| at.#field.as_ref()));
            write = quote!(#write.#field.get_or_insert_with(::std::default::Default::default));
        } else {
            read = quote!(#read.map(|at| &at.#field));
            write = quote!(#write.#field);
        }
    }
    let read = quote! {
        #read.map(|at| ::kube_status::ConditionField::as_list(&at.#list)).unwrap_or_default()
    };
    (read, quote!(&mut #write.#list))
}
