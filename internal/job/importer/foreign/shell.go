package foreign

import (
	"errors"
	"path"
)

// ShellWords splits a line into words by a shell's rules for quotes, with
// nothing expanded.
func ShellWords(s string) ([]string, error) {
	var words []string
	var word []byte
	in := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if in {
				words, word, in = append(words, string(word)), nil, false
			}
		case c == '\\' && i+1 < len(s):
			i++
			word, in = append(word, s[i]), true
		case c == '\'' || c == '"':
			in = true
			end := i + 1
			for ; end < len(s) && s[end] != c; end++ {
				if c == '"' && s[end] == '\\' && end+1 < len(s) && (s[end+1] == '"' || s[end+1] == '\\') {
					end++
				}
				word = append(word, s[end])
			}
			if end == len(s) {
				return nil, errors.New("has a quote without its closing one")
			}
			i = end
		default:
			word, in = append(word, c), true
		}
	}
	if in {
		words = append(words, string(word))
	}
	return words, nil
}

// IsPOSIXShell says that a program runs what follows -c as a shell does.
func IsPOSIXShell(program string) bool {
	switch path.Base(program) {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh":
		return true
	}
	return false
}
