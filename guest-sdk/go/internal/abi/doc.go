// Package abi is the canonical ABI by hand: memory for what the host writes, and answers that the host reads. Only
// components have it.
//
// The host asks cabi_realloc for memory while it writes arguments, and a component that is being written to may not call
// the host. Go's collector asks for the time when it ends a cycle, so it must not end one there: it is switched off and
// run by hand, at the beginning of a call and now and then between rows. What cabi_realloc gives is an arena that is
// used again from call to call.
package abi
