// Package storage resolves what jobs write in their storage entries to
// directories of this machine, makes missing ones where the site allows it,
// and binds them by handle, so that no link that is exchanged meanwhile leads
// elsewhere.
package storage
