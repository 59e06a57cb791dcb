// Package route serves a table of routes. It looks at who may use a route, bounds
// what an answer may take, and makes an answer of each error. What the routes
// are, package ctld says.
package route
