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
		names(kubeFields()), names(kubeMetaFields()), names(kubeSpecFields()), names(kubeTemplateFields()), names(kubePodFields()), names(kubeContainerFields),
		names(kubeRuleFields), names(kubeExitFields), names(kubeConditionFields), names(kubeMountFields), names(kubeVariableFields),
		names(cclusterFields), names(cclusterLoginFields), names(taoFields()),
	} {
		for _, name := range fields {
			if !regexp.MustCompile("`[^`\n]*\\b" + name + "\\b[^`\n]*`").Match(text) {
				t.Errorf("field %q is not described", name)
			}
		}
	}
}

// TestDocsOfSlurm looks for every option that means something.
func TestDocsOfSlurm(t *testing.T) {
	text, err := os.ReadFile("../../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range slurmOpts {
		if o.instead == "" && (o.value != nil || o.note != "") && !regexp.MustCompile("`"+o.long+"\\b").Match(text) {
			t.Errorf("option %s is not described", o.long)
		}
	}
}
