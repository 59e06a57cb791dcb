// Package userns is whose ids a container's ids are: the map between the two,
// the user namespace that holds it, and the mounts through which files of the
// host's root show as those of the container's.
//
// It does not choose ids: its callers know who submitted what. They own the
// namespaces, which are open files and go when nobody holds them.
package userns
