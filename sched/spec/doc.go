// Package spec is what the owner of a scheduler tells it: nodes, shapes, jobs, a policy,
// what runs where, and windows that are kept for some. They are plain values
// that check themselves and decide nothing. Whoever made one owns it; the
// scheduler copies what it keeps, but for shapes, which must not change.
//
// Users of package sched know them by their names there.
package spec
