// Package models knows what models of GPUs are called, and which of them somebody
// asks for. Pure.
package models

import (
	"slices"
	"strings"
)

// Has says whether a GPU is of a model that is asked for, in any case, and with _ for
// blanks: one that has the text in its name, or with = before it the product of that name.
// With blank and * behind it the name may go on, as that of an A100-SXM4-80GB does
// behind A100, but not with what makes another product of it.
func Has(asked, model string) bool {
	name, exact := strings.CutPrefix(asked, "=")
	if !exact {
		return strings.Contains(spaced(model), spaced(asked))
	}
	name, goesOn := strings.CutSuffix(name, " *")
	name, words := strings.Join(productWords(name), ""), productWords(model)
	for i, w := range words {
		rest, ok := strings.CutPrefix(name, w)
		if !ok {
			return false
		}
		if name = rest; name == "" {
			rest := words[i+1:]
			return len(rest) == 0 || goesOn && !slices.Contains(otherProducts, rest[0])
		}
	}
	return false
}

// spaced is a name in lower case. Slurm writes the blanks of a model's name as _.
func spaced(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", " ") }

// otherProducts are words behind a name that make it another one: an RTX 4070 Ti is
// no RTX 4070.
var otherProducts = []string{"ti", "super", "ada", "blackwell", "laptop", "max"}

// productWords are the words of a model's name, without its maker and family, which
// some leave out: an RTX A6000 is an A6000, too.
func productWords(model string) []string {
	words := strings.FieldsFunc(strings.ToLower(model), func(r rune) bool { return r == ' ' || r == '-' || r == '_' })
	for len(words) > 1 && slices.Contains([]string{"nvidia", "tesla", "geforce"}, words[0]) {
		words = words[1:]
	}
	if len(words) > 1 && words[0] == "rtx" && words[1][0] == 'a' {
		return words[1:]
	}
	if len(words) > 0 && strings.HasPrefix(words[0], "rtxa") {
		words[0] = strings.TrimPrefix(words[0], "rtx")
	}
	return words
}
