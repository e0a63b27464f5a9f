//! `plugin!`: what the plugin consists of, kind by kind, and the exports of the component.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, Path, Token};

/// The name under which a function is registered.
pub(crate) fn registered(function: &Ident) -> Ident {
    format_ident!("__millstream_{}", function.unraw())
}

/// The kinds, by the words before them.
const KINDS: [&str; 5] = ["functions", "aggregates", "processors", "sources", "migrations"];

/// One kind and what is of it: `aggregates: TopK, Mean`. Functions need no word.
struct Section {
    kind: Ident,
    paths: Punctuated<Path, Token![,]>,
}

impl Parse for Section {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let is_named = input.peek(Ident::peek_any) && input.peek2(Token![:]) && !input.peek2(Token![::]);
        let kind = match is_named {
            true => {
                let kind = input.call(Ident::parse_any)?;
                input.parse::<Token![:]>()?;
                kind
            }
            false => Ident::new(KINDS[0], Span::call_site()),
        };
        if !KINDS.iter().any(|known| kind == known) {
            let message = format!("a plugin has {}, and no `{kind}`", KINDS.join(", "));
            return Err(Error::new(kind.span(), message));
        }
        let mut paths = Punctuated::new();
        while !input.is_empty() && !input.peek(Token![;]) {
            paths.push_value(input.parse()?);
            if input.is_empty() || input.peek(Token![;]) {
                break;
            }
            paths.push_punct(input.parse()?);
        }
        Ok(Self { kind, paths })
    }
}

pub(crate) fn expand(list: TokenStream) -> TokenStream {
    let sections = match Punctuated::<Section, Token![;]>::parse_terminated.parse2(list) {
        Ok(sections) => sections,
        Err(error) => return error.to_compile_error(),
    };
    let of_kind = |kind: &str| -> Vec<Path> {
        let sections = sections.iter().filter(|section| section.kind == kind);
        sections.flat_map(|section| section.paths.iter().cloned()).collect()
    };
    let (functions, aggregates) = (of_kind("functions"), of_kind("aggregates"));
    let processors = of_kind("processors");
    let sources = of_kind("sources");
    if functions.is_empty() && aggregates.is_empty() && processors.is_empty() && sources.is_empty() {
        let message = "list what the plugin has: `plugin!(words, tokens);`, `plugin!(heat; aggregates: TopK);`";
        return Error::new(Span::call_site(), message).to_compile_error();
    }
    let export_functions = (!functions.is_empty()).then(|| export("functions"));
    let export_aggregates = (!aggregates.is_empty()).then(|| export("aggregates"));
    let export_processors = (!processors.is_empty()).then(|| export("processors"));
    let export_sources = (!sources.is_empty()).then(|| export("sources"));
    let migrations = of_kind("migrations");
    let export_migrations = (!migrations.is_empty()).then(|| export("migrations"));
    let by_function = |mut path: Path| {
        if let Some(last) = path.segments.last_mut() {
            last.ident = registered(&last.ident);
        }
        quote!(&#path)
    };
    let functions = functions.into_iter().map(by_function);
    let migrations = migrations.into_iter().map(by_function);
    quote! {
        #[doc(hidden)]
        #[derive(Debug)]
        pub struct __MillstreamPlugin;

        impl ::millstream_sdk::private::Plugin for __MillstreamPlugin {
            const FUNCTIONS: &'static [&'static ::millstream_sdk::private::Function] = &[#(#functions),*];
            const AGGREGATES: &'static [&'static ::millstream_sdk::private::Aggregate] =
                &[#(<#aggregates as ::millstream_sdk::private::Aggregation>::AGGREGATE),*];
            const MIGRATIONS: &'static [&'static ::millstream_sdk::private::Migration] = &[#(#migrations),*];
            fn processors() -> ::std::vec::Vec<::millstream_sdk::private::RegisteredProcessor> {
                ::std::vec![#(::millstream_sdk::private::processor::<#processors>()),*]
            }
            fn sources() -> ::std::vec::Vec<::millstream_sdk::private::RegisteredSource> {
                ::std::vec![#(::millstream_sdk::private::source::<#sources>()),*]
            }
        }

        #[cfg(target_arch = "wasm32")]
        ::millstream_sdk::private::export_describe!(
            __MillstreamPlugin with_types_in ::millstream_sdk::private::bindings::describing
        );
        #export_functions
        #export_aggregates
        #export_processors
        #export_sources
        #export_migrations
    }
}

/// The exports of a kind.
fn export(kind: &str) -> TokenStream {
    let (export, module) = (format_ident!("export_{kind}"), format_ident!("{kind}"));
    quote! {
        #[cfg(target_arch = "wasm32")]
        ::millstream_sdk::private::#export!(
            __MillstreamPlugin with_types_in ::millstream_sdk::private::bindings::#module
        );
    }
}
