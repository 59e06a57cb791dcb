// Command shim is package oci alone, as a program of its own: what gnoded
// carries inside to execute for each container. See oci/program.go.
package main

import (
	"fmt"
	"os"

	_ "gbatch/oci" // takes the process over before main
)

func main() {
	fmt.Fprintln(os.Stderr, "this program is started by gnoded, once for each container")
	os.Exit(2)
}
