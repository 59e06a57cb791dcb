package draft

import "strings"

// Around the name of a variable that is handed over, these stand for its value.
const (
	markBegin = "\uE000"
	markEnd   = "\uE001"
)

// PutIn replaces the marks of variables that were handed over by their values.
func PutIn(words, env []string) {
	var pairs []string
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		pairs = append(pairs, markBegin+name+markEnd, value)
	}
	values := strings.NewReplacer(pairs...)
	for i, w := range words {
		if strings.Contains(w, markBegin) {
			words[i] = values.Replace(w)
		}
	}
}
