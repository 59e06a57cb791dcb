// Package fsck looks at every record of a store that no controller has open, and
// takes out those that cannot be read.
package fsck
