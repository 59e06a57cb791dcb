package nvct

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
		document.Names(gpuFields),
		document.Names(telemetryFields),
		document.Names(variableFields),
		document.Names(secretFields),
		document.Names(artifactFields),
	)...)
}
