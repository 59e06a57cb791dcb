// Package words splits lines into words as shells do, and says which lines are for a
// shell. It is pure.
package words

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shellBytes are the bytes that, outside quotes, only a shell can act on. A
// line break between words ends a command, so it is one too. Not among them
// are * ? [ ] ~ { } ( ) ! and #: GPULab passes them to the program as they
// are, so a line that has nothing else is not given to a shell.
const shellBytes = "><|;&$`\n"

// Split splits a line into words by the quoting rules of POSIX, with nothing
// expanded and nothing else that a shell acts on.
func Split(line string) ([]string, error) {
	words, _, err := split(line, "")
	return words, err
}

// Command splits a command line into words, or says that it needs a shell.
func Command(line string) (words []string, shell bool, err error) {
	words, shell, err = split(line, shellBytes)
	if err == nil && !shell && words[0] == "" {
		return nil, false, errors.New("has an empty word where the program should be")
	}
	return words, shell, err
}

// split splits a line into words. Shell says that one of the bytes in special
// stands outside of quotes, or a variable before the first word.
func split(line, special string) (words []string, shell bool, err error) {
	line = strings.TrimSpace(line)
	var word []byte
	inWord := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' && special == "":
			if inWord {
				words, word, inWord = append(words, string(word)), word[:0], false
			}
			continue
		case c == '\\' && i+1 == len(line):
			return nil, false, errors.New("ends in a backslash with nothing after it")
		case c == '\\' && line[i+1] == '\n':
			i++
			continue
		case c == '\\':
			i++
			word = append(word, line[i])
		case c == '\'' || c == '"':
			size, err := quoted(&word, line[i:])
			if err != nil {
				return nil, false, err
			}
			i += size - 1
		case strings.IndexByte(special, c) >= 0:
			shell = true
		case c == '=' && special != "" && len(words) == 0 && isName(string(word)):
			shell = true // NAME=value in front of a command
		default:
			word = append(word, c)
		}
		inWord = true
	}
	if inWord {
		words = append(words, string(word))
	}
	return words, shell, nil
}

// quoted appends the content of the quoted text at the start of s to word and
// returns its size with quotes. In double quotes a backslash escapes only
// itself, the quote, $, ` and a line break, as in a shell.
func quoted(word *[]byte, s string) (size int, err error) {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return i + 1, nil
		case s[0] == '"' && s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\\\"$`\n", s[i+1]) >= 0:
			if i++; s[i] != '\n' {
				*word = append(*word, s[i])
			}
		default:
			*word = append(*word, s[i])
		}
	}
	return 0, fmt.Errorf("has a quote %c without its closing one", s[0])
}

// MaxChecked bounds the lines whose shell syntax is checked, since the time
// that takes grows with the square of the nesting. Longer ones fail in the
// container if they are wrong.
const MaxChecked = 8 << 10

// CheckShell says where a line is not a shell program. The image's /bin/sh may
// be a bash, so what either of the two grammars accepts passes.
func CheckShell(line string) error {
	if len(line) > MaxChecked {
		return nil
	}
	var first error
	for _, lang := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
		_, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(line), "")
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	if e := (syntax.ParseError{}); errors.As(first, &e) {
		return fmt.Errorf("is no shell command: at character %d: %s", e.Pos.Offset()+1, e.Text)
	}
	return errors.New("is no shell command")
}

// isName says whether a word may name a variable.
func isName(word string) bool {
	return word != "" && !('0' <= word[0] && word[0] <= '9') && strings.Trim(word, "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
