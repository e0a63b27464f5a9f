//! `#[aggregate_function]` on the `impl` of a state.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Error, FnArg, ImplItem, ImplItemFn, ItemImpl, LitStr, ReturnType, Type, meta};

use crate::function::{Columns, argument, check_name, columns, with};
use crate::lifetimes::renamed;

#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    state_id: Option<LitStr>,
}

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let block: ItemImpl = match syn::parse2(item.clone()) {
        Ok(block) => block,
        Err(error) => return with(item, &error),
    };
    match options_of(options).and_then(|options| register(&options, &block)) {
        Ok(registration) => quote!(#block #registration),
        Err(error) => with(item, &error),
    }
}

fn options_of(tokens: TokenStream) -> syn::Result<Options> {
    let mut options = Options::default();
    let parser = meta::parser(|option| {
        if option.path.is_ident("name") {
            options.name = Some(option.value()?.parse()?);
        } else if option.path.is_ident("state_id") {
            options.state_id = Some(option.value()?.parse()?);
        } else {
            return Err(option.error("the options are `name = \"…\"` and `state_id = \"…\"`"));
        }
        Ok(())
    });
    parser.parse2(tokens)?;
    if let Some(name) = &options.name {
        check_name(&name.value(), name.span())?;
    }
    Ok(options)
}

fn register(options: &Options, block: &ItemImpl) -> syn::Result<TokenStream> {
    let state = state_type(block)?;
    let name = match &options.name {
        Some(name) => name.value(),
        None => snake_case(&last_name(&state)?),
    };
    check_name(&name, state.span())?;
    let state_id = options.state_id.as_ref().map_or_else(String::new, LitStr::value);

    let accumulate = method(block, "accumulate")?.ok_or_else(|| lacks(block, "fn accumulate(&mut self, …)"))?;
    let merge = method(block, "merge")?.ok_or_else(|| lacks(block, "fn merge(&mut self, other: Self)"))?;
    let evaluate = method(block, "evaluate")?.ok_or_else(|| lacks(block, "fn evaluate(&self) -> …"))?;
    check_receiver(accumulate, true)?;
    check_receiver(merge, true)?;
    check_receiver(evaluate, false)?;
    check_count(merge, 1, "`merge` takes the other state")?;
    check_count(evaluate, 0, "`evaluate` takes nothing but the state")?;
    let ReturnType::Type(_, result) = &evaluate.sig.output else {
        return Err(Error::new(evaluate.sig.ident.span(), "`evaluate` returns the value of the state"));
    };
    let result = renamed(result, "'static");
    let arguments = accumulate.sig.inputs.iter().skip(1).map(argument).collect::<syn::Result<Vec<_>>>()?;
    if arguments.is_empty() {
        let message = "an aggregate function has at least one argument";
        return Err(Error::new(accumulate.sig.ident.span(), message));
    }
    let Columns { describe, open, get } = columns(&arguments);
    let (retract, retracts) = match method(block, "retract")? {
        None => (quote!(), quote!(::core::option::Option::None)),
        Some(retract) => {
            check_receiver(retract, true)?;
            check_count(retract, arguments.len(), "`retract` takes what `accumulate` takes")?;
            let body = quote! {
                fn __retract(__states: &__sdk::Batch, __groups: &[u8], __batch: &__sdk::Batch) -> __sdk::States {
                    let mut __reader = __batch.reader();
                    #(#open)*
                    __sdk::retract(__states, __groups, |__state: &mut #state, __row| {
                        ::core::option::Option::Some(<#state>::retract(__state, #(#get),*))
                    })
                }
            };
            (body, quote!(::core::option::Option::Some(__retract)))
        }
    };
    let describe_result = quote_spanned! {result.span()=>
        <<#result as __sdk::Outcome>::Value as __sdk::Value>::describe("value", true, __schema);
    };
    Ok(quote! {
        const _: () = {
            use ::millstream_sdk::private as __sdk;

            fn __arguments(__schema: &mut __sdk::Schema) {
                #(#describe)*
            }
            fn __result(__schema: &mut __sdk::Schema) {
                #describe_result
            }
            fn __state_columns(__schema: &mut __sdk::Schema) {
                <#state as __sdk::Value>::describe_columns("value", __schema);
            }
            fn __accumulate(__count: u32, __groups: &[u8], __batch: &__sdk::Batch) -> __sdk::States {
                let mut __reader = __batch.reader();
                #(#open)*
                __sdk::accumulate(__count, __groups, |__state: &mut #state, __row| {
                    ::core::option::Option::Some(<#state>::accumulate(__state, #(#get),*))
                })
            }
            fn __merge(__count: u32, __groups: &[u8], __states: &__sdk::Batch) -> __sdk::States {
                __sdk::merge(__count, __groups, __states, |__state: &mut #state, __other| {
                    <#state>::merge(__state, __other)
                })
            }
            fn __evaluate(
                __states: &__sdk::Batch,
            ) -> ::core::result::Result<__sdk::ScalarOutput, ::millstream_sdk::CallError> {
                __sdk::evaluate(__states, |__state: &#state| <#state>::evaluate(__state))
            }
            #retract

            impl __sdk::Aggregation for #state {
                const AGGREGATE: &'static __sdk::Aggregate = &__sdk::Aggregate {
                    name: #name,
                    state_id: #state_id,
                    arguments: __arguments,
                    result: __result,
                    state: __state_columns,
                    accumulate: __accumulate,
                    merge: __merge,
                    retract: #retracts,
                    evaluate: __evaluate,
                };
            }
        };
    })
}

