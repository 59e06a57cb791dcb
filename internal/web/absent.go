//go:build !embedweb

package web

import "embed"

// dist is empty where the page was not built: see scripts/build-web.
var dist embed.FS
