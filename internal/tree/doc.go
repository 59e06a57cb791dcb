// Package tree is a directory as its user's jobs take it along: a tar archive
// of plain entries in one order, which says the same for the same content, cut
// into chunks that are known by their SHA-256. It packs a directory, checks what
// somebody else has packed, and unpacks that. Where chunks are kept, and who may
// have them, it does not know.
//
// Kept are names, permissions, contents and links within the tree; owners and
// times are not, as with what git checks out.
package tree
