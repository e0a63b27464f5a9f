package columns

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unsafe"
)

// Codec turns the rows of a column into values of a Go type and back.
type Codec struct {
	Field Field
	// Load writes the value of a row to where a value of the type is. False where there is none: the row is null, or
	// something in it that must not be.
	Load func(column *Column, row int, to unsafe.Pointer) bool
	// Store appends the value that is there.
	Store func(builder *Builder, from unsafe.Pointer)
}

// For makes the codec of a type. The name may carry a type that Go has not: "price,decimal(10,2)".
func For(t reflect.Type, spec string) Codec {
	name, annotation, _ := strings.Cut(spec, ",")
	if t.Implements(nullable) {
		return nullCodec(t, spec)
	}
	codec := valueCodec(t, name, annotation)
	inner := codec.Load
	codec.Load = func(c *Column, row int, to unsafe.Pointer) bool { return !c.IsNull(row) && inner(c, row, to) }
	return codec
}

func nullCodec(t reflect.Type, spec string) Codec {
	value, valid := t.Field(0), t.Field(1)
	name, annotation, _ := strings.Cut(spec, ",")
	inner := valueCodec(value.Type, name, annotation)
	codec := Codec{Field: inner.Field}
	codec.Field.Nullable = true
	codec.Load = func(c *Column, row int, to unsafe.Pointer) bool {
		if c.IsNull(row) {
			reflect.NewAt(t, to).Elem().SetZero()
			return true
		}
		*(*bool)(unsafe.Add(to, valid.Offset)) = true
		return inner.Load(c, row, to)
	}
	codec.Store = func(b *Builder, from unsafe.Pointer) {
		if *(*bool)(unsafe.Add(from, valid.Offset)) {
			inner.Store(b, from)
		} else {
			b.AppendNull()
		}
	}
	return codec
}

func fixed[T Fixed](name, format string) Codec {
	return Codec{
		Field: Field{Name: name, Format: format},
		Load: func(c *Column, row int, to unsafe.Pointer) bool {
			*(*T)(to) = slice[T](c.values, c.rows)[row]
			return true
		},
		Store: func(b *Builder, from unsafe.Pointer) { Append(b, *(*T)(from)) },
	}
}

func valueCodec(t reflect.Type, name, annotation string) Codec {
	switch t {
	case reflect.TypeFor[Date]():
		return fixed[int32](name, "tdD")
	case reflect.TypeFor[Timestamp]():
		return fixed[int64](name, "tsu:UTC")
	case reflect.TypeFor[LocalTimestamp]():
		return fixed[int64](name, "tsu:")
	case reflect.TypeFor[Decimal]():
		return decimalCodec(name, annotation)
	case reflect.TypeFor[[]byte]():
		return Codec{
			Field: Field{Name: name, Format: "z"},
			Load: func(c *Column, row int, to unsafe.Pointer) bool {
				*(*[]byte)(to) = c.Binary(row)
				return true
			},
			Store: func(b *Builder, from unsafe.Pointer) { b.AppendBinary(*(*[]byte)(from)) },
		}
	}
	switch t.Kind() {
	case reflect.Bool:
		return Codec{
			Field: Field{Name: name, Format: "b"},
			Load: func(c *Column, row int, to unsafe.Pointer) bool {
				*(*bool)(to) = c.Bool(row)
				return true
			},
			Store: func(b *Builder, from unsafe.Pointer) { b.AppendBool(*(*bool)(from)) },
		}
	case reflect.String:
		return Codec{
			Field: Field{Name: name, Format: "u"},
			Load: func(c *Column, row int, to unsafe.Pointer) bool {
				*(*string)(to) = c.Text(row)
				return true
			},
			Store: func(b *Builder, from unsafe.Pointer) { b.AppendText(*(*string)(from)) },
		}
	case reflect.Int8:
		return fixed[int8](name, "c")
	case reflect.Uint8:
		return fixed[uint8](name, "C")
	case reflect.Int16:
		return fixed[int16](name, "s")
	case reflect.Uint16:
		return fixed[uint16](name, "S")
	case reflect.Int32:
		return fixed[int32](name, "i")
	case reflect.Uint32:
		return fixed[uint32](name, "I")
	case reflect.Int64, reflect.Int:
		return fixed[int64](name, "l")
	case reflect.Uint64:
		return fixed[uint64](name, "L")
	case reflect.Float32:
		return fixed[float32](name, "f")
	case reflect.Float64:
		return fixed[float64](name, "g")
	case reflect.Slice:
		return listCodec(t, name, annotation)
	case reflect.Struct:
		return structCodec(t, name)
	}
	panic(fmt.Sprintf("`%s` has the Go type %s, which is no type of SQL", name, t))
}

