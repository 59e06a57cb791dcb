package dstack

import (
	"slices"
	"testing"

	"gbatch/internal/document"
	"gbatch/internal/job/importer/foreign/foreigntest"
)

// TestDocs looks for every field in the documentation.
func TestDocs(t *testing.T) {
	foreigntest.Described(t, slices.Concat(
		document.Names(fields),
		document.Names(resourceFields),
		document.Names(diskFields),
		document.Names(gpuFields),
		document.Names(volumeFields),
		document.Names(authFields),
		document.Names(retryFields),
		document.Names(utilizationFields),
	)...)
}
