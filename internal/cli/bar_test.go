package cli

import "testing"

func TestBar(t *testing.T) {
	tests := map[string]string{
		"pulling 12 of 80 MiB":                    "[###                 ] 15%",
		"pulling 512 MiB of 2.0 GiB":              "[#####               ] 25%",
		"pulling 0 B of 5 MiB":                    "[                    ] 0%",
		"input 2 of 5: 3 MiB of 3 MiB":            "[####################] 100%",
		"unpacking, 3 of 4 layers":                "[###############     ] 75%",
		"pulling 9 of 0 MiB":                      "",
		"pulling 90 of 80 MiB":                    "[####################] 100%",
		"asking the registry":                     "",
		"":                                        "",
		"pulling 1.2.3 of 5":                      "",
		"pulling 99999999999999999999 YB of 1 MB": "",
	}
	for text, want := range tests {
		if got := bar(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
