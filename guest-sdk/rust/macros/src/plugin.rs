//! `plugin!`: the list of functions, and the exports of the component.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Ident, Path, Token};

/// The name under which a function is registered.
pub(crate) fn registered(function: &Ident) -> Ident {
    use syn::ext::IdentExt;
    format_ident!("__millstream_{}", function.unraw())
}

pub(crate) fn expand(functions: TokenStream) -> TokenStream {
    let paths = match Punctuated::<Path, Token![,]>::parse_terminated.parse2(functions) {
        Ok(paths) if paths.is_empty() => {
            let message = "list the functions of the plugin: `plugin!(words, tokens);`";
            return syn::Error::new(proc_macro2::Span::call_site(), message).to_compile_error();
        }
        Ok(paths) => paths,
        Err(error) => return error.to_compile_error(),
    };
    let functions = paths.into_iter().map(|mut path| {
        if let Some(last) = path.segments.last_mut() {
            last.ident = registered(&last.ident).clone();
        }
        quote!(&#path)
    });
    quote! {
        #[doc(hidden)]
        #[derive(Debug)]
        pub struct __MillstreamPlugin;

        impl ::millstream_sdk::private::Plugin for __MillstreamPlugin {
            const FUNCTIONS: &'static [&'static ::millstream_sdk::private::Function] = &[#(#functions),*];
        }

        #[cfg(target_arch = "wasm32")]
        ::millstream_sdk::private::export!(__MillstreamPlugin with_types_in ::millstream_sdk::private::bindings);
    }
}
