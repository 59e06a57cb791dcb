// Package wire turns the controller's values into those of the API. It decides
// nothing: who may see what, its callers say.
package wire
