// Package jobstore reads jobs wherever they are: in the published view, or in the
// store when they have left it, with their documents and what is sealed with
// them. It writes nothing to the store. It also keeps what was made of a view for
// the next who ask.
package jobstore
