package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gbatch/internal/document"
)

// clauses are what a node must have: of each list one feature.
type clauses [][]string

// maxClauses bounds what becomes of an expression.
const maxClauses = 64

// constraint takes features with & (or a comma), | and parentheses, and reads them
// from left to right as Slurm does: a&b|c is a&b, or c. [a|b] is for nodes that
// all have the same of these.
func (s *script) constraint(v string) error {
	p := &features{text: strings.Map(func(c rune) rune {
		if c == ',' {
			return '&'
		}
		return c
	}, v)}
	all, err := p.expression(0)
	if err == nil && p.text != "" {
		err = fmt.Errorf("has %s where & or | could stand", document.Quote(p.text))
	}
	if err == nil {
		s.features, s.alike = all, p.alike
	}
	return err
}

// constrain adds the features to the job's.
func (s *script) constrain() {
	if s.alike && s.nodes > 1 {
		s.problem(0, "--constraint", "has brackets: that several nodes all have the same one of some features cannot be asked for", "name one of them, or a reservation or --nodelist of nodes that are alike")
	}
	for _, any := range s.features {
		if len(any) == 1 {
			s.spec.Request.Resources.Features = append(s.spec.Request.Resources.Features, any[0])
		} else {
			s.spec.Gbatch.AnyFeatures = append(s.spec.Gbatch.AnyFeatures, any)
		}
	}
}

// features is an expression that is being read.
type features struct {
	text  string // what is left
	alike bool   // it had brackets
}

// expression reads terms up to the end, or to a bracket that closes.
func (p *features) expression(depth int) (all clauses, err error) {
	op := byte('&')
	for {
		term, err := p.term(depth)
		switch {
		case err != nil:
			return nil, err
		case op == '|':
			all = all.or(term)
		default:
			all = append(all, term...)
		}
		switch {
		case len(all) > maxClauses:
			return nil, errors.New("is too long")
		case p.text == "" || !strings.ContainsRune("&|", rune(p.text[0])):
			return all, nil
		}
		op, p.text = p.text[0], p.text[1:]
	}
}

func (p *features) term(depth int) (clauses, error) {
	for open, end := range map[string]string{"(": ")", "[": "]"} {
		inside, ok := strings.CutPrefix(p.text, open)
		if !ok {
			continue
		}
		if p.text = inside; depth > 8 {
			return nil, errors.New("has too many brackets")
		}
		all, err := p.expression(depth + 1)
		if err == nil && !strings.HasPrefix(p.text, end) {
			err = errors.New("has a bracket that is not closed")
		}
		if err != nil {
			return nil, err
		}
		if p.text = p.text[1:]; open == "[" {
			if p.alike = true; len(all) > 1 {
				return nil, errors.New("has something but | in brackets, which Slurm refuses too")
			}
		}
		return all, nil
	}
	end := strings.IndexAny(p.text, "&|()[]*")
	if end < 0 {
		end = len(p.text)
	}
	name := p.text[:end]
	p.text = p.text[end:]
	switch {
	case strings.HasPrefix(p.text, "*"):
		return nil, errors.New("counts nodes with a feature: all nodes of a job are alike, so submit a job for each kind")
	case len(name) < 2:
		return nil, fmt.Errorf("has feature %s: want two letters or more", document.Quote(name))
	}
	return clauses{{name}}, nil
}

// or is what holds where one or the other does.
func (c clauses) or(d clauses) (out clauses) {
	for _, a := range c {
		for _, b := range d {
			both := slices.Concat(a, b)
			slices.Sort(both)
			out = append(out, slices.Compact(both))
		}
	}
	return out
}
