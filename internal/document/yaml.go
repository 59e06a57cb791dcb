package document

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlTree turns the nodes of the YAML library into ours: aliases and merge
// keys are expanded, within bounds, and keys given twice stay to be reported.
type yamlTree struct {
	written bool   // numbers and truth values keep the text that was written
	several string // what to do with a second document
	values  int
}

// read reads the one document of a YAML text, nil if it has none.
func (t *yamlTree) read(src string) (*Node, error) {
	dec := yaml.NewDecoder(strings.NewReader(src))
	var found *yaml.Node
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		switch {
		case errors.Is(err, io.EOF) && found == nil:
			return nil, nil
		case errors.Is(err, io.EOF):
			return t.document(found)
		case err != nil:
			return nil, Problems{yamlProblem(err)}
		case len(doc.Content) == 0 || doc.Content[0].Tag == "!!null":
			continue // nothing between two ---
		case found != nil:
			return nil, Problems{{Message: "has several YAML documents", Line: doc.Content[0].Line, Hint: t.several}}
		}
		found = doc.Content[0]
	}
}

// yamlProblem takes the line out of an error as "yaml: line 2: found a tab".
func yamlProblem(err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	var p Problem
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, why, ok := strings.Cut(rest, ": "); ok {
			p.Line, _ = strconv.Atoi(number)
			text = why
		}
	}
	p.Message = "is not YAML: " + text
	return p
}

func (t *yamlTree) document(y *yaml.Node) (*Node, error) {
	n := &Node{}
	if err := t.fill(n, y, 0); err != nil {
		return nil, err
	}
	return n, nil
}

// fill makes n of y. The line of n stays if it has one already.
func (t *yamlTree) fill(n *Node, y *yaml.Node, depth int) error {
	n.Line = cmp.Or(n.Line, int32(y.Line))
	if t.values++; t.values > maxValues {
		return Problems{{Message: fmt.Sprintf("has more than %d values, with its aliases", maxValues), Line: y.Line}}
	}
	if depth > maxLevels {
		return Problems{{Message: fmt.Sprintf("has more than %d levels", maxLevels), Line: y.Line}}
	}
	switch y.Kind {
	case yaml.AliasNode:
		return t.fill(n, y.Alias, depth+1)
	case yaml.ScalarNode:
		return t.fillScalar(n, y)
	case yaml.SequenceNode:
		n.Kind = ArrayKind
		for i, v := range y.Content {
			kid := &Node{Up: n, Index: int32(i), Line: int32(v.Line)}
			n.Kids = append(n.Kids, kid)
			if err := t.fill(kid, v, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	n.Kind = ObjectKind
	return t.members(n, y, depth)
}

func (t *yamlTree) members(n *Node, y *yaml.Node, depth int) error {
	var merges []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, v := y.Content[i], y.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			return Problems{{Message: "has a key that is no word", Line: y.Content[i].Line}}
		case key.Tag == "!!merge":
			merges = append(merges, v)
			continue
		}
		kid := &Node{Up: n, Key: key.Value, Line: int32(y.Content[i].Line)}
		n.Kids = append(n.Kids, kid)
		if err := t.fill(kid, v, depth+1); err != nil {
			return err
		}
	}
	for _, m := range merges {
		if err := t.merge(n, m, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// merge adds the members of an object, or of several, that n does not have.
func (t *yamlTree) merge(n *Node, y *yaml.Node, depth int) error {
	from := &Node{Up: n}
	if err := t.fill(from, y, depth); err != nil {
		return err
	}
	objects := []*Node{from}
	if from.Kind == ArrayKind {
		objects = from.Kids
	}
	have := map[string]bool{} // looking through n for each would take quadratic time
	for _, kid := range n.Kids {
		have[kid.Key] = true
	}
	for _, o := range objects {
		if o.Kind != ObjectKind {
			return Problems{{Message: "has a merge key << without an object", Line: y.Line}}
		}
		for _, kid := range o.Kids {
			if !have[kid.Key] {
				have[kid.Key], kid.Up = true, n
				n.Kids = append(n.Kids, kid)
			}
		}
	}
	return nil
}

func (t *yamlTree) fillScalar(n *Node, y *yaml.Node) error {
	n.Text, n.Plain = y.Value, y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch y.Tag {
	case "!!null":
		n.Text = ""
	case "!!bool":
		n.Kind = BoolKind
		if !t.written {
			n.Text = strings.ToLower(y.Value)
		}
	case "!!int":
		n.Kind = NumberKind
		if t.written {
			break
		}
		if _, err := strconv.ParseFloat(y.Value, 64); err != nil || strings.ContainsAny(y.Value, "_xXpP") || len(y.Value) > 1 && y.Value[0] == '0' {
			var x int64 // 0x1f, 0o17 and 1_000: the text is the number
			if err := y.Decode(&x); err != nil {
				return Problems{{Message: "has a number out of range", Line: y.Line}}
			}
			n.Text = strconv.FormatInt(x, 10)
		}
	case "!!float":
		n.Kind = NumberKind
	case "!!str", "!!timestamp":
		n.Kind = StringKind
	default:
		return Problems{{Message: "has the tag " + Quote(y.Tag) + ", which means nothing here", Line: y.Line, Hint: "remove it"}}
	}
	return nil
}
