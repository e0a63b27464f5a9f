// Package config has the options that the query gives to the plugin: `[plugin.NAME.config]`. The operator must grant
// `config`.
package config

// Get is the value of an option; false where the query does not set it. In tests, Set says what the answers are.
func Get(name string) (string, bool) { return get(name) }