func decimalCodec(name, annotation string) Codec {
	var precision, scale int
	if n, _ := fmt.Sscanf(strings.ReplaceAll(annotation, " ", ""), "decimal(%d,%d)", &precision, &scale); n != 2 {
		panic("`" + name + "` is a decimal: say how large after its name, as in `" + name + ",decimal(10,2)`")
	}
	return Codec{
		Field: Field{Name: name, Format: fmt.Sprintf("d:%d,%d", precision, scale)},
		Load: func(c *Column, row int, to unsafe.Pointer) bool {
			c.check(row, Decimal128)
			halves := slice[uint64](c.values, 2*c.rows)
			*(*Decimal)(to) = Decimal{High: int64(halves[2*row+1]), Low: halves[2*row]}
			return true
		},
		Store: func(b *Builder, from unsafe.Pointer) {
			value := (*Decimal)(from)
			b.appendDecimal(value.High, value.Low)
		},
	}
}

func listCodec(t reflect.Type, name, annotation string) Codec {
	item := "item"
	if annotation != "" {
		item += "," + annotation
	}
	element, size := For(t.Elem(), item), t.Elem().Size()
	element.Field.Nullable = true
	return Codec{
		Field: Field{Name: name, Format: "+l", Children: []Field{element.Field}},
		Load: func(c *Column, row int, to unsafe.Pointer) bool {
			begin, end := c.List(row)
			list := reflect.MakeSlice(t, end-begin, end-begin)
			for i := begin; i < end; i++ {
				if !element.Load(c.Child(0), i, unsafe.Add(list.UnsafePointer(), uintptr(i-begin)*size)) {
					return false
				}
			}
			reflect.NewAt(t, to).Elem().Set(list)
			return true
		},
		Store: func(b *Builder, from unsafe.Pointer) {
			list := reflect.NewAt(t, from).Elem()
			for i := range list.Len() {
				element.Store(b.Child(0), unsafe.Add(list.UnsafePointer(), uintptr(i)*size))
			}
			b.AppendList()
		},
	}
}

func structCodec(t reflect.Type, name string) Codec {
	members := Members(t)
	fields := make([]Field, len(members))
	for i, member := range members {
		fields[i] = member.Field
	}
	return Codec{
		Field: Field{Name: name, Format: "+s", Children: fields},
		Load: func(c *Column, row int, to unsafe.Pointer) bool {
			for i := range members {
				if !members[i].Load(c.Child(i), row, unsafe.Add(to, members[i].offset)) {
					return false
				}
			}
			return true
		},
		Store: func(b *Builder, from unsafe.Pointer) {
			for i := range members {
				members[i].Store(b.Child(i), unsafe.Add(from, members[i].offset))
			}
			b.AppendStruct()
		},
	}
}

// Member is a field of a Go struct.
type Member struct {
	Codec
	offset uintptr
}

// Members are the fields of a struct: named by the tag `ms`, else like the Go field in snake case.
func Members(t reflect.Type) []Member {
	var members []Member
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.IsExported() {
			panic(fmt.Sprintf("field `%s` of %s is not exported, so it cannot be a column", field.Name, t))
		}
		spec := field.Tag.Get("ms")
		if spec == "" || spec[0] == ',' {
			spec = snake(field.Name) + spec
		}
		members = append(members, Member{Codec: For(field.Type, spec), offset: field.Offset})
	}
	return members
}

func snake(name string) string {
	var text strings.Builder
	for i, letter := range name {
		if unicode.IsUpper(letter) && i > 0 {
			text.WriteByte('_')
		}
		text.WriteRune(unicode.ToLower(letter))
	}
	return text.String()
}
