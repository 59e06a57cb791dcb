//go:build embedweb

package web

import "embed"

//go:embed dist
var dist embed.FS
