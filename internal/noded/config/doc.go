// Package config is gnoded.yaml: what can be set, the defaults, and what is
// wrong with a value. It reads the file and this machine's size, and opens
// nothing. A Config is a value; once the daemon has one it does not change.
package config
