package slurm

import (
	"testing"

	"gbatch/internal/job/importer/foreign/foreigntest"
)

// TestDocs looks for every option that means something in the documentation.
func TestDocs(t *testing.T) {
	for _, o := range allOptions() {
		if o.instead == "" && (o.value != nil || o.note != "") {
			foreigntest.Described(t, o.long)
		}
	}
}
