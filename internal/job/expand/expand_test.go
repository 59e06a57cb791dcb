package expand

import "testing"

func TestVariables(t *testing.T) {
	values := map[string]string{"A": "1", "B": "$(A)", "EMPTY": ""}
	for text, want := range map[string]string{
		"":                 "",
		"plain":            "plain",
		"$(A)/$(B)$(C)":    "1/$(A)$(C)",
		"$$(A) $$$(A) $$$": "$(A) $1 $$",
		"$A ${A} $( A) $(": "$A ${A} $( A) $(",
		"a$(EMPTY)b":       "ab",
		"costs 5$":         "costs 5$",
	} {
		if got := Variables(text, func(name string) (string, bool) { v, ok := values[name]; return v, ok }); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
