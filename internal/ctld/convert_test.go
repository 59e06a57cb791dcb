package ctld

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"gbatch/internal/api"
	"gbatch/internal/job"
)

// TestConvert: what the page is given becomes a document that can be submitted, or an
// answer that says what is wrong; nothing is submitted by it.
func TestConvert(t *testing.T) {
	s := newSite(t, nil)
	ann := column{token: s.token(api.TokenRequest{Use: api.TokenUser, User: "ann"}).Secret}
	tests := map[string]struct {
		in           api.ConvertRequest
		format, want string
		wrong        string
	}{
		"slurm":       {in: api.ConvertRequest{Text: "#!/bin/bash\n#SBATCH --job-name=train --gpus=2 --time=1:00:00\n#SBATCH --begin=2030-01-01T00:00:00\necho hi\n", Image: "busybox:1", Zone: "Europe/Berlin"}, format: "slurm", want: "2029-12-31T23:00:00Z"},
		"native":      {in: api.ConvertRequest{Text: hushJob}, format: "gpulab-v2", want: `"name"`},
		"no_format":   {in: api.ConvertRequest{Text: "good morning"}, wrong: "problems"},
		"host's_zone": {in: api.ConvertRequest{Text: hushJob, Zone: "Local"}, wrong: "time zone"},
		"a_path":      {in: api.ConvertRequest{Text: hushJob, Zone: "../../etc/passwd"}, wrong: "time zone"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			code, answer := ann.do(t, s, http.MethodPost, api.PathConvert, string(body))
			if tc.wrong != "" {
				if code/100 != 4 || !strings.Contains(answer, tc.wrong) {
					t.Errorf("got %d: %s", code, answer)
				}
				return
			}
			var got api.ConvertResponse
			if err := json.Unmarshal([]byte(answer), &got); err != nil {
				t.Fatalf("%v: %d: %s", err, code, answer)
			}
			if _, err := job.Parse(got.Job); err != nil || got.Format != tc.format || !strings.Contains(string(got.Job), tc.want) {
				t.Errorf("%s, %v: %s", got.Format, err, got.Job)
			}
		})
	}
	if list := s.server.loop.View().Len(); list != 0 {
		t.Errorf("%d jobs were submitted", list)
	}
}
