package document

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string from its opening quote.
func (r *jsonReader) str(text *string) *syntaxError {
	start := r.pos
	r.pos++
	for plain := true; ; r.pos++ {
		switch c := r.at(r.pos); {
		case r.pos >= len(r.src): // beyond, after a backslash
			return &syntaxError{off: start, text: "expected a closing double quote for the string that starts here, found the end of the file"}
		case c == '"':
			*text = r.src[start+1 : r.pos]
			r.pos++
			if plain {
				return nil
			}
			return unescape(text, start+1)
		case c == '\\':
			plain = false
			r.pos++
		case c < ' ':
			return &syntaxError{off: r.pos, text: "expected a closing double quote, found a line break or control character in a string",
				hint: `write a line break in a string as \n`}
		}
	}
}

// unescape decodes the escapes of a string whose first byte is at offset off.
func unescape(text *string, off int) *syntaxError {
	s := *text
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		if i+1 < len(s) {
			if at := strings.IndexByte(`"\/bfnrt`, s[i+1]); at >= 0 {
				out = append(out, "\"\\/\b\f\n\r\t"[at])
				i += 2
				continue
			}
		}
		c, size := unicodeEscape(s[i:])
		if size == 0 {
			return &syntaxError{off: off + i, text: `expected one of \" \\ \/ \b \f \n \r \t \uXXXX after a backslash`, hint: `write a backslash as \\`}
		}
		out = utf8.AppendRune(out, c)
		i += size
	}
	*text = string(out)
	return nil
}

// unicodeEscape decodes \uXXXX or a surrogate pair of them at the start of s.
// A size of 0 says that there is none.
func unicodeEscape(s string) (c rune, size int) {
	c, ok := hex4(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(c) {
		return c, 6
	}
	low, ok := hex4(s[6:])
	if pair := utf16.DecodeRune(c, low); ok && pair != utf8.RuneError {
		return pair, 12
	}
	return 0, 0
}

func hex4(s string) (c rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for i := 2; i < 6; i++ {
		d := strings.IndexByte("0123456789abcdef", s[i]|0x20)
		if d < 0 || s[i] < '0' {
			return 0, false
		}
		c = c<<4 | rune(d)
	}
	return c, true
}
