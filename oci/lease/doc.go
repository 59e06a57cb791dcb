// Package lease says for how long containers may go on without their owner's word,
// in a file that the owner renews, and ends them when neither the owner nor their
// shims do.
package lease
