//! `#[scalar_function]` and `#[table_function]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{
    Error, FnArg, GenericArgument, Ident, ItemFn, LitStr, Pat, Path, PathArguments, ReturnType, Type, TypeParamBound,
    meta,
};

use crate::lifetimes::renamed;
use crate::plugin::registered;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar,
    Table,
}

#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    column: Option<LitStr>,
    volatile: bool,
}

pub(crate) fn expand(kind: Kind, options: TokenStream, item: TokenStream) -> TokenStream {
    let function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => return with(item, &error),
    };
    match options_of(kind, options).and_then(|options| register(kind, &options, &function)) {
        Ok(registration) => quote!(#function #registration),
        Err(error) => with(item, &error),
    }
}

/// The author's code stays, so that the message about it is the only one.
pub(crate) fn with(item: TokenStream, error: &Error) -> TokenStream {
    let error = error.to_compile_error();
    quote!(#item #error)
}

fn options_of(kind: Kind, tokens: TokenStream) -> syn::Result<Options> {
    let mut options = Options::default();
    let parser = meta::parser(|option| {
        if option.path.is_ident("name") {
            options.name = Some(option.value()?.parse()?);
        } else if option.path.is_ident("column") && kind == Kind::Table {
            options.column = Some(option.value()?.parse()?);
        } else if option.path.is_ident("volatile") {
            options.volatile = true;
        } else {
            let column = if kind == Kind::Table { ", `column = \"…\"`" } else { "" };
            return Err(option.error(format!("the options are `name = \"…\"`{column} and `volatile`")));
        }
        Ok(())
    });
    parser.parse2(tokens)?;
    if let Some(name) = &options.name {
        check_name(&name.value(), name.span())?;
    }
    if let Some(column) = &options.column {
        check_name(&column.value(), column.span())?;
    }
    Ok(options)
}

/// A name in SQL.
pub(crate) fn check_name(name: &str, span: Span) -> syn::Result<()> {
    let fits = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if fits {
        return Ok(());
    }
    Err(Error::new(span, format!("`{name}` cannot be a name in SQL: lower-case letters, digits and _")))
}

fn register(kind: Kind, options: &Options, function: &ItemFn) -> syn::Result<TokenStream> {
    let signature = &function.sig;
    check_shape(function)?;
    let ident = &signature.ident;
    let name = options.name.as_ref().map_or_else(|| ident.unraw().to_string(), LitStr::value);
    check_name(&name, ident.span())?;
    let arguments = signature.inputs.iter().map(argument).collect::<syn::Result<Vec<_>>>()?;

    let Columns { describe, open, get } = columns(&arguments);

    let returned = match &signature.output {
        ReturnType::Type(_, returned) => returned,
        ReturnType::Default => return Err(Error::new(ident.span(), "a plugin function returns something")),
    };
    let result = result(kind, options, returned)?;
    let Returned { describe: describe_result, run, output, call } = result;
    let volatile = options.volatile;
    let visibility = &function.vis;
    let registered = registered(ident);
    Ok(quote! {
        #[doc(hidden)]
        #[allow(non_upper_case_globals, reason = "named after the function")]
        #visibility static #registered: ::millstream_sdk::private::Function = {
            fn __arguments(__schema: &mut ::millstream_sdk::private::Schema) {
                let _ = &__schema;
                #(#describe)*
            }
            fn __results(__schema: &mut ::millstream_sdk::private::Schema) {
                #describe_result
            }
            fn __call(
                __batch: &::millstream_sdk::private::Batch,
            ) -> ::core::result::Result<::millstream_sdk::private::#output, ::millstream_sdk::CallError> {
                #[allow(unused_mut, unused_variables, reason = "a function may have no arguments")]
                let mut __reader = __batch.reader();
                #(#open)*
                ::millstream_sdk::private::#run(__batch, |__row| ::core::option::Option::Some(#ident(#(#get),*)))
            }
            ::millstream_sdk::private::Function {
                name: #name,
                volatile: #volatile,
                arguments: __arguments,
                results: __results,
                call: ::millstream_sdk::private::Call::#call(__call),
            }
        };
    })
}

/// What is written for the arguments of a function.
pub(crate) struct Columns {
    /// Appends them to `__schema`.
    pub(crate) describe: Vec<TokenStream>,
    /// Takes their buffers from `__reader`.
    pub(crate) open: Vec<TokenStream>,
    /// Their values of row `__row`, with `?` for nulls.
    pub(crate) get: Vec<TokenStream>,
}

