package site

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Diff is what differs between two texts of rules, a line for each key: "- " and
// what was, "+ " and what is, each with the path of its key.
func Diff(before, after string) []string {
	was, is := leavesOf(before), leavesOf(after)
	var out []string
	for _, l := range was {
		if i := slices.IndexFunc(is, func(o leaf) bool { return o.path == l.path }); i < 0 {
			out = append(out, "- "+l.String())
		} else if is[i].value != l.value {
			out = append(out, "- "+l.String(), "+ "+is[i].String())
		}
	}
	for _, l := range is {
		if !slices.ContainsFunc(was, func(o leaf) bool { return o.path == l.path }) {
			out = append(out, "+ "+l.String())
		}
	}
	return out
}

// leaf is a key that holds no other, and what it holds.
type leaf struct{ path, value string }

func (l leaf) String() string { return l.path + ": " + l.value }

// leavesOf is all of a text that is YAML, in its order.
func leavesOf(text string) (out []leaf) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		panic(err) // it is Config.Text
	}
	for _, n := range doc.Content {
		out = appendLeaves(out, "", n)
	}
	return out
}

// appendLeaves adds those of a node. Entries of a list are told apart by their
// names, so that one that moves is no change; a list of words is one value.
func appendLeaves(out []leaf, path string, n *yaml.Node) []leaf {
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		for i := 0; i+1 < len(n.Content); i += 2 {
			out = appendLeaves(out, strings.TrimPrefix(path+"."+n.Content[i].Value, "."), n.Content[i+1])
		}
	case n.Kind == yaml.SequenceNode && slices.ContainsFunc(n.Content, func(e *yaml.Node) bool { return e.Kind != yaml.ScalarNode }):
		for i, e := range n.Content {
			out = appendLeaves(out, fmt.Sprintf("%s[%s]", path, entryName(e, i)), e)
		}
	default:
		out = append(out, leaf{path, flow(n)})
	}
	return out
}

// entryName is what an entry of a list is called, else its place, from 0.
func entryName(n *yaml.Node, i int) string {
	for k := 0; n.Kind == yaml.MappingNode && k+1 < len(n.Content); k += 2 {
		if n.Content[k].Value == "name" {
			return n.Content[k+1].Value
		}
	}
	return fmt.Sprint(i)
}

// flow is a value in one line.
func flow(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		words := make([]string, len(n.Content))
		for i, e := range n.Content {
			words[i] = e.Value
		}
		return "[" + strings.Join(words, ", ") + "]"
	case yaml.MappingNode:
		return "{}"
	}
	return n.Value
}
