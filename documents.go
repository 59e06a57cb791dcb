// Package gbatch holds the documents as they were when a program was built;
// `gadm help` shows them. Its tests are those of the whole tree.
package gbatch

import "embed"

// Documents are the documents for users and operators, by their paths.
//
//go:embed CHANGELOG.md docs/*.md
var Documents embed.FS
