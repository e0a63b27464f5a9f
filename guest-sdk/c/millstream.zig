//! Write Millstream plugins in Zig, over the header of C.
//!
//!     const ms = @import("millstream");
//!
//!     fn heat(call: *ms.Call) void {
//!         const level = ms.values(i64, call.argument(0));
//!         const visits = ms.values(i64, call.argument(1));
//!         for (ms.slots(f64, call.result(0), call.rows), level, visits) |*value, l, v| {
//!             value.* = 0.1 * @as(f64, @floatFromInt(l)) + 0.9 * @as(f64, @floatFromInt(v));
//!         }
//!     }
//!
//!     comptime {
//!         ms.functions(&.{
//!             ms.scalar("heat", &.{ ms.i64Field("level"), ms.i64Field("visits") }, ms.f64Field("value"), heat),
//!         });
//!     }
//!
//! What the header has is in `c`, translated as it is; what stands here is what macros of C do. The guide is README.md.

const std = @import("std");
const builtin = @import("builtin");

/// The header.
pub const c = @import("c");

/// One call: columns in, builders out. Its methods are the header's functions without `ms_`.
pub const Call = c.ms_call;
/// A column of the arguments.
pub const Column = c.ms_column;
/// A column of the results under construction.
pub const Builder = c.ms_builder;
/// A function of the plugin.
pub const Function = c.ms_function;
/// A field: a name, with `?` at its end where there may be nulls, and a format of the Arrow C data interface.
pub const Field = c.ms_field;

/// A field of any format.
pub fn field(comptime name: [:0]const u8, comptime format: [:0]const u8) Field {
    return .{ .name = name.ptr, .format = format.ptr };
}

/// BOOLEAN.
pub fn boolField(comptime name: [:0]const u8) Field {
    return field(name, "b");
}

/// BIGINT.
pub fn i64Field(comptime name: [:0]const u8) Field {
    return field(name, "l");
}

/// INT.
pub fn i32Field(comptime name: [:0]const u8) Field {
    return field(name, "i");
}

/// DOUBLE.
pub fn f64Field(comptime name: [:0]const u8) Field {
    return field(name, "g");
}

/// STRING.
pub fn textField(comptime name: [:0]const u8) Field {
    return field(name, "u");
}

fn ended(comptime fields: []const Field) []const Field {
    const all = comptime blk: {
        var list: [fields.len + 1]Field = undefined;
        @memcpy(list[0..fields.len], fields);
        list[fields.len] = .{ .name = null, .format = null };
        break :blk list;
    };
    return &struct {
        const kept = all;
    }.kept;
}

fn function(
    comptime name: [:0]const u8,
    comptime kind: c.ms_kind,
    comptime arguments: []const Field,
    comptime results: []const Field,
    comptime code: fn (*Call) void,
) Function {
    const entered = struct {
        fn call(entered_call: [*c]Call) callconv(.c) void {
            code(@ptrCast(entered_call));
        }
    };
    return .{
        .name = name.ptr,
        .kind = kind,
        .flags = 0,
        .arguments = ended(arguments).ptr,
        .results = ended(results).ptr,
        .call = entered.call,
    };
}

/// A function with one value per row.
pub fn scalar(
    comptime name: [:0]const u8,
    comptime arguments: []const Field,
    comptime result: Field,
    comptime code: fn (*Call) void,
) Function {
    return function(name, c.MS_KIND_SCALAR, arguments, &.{result}, code);
}

/// A function with any number of rows per row.
pub fn table(
    comptime name: [:0]const u8,
    comptime arguments: []const Field,
    comptime columns: []const Field,
    comptime code: fn (*Call) void,
) Function {
    return function(name, c.MS_KIND_TABLE, arguments, columns, code);
}

