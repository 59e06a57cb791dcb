//go:build embedshim

package inside

import _ "embed"

//go:embed program.bin
var embedded []byte // made by scripts/build-shim

func init() { program = embedded }
