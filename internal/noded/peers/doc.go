// Package peers gives image layers to other nodes of the site, and fetches them from there: over
// TLS, with the certificates by which the controller knows nodes, and by its tickets. What
// is fetched is verified by the image store.
package peers
