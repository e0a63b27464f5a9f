//go:build !wasip1

package millstream

func write(Level, string) {}