/// The functions of the plugin; once, in a `comptime` block.
pub fn functions(comptime list: []const Function) void {
    const exported = struct {
        const kept: [list.len]Function = list[0..list.len].*;
        const pointers: [list.len + 1]?*const Function = blk: {
            var all: [list.len + 1]?*const Function = undefined;
            for (0..list.len) |i| all[i] = &kept[i];
            all[list.len] = null;
            break :blk all;
        };

        fn scalarCall(number: u32, rows: u32, buffers: [*c]c.ms_buffer, count: u32) callconv(.c) ?*anyopaque {
            return c.ms__call_function(c.MS_KIND_SCALAR, number, rows, buffers, count);
        }
        fn tableCall(number: u32, rows: u32, buffers: [*c]c.ms_buffer, count: u32) callconv(.c) ?*anyopaque {
            return c.ms__call_function(c.MS_KIND_TABLE, number, rows, buffers, count);
        }
        fn answered(answer: ?*anyopaque) callconv(.c) void {
            c.ms__answered(answer);
        }
    };
    @export(&exported.pointers, .{ .name = "ms_functions" });
    if (builtin.cpu.arch.isWasm()) {
        const scalar_name = "millstream:plugin/scalar@0.2.0#call";
        const table_name = "millstream:plugin/table@0.2.0#call";
        @export(&exported.scalarCall, .{ .name = scalar_name });
        @export(&exported.tableCall, .{ .name = table_name });
        @export(&exported.answered, .{ .name = "cabi_post_" ++ scalar_name });
        @export(&exported.answered, .{ .name = "cabi_post_" ++ table_name });
    }
}

/// All values of a column of fixed width; where it is null they mean nothing.
pub fn values(comptime T: type, column: [*c]const Column) []const T {
    const all = switch (T) {
        i8 => c.ms_i8s(column),
        u8 => c.ms_u8s(column),
        i16 => c.ms_i16s(column),
        u16 => c.ms_u16s(column),
        i32 => c.ms_i32s(column),
        u32 => c.ms_u32s(column),
        i64 => c.ms_i64s(column),
        u64 => c.ms_u64s(column),
        f32 => c.ms_f32s(column),
        f64 => c.ms_f64s(column),
        i128 => c.ms_decimals(column),
        else => @compileError("no column has values of " ++ @typeName(T)),
    };
    return if (column.*.rows == 0) &.{} else all[0..column.*.rows];
}

/// So many values of fixed width, all 0, to be written.
pub fn slots(comptime T: type, builder: [*c]Builder, rows: u32) []T {
    const all = switch (T) {
        i8 => c.ms_slots_i8(builder, rows),
        u8 => c.ms_slots_u8(builder, rows),
        i16 => c.ms_slots_i16(builder, rows),
        u16 => c.ms_slots_u16(builder, rows),
        i32 => c.ms_slots_i32(builder, rows),
        u32 => c.ms_slots_u32(builder, rows),
        i64 => c.ms_slots_i64(builder, rows),
        u64 => c.ms_slots_u64(builder, rows),
        f32 => c.ms_slots_f32(builder, rows),
        f64 => c.ms_slots_f64(builder, rows),
        i128 => c.ms_slots_decimal(builder, rows),
        else => @compileError("no column has values of " ++ @typeName(T)),
    };
    return if (rows == 0) &.{} else all[0..rows];
}

/// A row of a text column, until the end of the call.
pub fn text(column: [*c]const Column, row: u32) []const u8 {
    const found = c.ms_text_at(column, row);
    return found.data[0..found.length];
}

/// One more row of a text column.
pub fn addText(builder: [*c]Builder, value: []const u8) void {
    c.ms_add_text(builder, value.ptr, value.len);
}

/// The row fails with a message for a person; rows ascend.
pub fn failRow(call: *Call, row: u32, message: []const u8) void {
    c.ms_fail_row(call, row, "%.*s", @as(c_int, @intCast(message.len)), message.ptr);
}

/// For the root of a plugin, `pub const panic = ms.panic;`: what Zig finds out about wrong code reaches the operator.
pub const panic = std.debug.FullPanic(struct {
    fn panicked(message: []const u8, _: ?usize) noreturn {
        c.ms_panic("%.*s", @as(c_int, @intCast(message.len)), message.ptr);
    }
}.panicked);
