// Package nodes is the nodes as placement looks at them: by kind of hardware and
// by what is free, with what each job holds on them and the windows that cover
// them, and what a shape finds there, in numbers and in words.
//
// It knows no queue, no policy and no plan: it chooses GPUs of a node, and never
// a node for a job. An Index and all that is in it belong to the State that made
// it; whoever else reads them changes nothing but by Take and Give, which are
// inverse.
package nodes
