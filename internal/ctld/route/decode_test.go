package route

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gbatch/internal/api"
)

// TestDecode: what nodes say is read as encoding/json reads it, also what an older or a newer program says otherwise.
func TestDecode(t *testing.T) {
	for what, text := range map[string]string{
		"usual": `{"instance":"i","boot":"b","ranks":[{"id":"7.0.1.0","uuid":"u","phase":"ended","exit":{"code":1,"peakMem":5},"progress":"a"}],"seen":18446744073709551615,"waitMs":20000,
			"samples":[{"uuid":"GPU-1","utilization":0.5}],"inventory":{"hostname":"h","gpus":[{"uuid":"GPU-1","index":0}],"storage":[]},"documents":[]}`,
		"absent":          `{}`,
		"null":            `{"instance":null,"ranks":null,"inventory":null,"documents":null}`,
		"unknown":         `{"instance":"i","later":{"a":[1,2]}}`,
		"other case":      `{"Instance":"i","SEEN":3}`,
		"twice":           `{"instance":"i","instance":"j"}`,
		"no UTF-8":        "{\"instance\":\"\xff\"}",
		"not a number":    `{"seen":"3"}`,
		"too large":       `{"waitMs":1e30}`,
		"cut off":         `{"instance":"i"`,
		"something after": `{"instance":"i"} x`,
		"an array":        `[]`,
	} {
		var got, want api.SyncRequest
		err, wantErr := decode([]byte(text), &got), json.Unmarshal([]byte(text), &want)
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%s: error %v, want %v", what, err, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" && wantErr == nil {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}
