//go:build embedshim

package inside

import _ "embed"

//go:embed program.bin
var embedded []byte // made by scripts/build-shim

//go:embed commands.bin
var embeddedCommands []byte // likewise

func init() { program, commands = embedded, embeddedCommands }
