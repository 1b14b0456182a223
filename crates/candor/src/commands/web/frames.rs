//! What stands around the lists of the pages: forms and headings, which do not change by themselves.

use maud::{Markup, html};

use super::fleet::Filter;

/// The page of all clusters.
pub fn fleet(filter: &Filter, namespaces: &[String], lists: &Markup) -> Markup {
    html! {
        div class="head" {
            h1 { "Clusters" }
            form id="filter" method="get" action="/" class="inline" role="search" {
                label for="namespace" { "Namespace" }
                select id="namespace" name="namespace" {
                    option value="" { "all" }
                    @for one in namespaces {
                        option value=(one) selected[filter.namespace.as_ref() == Some(one)] { (one) }
                    }
                }
                label for="q" { "Text" }
                input id="q" name="q" type="search" value=(filter.text) placeholder="name, state, reason";
                button { "Filter" }
            }
        }
        (lists)
    }
}
