package image

import (
	"testing"
	"time"

	"gbatch/oci/ref"
)

// TestAskedSince: a pull takes what the registry said to another one that asked since it could have asked
// itself, and neither an older answer, nor that to another login, nor one that is not of lately.
func TestAskedSince(t *testing.T) {
	f := newRegistry(t)
	r, first := f.push(t, "a/b:1", small(t, "x"))
	now := time.Now()
	s := open(t, Config{Now: func() time.Time { return now }})
	get := func(since time.Time, creds *ref.Credentials) (digest string, asked bool) {
		t.Helper()
		f.reset()
		img, err := s.Pull(t.Context(), PullRequest{Ref: r, Credentials: creds, AskedSince: since})
		if err != nil {
			t.Fatal(err)
		}
		return img.Digest, f.count("HEAD", "/manifests/1") > 0
	}
	before := now
	get(before, nil)
	_, second := f.push(t, "a/b:1", small(t, "y"))
	pushed := now.Add(time.Millisecond)
	now = now.Add(time.Second)
	for _, tc := range []struct {
		what  string
		since time.Time
		creds *ref.Credentials
		want  string
		asks  bool
	}{
		{"could have asked before", before, nil, first, false},
		{"has another login", before, &ref.Credentials{Username: "u", Password: "p"}, second, true},
		{"could not have asked before the push", pushed, nil, second, true},
		{"could have asked then", pushed, nil, second, false},
		{"takes no answer to others", time.Time{}, nil, second, true},
	} {
		if got, asked := get(tc.since, tc.creds); got != tc.want || asked != tc.asks {
			t.Errorf("one that %s has %s and asked: %t; want %s and %t", tc.what, got, asked, tc.want, tc.asks)
		}
	}
	now = now.Add(saidAge + time.Millisecond)
	if _, asked := get(before, nil); !asked {
		t.Error("an answer was used that is not of lately")
	}
}
