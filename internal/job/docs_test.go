package job

import (
	"regexp"
	"strings"
	"testing"

	"gbatch/internal/document"
)

const docs = "../../docs/job-format.md"

// TestDocs parses every example of the reference and looks for every field in
// it.
func TestDocs(t *testing.T) {
	text := string(read(t, docs))
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(examples) < 3 {
		t.Fatalf("%d examples in %s", len(examples), docs)
	}
	for _, e := range examples {
		if _, err := Parse([]byte(e[1])); err != nil {
			t.Errorf("example is refused: %v\n%s", err, e[1])
		}
	}
	for _, fields := range [][]string{
		document.Names(specFields), document.Names(ownerFields), document.Names(requestFields), document.Names(resourcesFields), document.Names(dockerFields), document.Names(storageFields), document.Names(portFields),
		document.Names(schedulingFields), document.Names(bucketFields), document.Names(extraFields), document.Names(gbatchFields), document.Names(groupFields), document.Names(ownFields),
		document.Names(tasksFields), document.Names(retryFields), document.Names(retryRuleFields), document.Names(dependencyFields), document.Names(idleFields), document.Names(launchFields), document.Names(stdioFields), document.Names(inputFields), document.Names(outputFields), document.Names(s3Fields), document.Names(secretFields),
	} {
		for _, name := range fields {
			if !regexp.MustCompile("`[^`]*\\b" + name + "\\b[^`]*`").MatchString(text) {
				t.Errorf("field %q is not described", name)
			}
		}
	}
	for _, source := range []string{fromNVCT, fromDstack} {
		for _, v := range sourceVariables(EnvInput{Spec: &Spec{Gbatch: &Gbatch{Source: source, InstanceType: "t"}}}) {
			if !strings.Contains(text, "`"+v.name+"`") {
				t.Errorf("variable %s is not described", v.name)
			}
		}
	}
	for _, v := range Environment(EnvInput{Spec: &Spec{Gbatch: &Gbatch{Source: "kubernetes"}}, Array: &ArrayTask{}, GPUs: []int{0}, Addresses: []string{"a", "b"}, MasterPort: 1}) {
		if name, _, _ := strings.Cut(v, "="); !strings.Contains(text, "`"+name+"`") {
			t.Errorf("variable %s is not described", name)
		}
	}
}
