//go:build !wasip1

package config

var options = map[string]string{}

// Set gives a test an option.
func Set(name, value string) { options[name] = value }

func get(name string) (string, bool) {
	value, found := options[name]
	return value, found
}
