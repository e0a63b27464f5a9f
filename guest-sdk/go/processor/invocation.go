package processor

import (
	"slices"
	"sort"

	"millstream/internal/calls"
	"millstream/internal/columns"
)

// timers are timers of keys of a call: for each its key, ascending, and when it is due.
type timers struct {
	keys []uint32
	dues []int64
}

// entries are stored rows of a variable.
type entries struct {
	keyOfEntry       []uint32
	mapKeys, columns []columns.Column
}

// changes are what becomes of a variable.
type changes struct {
	cleared             []uint32
	keyOfRemoved        []uint32
	removed             []columns.Builder
	keyOfPut            []uint32
	putMapKeys, putRows []columns.Builder
}

// invocation is one call: what is known about its keys, and what comes out.
type invocation struct {
	keyCount            int
	keys, rows          []columns.Column
	keyOfRow            []uint32
	state               []entries
	timers, due         timers
	batchTime           int64
	watermark           int64
	hasWatermark        bool
	output              []columns.Builder
	keyOfOutput         []uint32
	changes             []changes
	deleted, registered timers
	keyErrors           calls.RowErrors
}

// rangeOf is where the rows of a key are.
func rangeOf(keys []uint32, key int) (begin, end int) {
	begin = sort.Search(len(keys), func(i int) bool { return int(keys[i]) >= key })
	end = sort.Search(len(keys), func(i int) bool { return int(keys[i]) > key })
	return begin, end
}

// run computes a call from end to end.
func (p *processor) run(step int, call *invocation) *calls.Error {
	call.output = columns.NewBuilders(p.output)
	call.changes = make([]changes, len(p.variables))
	for i, variable := range p.variables {
		described := variable.describe()
		call.changes[i].removed = columns.NewBuilders(described.mapKey)
		call.changes[i].putMapKeys = columns.NewBuilders(described.mapKey)
		call.changes[i].putRows = columns.NewBuilders(described.columns)
	}
	if p.steps[step] == nil {
		return calls.Refuse("`%s` has no %s", p.name, stepNames[step])
	}
	return calls.Guard(p.name, func() *calls.Error { return p.steps[step](call) })
}

// Context is what a key and its variables share; a Key has it.
type Context struct {
	call                *invocation
	processor           *processor
	number              int
	state               []held
	deleted, registered []int64
}

// Holder is a key, of whatever type.
type Holder interface{ context() *Context }

func (c *Context) context() *Context { return c }

func (call *invocation) context(p *processor, number int) *Context {
	return &Context{call: call, processor: p, number: number, state: make([]held, len(p.variables))}
}

// BatchTime is the time of the batch, in milliseconds since 1970.
func (c *Context) BatchTime() int64 { return c.call.batchTime }

// Watermark is that of the input, in milliseconds since 1970; false before there is one.
func (c *Context) Watermark() (ms int64, known bool) { return c.call.watermark, c.call.hasWatermark }

// Timers are those that the key had before this call, due ones among them, ascending.
func (c *Context) Timers() []int64 {
	begin, end := rangeOf(c.call.timers.keys, c.number)
	return append([]int64(nil), c.call.timers.dues[begin:end]...)
}

// RegisterTimer adds a timer, in milliseconds since 1970. All deletions of a call come before its registrations.
func (c *Context) RegisterTimer(dueMS int64) { c.registered = append(c.registered, dueMS) }

// DeleteTimer takes a timer away; one that is not there is no error.
func (c *Context) DeleteTimer(dueMS int64) { c.deleted = append(c.deleted, dueMS) }

// flush hands over what the code did to the key.
func (c *Context) flush() {
	for i, held := range c.state {
		if held != nil {
			held.flush(uint32(c.number), &c.call.changes[i])
		}
	}
	c.call.deleted.add(c.number, c.deleted)
	c.call.registered.add(c.number, c.registered)
}

func (t *timers) add(key int, dues []int64) {
	slices.Sort(dues)
	for _, due := range slices.Compact(dues) {
		t.keys = append(t.keys, uint32(key))
		t.dues = append(t.dues, due)
	}
}
