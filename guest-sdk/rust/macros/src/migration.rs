//! `#[migration]` on a function from old state to new state.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Error, FnArg, ItemFn, LitStr, ReturnType, meta};

use crate::function::with;
use crate::plugin::registered;

#[derive(Default)]
struct Options {
    state: Option<LitStr>,
    from_id: Option<LitStr>,
    to_id: Option<LitStr>,
}

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => return with(item, &error),
    };
    match options_of(options).and_then(|options| register(&options, &function)) {
        Ok(registration) => quote!(#function #registration),
        Err(error) => with(item, &error),
    }
}

fn options_of(tokens: TokenStream) -> syn::Result<Options> {
    let mut options = Options::default();
    let parser = meta::parser(|option| {
        let place = match () {
            () if option.path.is_ident("state") => &mut options.state,
            () if option.path.is_ident("from_id") => &mut options.from_id,
            () if option.path.is_ident("to_id") => &mut options.to_id,
            () => {
                let known = "the options are `state = \"…\"`, `from_id = \"…\"` and `to_id = \"…\"`";
                return Err(option.error(known));
            }
        };
        *place = Some(option.value()?.parse()?);
        Ok(())
    });
    parser.parse2(tokens)?;
    Ok(options)
}

fn register(options: &Options, function: &ItemFn) -> syn::Result<TokenStream> {
    let name = &function.sig.ident;
    let Some(state) = &options.state else {
        let message =
            "say which state it migrates: `#[migration(state = \"my_function\", from_id = \"1\", to_id = \"2\")]`";
        return Err(Error::new(name.span(), message));
    };
    let text = |option: &Option<LitStr>| option.as_ref().map_or_else(String::new, LitStr::value);
    let (from_id, to_id) = (text(&options.from_id), text(&options.to_id));
    let inputs: Vec<&FnArg> = function.sig.inputs.iter().collect();
    let [FnArg::Typed(old)] = inputs.as_slice() else {
        return Err(Error::new(function.sig.inputs.span(), "a migration takes the old state and nothing else"));
    };
    let old = &old.ty;
    let ReturnType::Type(_, new) = &function.sig.output else {
        return Err(Error::new(name.span(), "a migration returns the new state, or a `Result` of it"));
    };
    let registered = registered(name);
    Ok(quote! {
        #[doc(hidden)]
        #[allow(non_upper_case_globals, reason = "named like the function")]
        pub static #registered: ::millstream_sdk::private::Migration = {
            use ::millstream_sdk::private as __sdk;

            fn __from(__schema: &mut __sdk::Schema) {
                <#old as __sdk::Value>::describe_columns("value", __schema);
            }
            fn __to(__schema: &mut __sdk::Schema) {
                <<#new as __sdk::Outcome>::Value as __sdk::Value>::describe_columns("value", __schema);
            }
            fn __migrate(
                __rows: &__sdk::Batch,
            ) -> ::core::result::Result<__sdk::StatesOutput, ::millstream_sdk::CallError> {
                __sdk::migrate(__rows, |__state: #old| #name(__state))
            }

            __sdk::Migration {
                state: #state,
                from_id: #from_id,
                from_columns: __from,
                to_id: #to_id,
                to_columns: __to,
                migrate: __migrate,
            }
        };
    })
}
