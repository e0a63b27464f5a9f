//! `#[derive(Row)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, Type};

use crate::lifetimes::renamed;

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    syn::parse2(item).and_then(|input: DeriveInput| derive(&input)).unwrap_or_else(|error| error.to_compile_error())
}

fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let fields: Vec<&Field> = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) if !fields.named.is_empty() => fields.named.iter().collect(),
            _ => return Err(Error::new(input.ident.span(), "a Row is a struct with named fields")),
        },
        _ => return Err(Error::new(input.ident.span(), "a Row is a struct with named fields")),
    };
    if input.generics.type_params().next().is_some() || input.generics.const_params().next().is_some() {
        return Err(Error::new(input.generics.span(), "a Row cannot be generic over types"));
    }
    let value = value(input, &fields);
    let argument = input.generics.params.is_empty().then(|| argument(input, &fields));
    Ok(quote! {
        const _: () = {
            use ::millstream_sdk::private as __sdk;
            #value
            #argument
        };
    })
}

fn parts<'a>(fields: &[&'a Field]) -> (Vec<&'a Ident>, Vec<String>, Vec<&'a Type>, Vec<Ident>) {
    let idents: Vec<&Ident> = fields.iter().filter_map(|field| field.ident.as_ref()).collect();
    let names = idents.iter().map(|ident| ident.unraw().to_string()).collect();
    let types = fields.iter().map(|field| &field.ty).collect();
    let places = (0..fields.len()).map(|i| Ident::new(&format!("__field_{i}"), Span::mixed_site())).collect();
    (idents, names, types, places)
}

fn value(input: &DeriveInput, fields: &[&Field]) -> TokenStream {
    let row = &input.ident;
    let (generics, type_generics, bounds) = input.generics.split_for_impl();
    let (idents, names, types, places) = parts(fields);
    let count = u32::try_from(fields.len()).unwrap_or(u32::MAX);
    let builders = types.iter().map(|field_type| {
        // Builders do not depend on lifetimes, so they are named through `'static`.
        let field_type = renamed(field_type, "'static");
        quote_spanned!(field_type.span()=> <#field_type as __sdk::Value>::Builder)
    });
    let describe: Vec<_> = names
        .iter()
        .zip(&types)
        .map(|(name, field_type)| {
            quote_spanned!(field_type.span()=> <#field_type as __sdk::Value>::describe(#name, false, schema);)
        })
        .collect();
    quote! {
        #[doc(hidden)]
        #[derive(Default)]
        pub struct __RowBuilder {
            nulls: __sdk::Nulls,
            #(#places: #builders,)*
        }

        impl #generics __sdk::Element for #row #type_generics #bounds {}

        impl #generics __sdk::Value for #row #type_generics #bounds {
            type Builder = __RowBuilder;

            fn describe(name: &str, nullable: bool, schema: &mut __sdk::Schema) {
                schema.push(name, "+s", nullable, #count);
                #(#describe)*
            }

            #[inline]
            fn append(self, builder: &mut __RowBuilder) {
                builder.nulls.push(true);
                #(__sdk::Value::append(self.#idents, &mut builder.#places);)*
            }

            fn append_null(builder: &mut __RowBuilder) {
                builder.nulls.push(false);
                #(<#types as __sdk::Value>::append_null(&mut builder.#places);)*
            }

            fn finish(builder: __RowBuilder, buffers: &mut ::std::vec::Vec<::std::vec::Vec<u8>>) {
                buffers.push(builder.nulls.into_bytes());
                #(<#types as __sdk::Value>::finish(builder.#places, buffers);)*
            }

            fn describe_columns(_name: &str, schema: &mut __sdk::Schema) {
                #(#describe)*
            }

            fn finish_columns(builder: __RowBuilder, buffers: &mut ::std::vec::Vec<::std::vec::Vec<u8>>) {
                #(<#types as __sdk::Value>::finish(builder.#places, buffers);)*
            }
        }
    }
}

fn argument(input: &DeriveInput, fields: &[&Field]) -> TokenStream {
    let row = &input.ident;
    let (idents, names, types, places) = parts(fields);
    let count = u32::try_from(fields.len()).unwrap_or(u32::MAX);
    quote! {
        #[doc(hidden)]
        pub struct __RowColumn<'__a> {
            validity: __sdk::Validity<'__a>,
            #(#places: <#types as __sdk::Argument<'__a>>::Column,)*
        }

        impl __sdk::Column for __RowColumn<'_> {
            fn is_valid(&self, row: usize) -> bool {
                self.validity.is_valid(row)
            }
        }

        impl<'__a> __sdk::Argument<'__a> for #row {
            type Column = __RowColumn<'__a>;

            fn describe(name: &str, nullable: bool, schema: &mut __sdk::Schema) {
                schema.push(name, "+s", nullable, #count);
                #(<#types as __sdk::Argument<'__a>>::describe(#names, false, schema);)*
            }

            fn open(reader: &mut __sdk::Reader<'__a>) -> Self::Column {
                __RowColumn {
                    validity: reader.validity(),
                    #(#places: <#types as __sdk::Argument<'__a>>::open(reader),)*
                }
            }

            fn open_columns(reader: &mut __sdk::Reader<'__a>) -> Self::Column {
                __RowColumn {
                    validity: __sdk::Validity::all(),
                    #(#places: <#types as __sdk::Argument<'__a>>::open(reader),)*
                }
            }

            fn get(column: &Self::Column, row: usize) -> ::core::option::Option<Self> {
                if !column.validity.is_valid(row) {
                    return ::core::option::Option::None;
                }
                ::core::option::Option::Some(#row {
                    #(#idents: <#types as __sdk::Argument<'__a>>::get(&column.#places, row)?,)*
                })
            }
        }
    }
}