/// The type that the block is of.
fn state_type(block: &ItemImpl) -> syn::Result<Type> {
    if let Some((_, path, _)) = &block.trait_ {
        let message = "an aggregate function is an `impl` of its state without a trait";
        return Err(Error::new(path.span(), message));
    }
    if !block.generics.params.is_empty() {
        return Err(Error::new(block.generics.span(), "the state of an aggregate function cannot be generic"));
    }
    Ok((*block.self_ty).clone())
}

fn last_name(state: &Type) -> syn::Result<String> {
    let last = match state {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    };
    let name = last.map(|last| last.ident.unraw().to_string());
    name.ok_or_else(|| Error::new(state.span(), "the state of an aggregate function is a struct"))
}

/// `GeometricMean` as `geometric_mean`, `TopK` as `top_k`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let mut before_is_lower = false;
    for letter in name.chars() {
        if letter.is_uppercase() && before_is_lower {
            snake.push('_');
        }
        before_is_lower = letter.is_lowercase() || letter.is_ascii_digit();
        snake.extend(letter.to_lowercase());
    }
    snake
}

fn method<'a>(block: &'a ItemImpl, name: &str) -> syn::Result<Option<&'a ImplItemFn>> {
    let mut found = block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(method) if method.sig.ident == name => Some(method),
        _ => None,
    });
    let Some(method) = found.next() else { return Ok(None) };
    if let Some(token) = &method.sig.asyncness {
        return Err(Error::new(token.span(), "a method of an aggregate function cannot be async"));
    }
    if !method.sig.generics.params.is_empty() {
        return Err(Error::new(method.sig.generics.span(), "a method of an aggregate function cannot be generic"));
    }
    Ok(Some(method))
}

fn lacks(block: &ItemImpl, what: &str) -> Error {
    Error::new(block.self_ty.span(), format!("an aggregate function has `{what}`, and this one lacks it"))
}

fn check_receiver(method: &ImplItemFn, mutable: bool) -> syn::Result<()> {
    let wanted = if mutable { "&mut self" } else { "&self" };
    let fits = matches!(
        method.sig.inputs.first(),
        Some(FnArg::Receiver(receiver))
            if receiver.reference.is_some() && receiver.mutability.is_some() == mutable && receiver.colon_token.is_none()
    );
    if fits {
        return Ok(());
    }
    let name: &Ident = &method.sig.ident;
    Err(Error::new(name.span(), format!("`{name}` takes `{wanted}` first")))
}

fn check_count(method: &ImplItemFn, count: usize, message: &str) -> syn::Result<()> {
    if method.sig.inputs.len() == count + 1 {
        return Ok(());
    }
    Err(Error::new(method.sig.ident.span(), message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_become_names_of_sql() {
        assert_eq!(
            ["GeometricMean", "TopK", "HTTPCodes", "p99"].map(snake_case),
            ["geometric_mean", "top_k", "httpcodes", "p99"]
        );
    }
}
