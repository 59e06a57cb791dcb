// Package preflight looks at whether a machine has what a node needs, and says
// what to do about what it lacks. It changes nothing but directories that the
// daemon would make too.
package preflight
