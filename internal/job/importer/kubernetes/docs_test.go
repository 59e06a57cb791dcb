package kubernetes

import (
	"slices"
	"testing"

	"gbatch/internal/document"
	"gbatch/internal/job/importer/foreign/foreigntest"
)

// TestDocs looks for every field in the documentation.
func TestDocs(t *testing.T) {
	foreigntest.Described(t, slices.Concat(
		document.Names(fields(&document.Node{})),
		document.Names(cronFields()),
		document.Names(objectFields("Secret")),
		document.Names(metaFields()),
		document.Names(specFields()),
		document.Names(templateFields()),
		document.Names(podFields()),
		document.Names(containerFields),
		document.Names(ruleFields),
		document.Names(exitFields),
		document.Names(conditionFields),
		document.Names(mountFields),
		document.Names(variableFields),
		document.Names(claimFields(true)),
		document.Names(deviceFields),
		document.Names(requestFields(true)),
		document.Names(podClaimFields),
		document.Names(lifecycleFields),
		document.Names(podTermFields),
		document.Names(podSelectorFields),
		document.Names(podExpressionFields),
		document.Names(jobSetFields()),
		document.Names(setNetworkFields),
		document.Names(setSuccessFields),
		document.Names(setFailureFields),
		document.Names(replicatedFields),
		document.Names(coordinatorFields),
		document.Names(torchFields()),
		document.Names(roleFields),
		document.Names(replicaFields),
		document.Names(elasticFields),
		document.Names(volcanoFields()),
		document.Names(volcanoTaskFields),
	)...)
}
