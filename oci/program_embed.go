//go:build embedshim

package oci

import _ "embed"

//go:embed shim.bin
var embedded []byte // made by scripts/build-shim

func init() { program = embedded }