pub(crate) fn columns(arguments: &[(Ident, Type)]) -> Columns {
    let mut columns = Columns { describe: Vec::new(), open: Vec::new(), get: Vec::new() };
    for (i, (name, argument_type)) in arguments.iter().enumerate() {
        let name = name.unraw().to_string();
        let span = argument_type.span();
        let argument_type = renamed(argument_type, "'_");
        let column = Ident::new(&format!("__column_{i}"), Span::mixed_site());
        columns.describe.push(quote_spanned! {span=>
            <#argument_type as ::millstream_sdk::private::Argument<'_>>::describe(#name, false, __schema);
        });
        columns.open.push(quote_spanned! {span=>
            let #column = <#argument_type as ::millstream_sdk::private::Argument<'_>>::open(&mut __reader);
        });
        columns.get.push(quote_spanned! {span=>
            <#argument_type as ::millstream_sdk::private::Argument<'_>>::get(&#column, __row)?
        });
    }
    columns
}

fn check_shape(function: &ItemFn) -> syn::Result<()> {
    let signature = &function.sig;
    if let Some(token) = &signature.asyncness {
        return Err(Error::new(token.span(), "a plugin function cannot be async"));
    }
    if signature.generics.type_params().next().is_some() || signature.generics.const_params().next().is_some() {
        return Err(Error::new(signature.generics.span(), "a plugin function cannot be generic"));
    }
    if let Some(token) = &signature.unsafety {
        return Err(Error::new(token.span(), "a plugin function cannot be unsafe"));
    }
    Ok(())
}

/// The name and type of an argument.
pub(crate) fn argument(argument: &FnArg) -> syn::Result<(Ident, Type)> {
    match argument {
        FnArg::Receiver(receiver) => Err(Error::new(receiver.span(), "a plugin function has no `self`")),
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(pattern) => {
                let name = pattern.ident.unraw().to_string();
                check_name(name.trim_start_matches('_'), pattern.ident.span())?;
                Ok((pattern.ident.clone(), (*typed.ty).clone()))
            }
            other => Err(Error::new(other.span(), "an argument of a plugin function has a plain name")),
        },
    }
}

struct Returned {
    describe: TokenStream,
    run: Ident,
    output: Ident,
    call: Ident,
}

fn result(kind: Kind, options: &Options, returned: &Type) -> syn::Result<Returned> {
    let ident = |name: &str| Ident::new(name, Span::call_site());
    if kind == Kind::Scalar {
        if let Type::ImplTrait(_) = returned {
            return Err(Error::new(
                returned.span(),
                "a scalar function returns a value; for rows use `#[table_function]`",
            ));
        }
        let value = renamed(returned, "'_");
        return Ok(Returned {
            describe: describe(&value, quote!(describe("value", true, __schema))),
            run: ident("scalar"),
            output: ident("ScalarOutput"),
            call: ident("Scalar"),
        });
    }
    let (inner, run) = match of_result(returned) {
        Some(inner) => (inner, "table_of_result"),
        None => (returned, "table"),
    };
    let item = item_of(inner).ok_or_else(|| {
        let message =
            "a table function returns `impl Iterator<Item = T>`, `Vec<T>` or `Option<T>`, or a `Result` of one";
        Error::new(returned.span(), message)
    })?;
    let item = renamed(item, "'_");
    let column = options.column.as_ref().map_or_else(|| "value".to_owned(), LitStr::value);
    Ok(Returned {
        describe: describe(&item, quote!(describe_columns(#column, __schema))),
        run: ident(run),
        output: ident("TableOutput"),
        call: ident("Table"),
    })
}

fn describe(value: &TokenStream, call: TokenStream) -> TokenStream {
    quote_spanned! {value.span()=>
        <<#value as ::millstream_sdk::private::Outcome>::Value as ::millstream_sdk::private::Value>::#call;
    }
}

/// The success type of a `Result` or `CallResult`.
fn of_result(returned: &Type) -> Option<&Type> {
    let Type::Path(path) = returned else { return None };
    let last = path.path.segments.last()?;
    (last.ident == "Result" || last.ident == "CallResult").then(|| first_type(&path.path)).flatten()
}

/// The type of the rows.
fn item_of(returned: &Type) -> Option<&Type> {
    match returned {
        Type::ImplTrait(iterator) => iterator.bounds.iter().find_map(item_of_bound),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            match first_type(&path.path)? {
                Type::TraitObject(object) if last.ident == "Box" => object.bounds.iter().find_map(item_of_bound),
                first if last.ident == "Vec" || last.ident == "Option" => Some(first),
                _ => None,
            }
        }
        _ => None,
    }
}

fn item_of_bound(bound: &TypeParamBound) -> Option<&Type> {
    let TypeParamBound::Trait(bound) = bound else { return None };
    let PathArguments::AngleBracketed(arguments) = &bound.path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(item) if item.ident == "Item" => Some(&item.ty),
        _ => None,
    })
}

fn first_type(path: &Path) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(first) => Some(first),
        _ => None,
    })
}
