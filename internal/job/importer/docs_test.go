package importer

import (
	"os"
	"regexp"
	"testing"
)

// TestDocs looks for every field of the formats in the reference.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range [][]string{
		names(nvctFields), names(nvctGPUFields), names(nvctTelemetryFields), names(nvctVariableFields), names(nvctSecretFields), names(nvctArtifactFields),
		names(dstackFields), names(dstackResourceFields), names(dstackDiskFields), names(dstackGPUFields), names(dstackVolumeFields), names(dstackAuthFields),
		names(dstackRetryFields), names(dstackUtilizationFields),
	} {
		for _, name := range fields {
			if !regexp.MustCompile("`[^`\n]*\\b" + name + "\\b[^`\n]*`").Match(text) {
				t.Errorf("field %q is not described", name)
			}
		}
	}
}
