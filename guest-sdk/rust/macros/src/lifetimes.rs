//! Types without the lifetimes that the author named.

use proc_macro2::{Group, Ident, Punct, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Type;

/// The type with `name` (`'_` or `'static`) in place of every lifetime but `'static`.
pub(crate) fn renamed(named: &Type, name: &str) -> TokenStream {
    rename(named.to_token_stream(), name.trim_start_matches('\''))
}

fn rename(tokens: TokenStream, name: &str) -> TokenStream {
    let mut after_quote = false;
    tokens
        .into_iter()
        .map(|token| {
            let of_lifetime = std::mem::take(&mut after_quote);
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                    after_quote = true;
                    let mut quote = Punct::new('\'', Spacing::Joint);
                    quote.set_span(punct.span());
                    TokenTree::Punct(quote)
                }
                TokenTree::Ident(ident) if of_lifetime && ident != "static" => {
                    TokenTree::Ident(Ident::new(name, ident.span()))
                }
                TokenTree::Group(group) => {
                    let mut renamed = Group::new(group.delimiter(), rename(group.stream(), name));
                    renamed.set_span(group.span());
                    TokenTree::Group(renamed)
                }
                other => other,
            }
        })
        .collect()
}
