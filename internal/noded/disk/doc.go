// Package disk bounds what ranks write on the node: each has a directory for
// it, and a number of bytes. The file system holds them to it by project quotas
// where it can; else a file system of the node's own on a file of fixed size
// does; else what they wrote is looked at, and who wrote too much is ended. It
// does not say how a rank ends, and knows nothing of images, logs and storage.
package disk
