package gpu

import (
	"bufio"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// usualDirs are where the toolkit looks for the driver's libraries by itself.
var usualDirs = []string{
	"/usr/lib64", "/lib64", "/usr/lib", "/lib",
	"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu", "/lib/aarch64-linux-gnu",
}

// driverDir is the directory from which this process has loaded the driver's
// library, by the kernel's list of its mappings, if it is an unusual one:
// installers of machine images put it where only the loader's settings know.
// Where the management library is, the rest of the driver is too.
func driverDir(maps io.Reader) string {
	for in := bufio.NewScanner(maps); in.Scan(); {
		_, path, found := strings.Cut(in.Text(), "/")
		if path = "/" + path; !found || !strings.HasPrefix(filepath.Base(path), "libnvidia-ml.so") {
			continue
		}
		dir := filepath.Dir(path)
		if slices.Contains(usualDirs, dir) {
			return ""
		}
		return dir
	}
	return ""
}
