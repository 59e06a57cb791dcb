package munge_test

import (
	"errors"
	"strings"
	"testing"

	"gbatch/internal/munge"
	"gbatch/internal/munge/mungetest"
)

func TestRealMunge(t *testing.T) {
	here, elsewhere := mungetest.Start(t), mungetest.Start(t)
	payload := munge.Payload("POST", "/v1/jobs?a=b", []byte("body\n\nmore"))
	credential, err := munge.Encode(t.Context(), here, payload)
	if err != nil {
		t.Fatal(err)
	}
	uid, got, err := munge.Decode(t.Context(), here, credential)
	if err != nil || uid != 0 || string(got) != string(payload) {
		t.Errorf("it says %d %q, %v", uid, got, err)
	}
	refused := func(name, socket, text, want string) {
		t.Helper()
		_, _, err := munge.Decode(t.Context(), socket, text)
		r, ok := errors.AsType[*munge.Refused](err)
		if !ok || !strings.Contains(r.Why, want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	refused("replayed", here, credential, "used before")
	refused("other_key", elsewhere, credential, "another key")
	refused("forged", here, strings.Replace(credential, credential[20:24], "AAAA", 1), "forged")
	refused("nonsense", here, "hello", "no credential")
	refused("expired", here, mungetest.Expired(t, here), "expired")
	if _, _, err := munge.Decode(t.Context(), "/no/such/socket", credential); err == nil {
		t.Error("it works without the daemon")
	}
}

func TestPayloadIsOfOneRequest(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range [][]byte{
		munge.Payload("GET", "/a", nil), munge.Payload("POST", "/a", nil), munge.Payload("GET", "/a?b", nil), munge.Payload("GET", "/a", []byte("x")),
	} {
		if seen[string(p)] {
			t.Errorf("two requests have one payload %q", p)
		}
		seen[string(p)] = true
	}
}
