// Package share is what a node needs to share compressed layers of images with others: a spool
// of those that it has, which are read while they come, and which nodes one pull may ask, for how
// long. It knows neither registries nor networks, and who may read what is decided elsewhere.
//
// The spool's files have no names: none outlives the process, and the disk has its room back with the last
// reader. Nothing in it is needed: what is not kept, others get from the registry.
package share
