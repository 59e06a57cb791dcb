// Package overlay mounts the layers of an image as one file system, with a
// directory over them for what a container writes. It owns nothing: the mount is
// in the caller's mount namespace, and the directories are the caller's.
package overlay
