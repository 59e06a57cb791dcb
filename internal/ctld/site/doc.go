// Package site is what an operator decides: the configuration file with its
// projects, people, limits, policy and tables, checked as a whole. Values only:
// package rules has the one in force and changes it. Whoever reads a Config
// must not change what it refers to.
package site
